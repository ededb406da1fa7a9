"""Journals as processes leave them that died before they could deliver."""

from __future__ import annotations

from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, codec
from hermes_memory_pgvector.values import AddTurn, Moment

SAID_US = 1_790_000_000_000_000
MOST_BYTES = 1024 * 1024


def leave_in_journal(home: Path, theme: str, content: str) -> None:
    """One turn that only the journal of a home holds."""
    item = AddTurn(theme, "s2", "user", content, 1, Moment(SAID_US, SAID_US), is_live=True)
    journal = Journal(home / "pgvector" / "journal", max_bytes=MOST_BYTES)
    journal.open()
    journal.append(codec.encode([item]))
    journal.close(Deadline.after(10))
