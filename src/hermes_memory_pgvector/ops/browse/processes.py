"""The processes at work: those of a home by the locks they hold, those of a database by what they have told it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.ops import journals
from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.terminal.fields import column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_memory_pgvector.runtime.processes import ProcessStatus
    from hermes_memory_pgvector.store.processes import Heard

SILENT = "it was killed, or cannot reach the database"


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """A process, and how it is doing, as of when it was heard of last."""

    process: str = column("process")
    host: str = column("host", rare=True)
    home: str = column("home", rare=True)
    heard: str = column("as of", is_aside=True)
    stored: int = column("stored", right=True, default=0)
    waiting: int = column("waiting", right=True, default=0)
    embedded: int = column("embedded", right=True, default=0)
    state: str = column("state")
    trouble: str = column("", text=True, whole=True)
    seen_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    version: str = ""
    id: str = ""
    home_id: str = ""
    counters: Mapping[str, float] | None = None


def of_file(shot: ProcessStatus) -> ProcessLine:
    """A process of this home."""
    troubles = list(journals.troubles(shot))
    seen = datetime.fromtimestamp(shot.updated, UTC)
    return ProcessLine(
        shot.name, heard=amounts.ago(seen), stored=shot.writer_stored, waiting=shot.writer_waiting,
        embedded=shot.backlog_embedded, state="in trouble" if troubles else "all well",
        trouble="; ".join(troubles), seen_at=seen,
    )  # fmt: skip


def of_row(heard: Heard) -> ProcessLine:
    """A process of any machine, by what it told the database."""
    one, status = heard.process, heard.status
    told = status.get("trouble")
    troubles = [f"{name}: {reason}" for name, reason in told.items()] if isinstance(told, dict) else []
    state = heard.state if heard.state != "live" else "in trouble" if troubles else "all well"
    counters = status.get("counters")
    counters = counters if isinstance(counters, dict) else {}
    return ProcessLine(
        f"{one.command} {one.pid}", one.host, str(status.get("home", "")), amounts.ago(heard.seen_at, heard.now),
        _number(counters.get("records_stored")), _number(status.get("journal_records")),
        _number(counters.get("embedded_rows")), state, SILENT if state == "silent" else "; ".join(troubles),
        heard.seen_at, heard.started_at, heard.ended_at, one.version, one.id, one.home_id, counters,
    )  # fmt: skip


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
