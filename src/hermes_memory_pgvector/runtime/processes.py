"""What each process of a home tells of itself, for `status` and `doctor`: JSON in the lock file of its journal.

It counts while the process holds the lock. It holds numbers, states and reasons, and nothing that was stored.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.breaker import BreakerStatus
from hermes_memory_pgvector.journal.lock import told
from hermes_memory_pgvector.journal.segment import list_directory


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """How one process is doing."""

    pid: int
    command: str
    """The program's name, without its arguments."""
    updated: float
    breakers: tuple[BreakerStatus, ...] = ()
    writer_stored: int = 0
    writer_waiting: int = 0
    writer_dead: int = 0
    writer_again: int = 0
    """Records stored again because the database went back to an earlier state."""
    writer_gone: int = 0
    """Records lost when it did."""
    backlog_embedded: int = 0
    backlog_problem: str = ""
    short_turns: int = 0
    """Turns that were too short to be stored."""
    refused_turns: int = 0
    refused_memories: int = 0
    refused_waiting: int = 0
    """How many refused writes are still to be recovered."""
    refused_recovered: int = 0
    refused_lost: int = 0
    failed_hooks: int = 0
    """How many hook calls failed."""
    latest_failure: str = ""
    sync_lag_seconds: float = 0.0
    journal_writer: str = ""

    @property
    def open_breakers(self) -> tuple[BreakerStatus, ...]:
        """The breakers that are not closed: what does not work."""
        return tuple(breaker for breaker in self.breakers if breaker.state != "closed")

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.command} {self.pid}"


def text_of_now(breakers: Sequence[BreakerStatus], **figures: Any) -> bytes:
    """What this process tells now; `figures` are the fields of ProcessStatus that the caller knows."""
    own = ProcessStatus(os.getpid(), command(), time.time(), tuple(breakers), **figures)
    return json.dumps(dataclasses.asdict(own)).encode()


def read_all(journal: Path) -> list[ProcessStatus]:
    """What live processes of a journal folder tell, the longest running first."""
    if not journal.is_dir():
        return []
    found = (_parse(writer, told(journal, writer)) for writer in sorted(list_directory(journal).locks))
    return [each for each in found if each is not None]


def _parse(writer: str, text: bytes | None) -> ProcessStatus | None:
    try:
        raw = json.loads(text or b"")
        known = {field.name for field in dataclasses.fields(ProcessStatus)}
        values = {name: value for name, value in raw.items() if name in known}
        values["breakers"] = tuple(BreakerStatus(**each) for each in values["breakers"])
        return ProcessStatus(**{**values, "journal_writer": writer})
    except (ValueError, TypeError, KeyError, AttributeError):
        # It has only just started, or is writing.
        return None


@functools.cache
def command() -> str:
    """The program's name, without its arguments."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return name if name not in ("", "-", "-c", "-m") else Path(sys.executable).name
