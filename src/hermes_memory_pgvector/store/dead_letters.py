"""Records that Postgres rejects permanently, kept so that an operator can look at them, retry them or drop them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import gate


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected record as an operator sees it."""

    id: int
    writer: str
    position: int
    size: int
    reason: str
    at: datetime


def insert(connection: Connection, writer: str, position: int, payload: bytes, reason: str) -> None:
    """Keep a rejected record, in a database that is in use."""
    gate.enter(connection)
    values = {"writer": writer, "position": position, "payload": payload, "reason": reason[:500]}
    connection.execute(statement("journal/insert_dead_letter"), values)


def newest(connection: Connection, limit: int) -> list[DeadLetter]:
    """Rejected records, newest first."""
    rows: list[Any] = connection.execute(statement("journal/list_dead_letters"), {"limit": limit}).fetchall()
    return [DeadLetter(*row) for row in rows]


def find(connection: Connection, letter_id: int) -> tuple[DeadLetter, bytes] | None:
    """One rejected record with its payload."""
    row: Any = connection.execute(statement("journal/show_dead_letter"), {"id": letter_id}).fetchone()
    if row is None:
        return None
    payload = bytes(row[3])
    return DeadLetter(row[0], row[1], row[2], len(payload), row[4], row[5]), payload


def drop(connection: Connection, letter_id: int) -> bool:
    """Delete a rejected record; False when there is none."""
    return connection.execute(statement("journal/drop_dead_letter"), {"id": letter_id}).rowcount == 1
