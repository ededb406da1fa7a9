"""The processes that work with this database: each tells now and then that it lives, and how it is doing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement


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


@dataclass(frozen=True, slots=True)
class Heard:
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
    connection.execute(
        statement("fleet/beat"),
        {
            "id": process.id, "home_id": process.home_id, "host": process.host, "pid": process.pid,
            "command": process.command, "version": process.version, "age": age, "silent_seconds": silent_seconds,
            "is_ended": is_ended, "status": json.dumps(status),
        },
    )  # fmt: skip
    connection.execute(statement("fleet/expire"))


def listed(connection: Connection, limit: int) -> list[Heard]:
    """The processes that were heard of lately, those at work first."""
    rows: list[Any] = connection.execute(statement("fleet/processes"), {"limit": limit}).fetchall()
    return [Heard(Process(*row[:6]), *row[6:]) for row in rows]


def metrics(connection: Connection) -> list[tuple[str, dict[str, str], float]]:
    """The numbers for a collector: name, labels, value."""
    rows: list[Any] = connection.execute(statement("fleet/metrics")).fetchall()
    return [(name, {key: str(told) for key, told in labels.items()}, float(value)) for name, labels, value in rows]
