"""The processes that work with this database: each tells now and then that it lives, and how it is doing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run


@dataclass(frozen=True, slots=True)
class Process:
    """A process that works for a home."""

    id: str
    home_id: str
    host: str
    pid: int
    command: str
    """The program's name, without its arguments."""
    version: str


class Heard(NamedTuple):
    """What was last heard of a process."""

    process: Process
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None
    state: str
    """live, silent (overdue: killed, or cut off) or ended."""
    status: Mapping[str, Any]
    now: datetime
    """What the database's clock says: that of another machine may be wrong."""


def beat(
    connection: Connection, process: Process, status: Mapping[str, Any], *, age: float, silent_seconds: float,
    is_ended: bool = False,
) -> None:  # fmt: skip
    """Say that a process lives, or that it ends; it is heard of again within so many seconds."""
    run(
        connection, "fleet/beat", **asdict(process), age=age, silent_seconds=silent_seconds, is_ended=is_ended,
        status=json.dumps(status),
    )  # fmt: skip
    run(connection, "fleet/expire")


def listed(connection: Connection, limit: int) -> list[Heard]:
    """The processes that were heard of lately, those at work first."""
    return [Heard(Process(*row[:6]), *row[6:]) for row in run(connection, "fleet/processes", limit=limit)]


def metrics(connection: Connection) -> list[tuple[str, dict[str, str], float]]:
    """The numbers for a collector: name, labels, value."""
    return [
        (name, {key: str(told) for key, told in labels.items()}, value)
        for name, labels, value in run(connection, "fleet/metrics")
    ]
