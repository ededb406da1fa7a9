"""Records that Postgres rejects permanently, kept so that an operator can look at them, retry them or drop them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
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
    run(
        connection, "journal/insert_dead_letter", writer=writer, position=position, payload=payload, reason=reason[:500]
    )


def newest(connection: Connection, limit: int) -> list[DeadLetter]:
    """Rejected records, newest first."""
    return [DeadLetter(*row) for row in run(connection, "journal/list_dead_letters", limit=limit)]


def find(connection: Connection, letter_id: int) -> tuple[DeadLetter, bytes] | None:
    """One rejected record with its payload."""
    row = one(connection, "journal/show_dead_letter", id=letter_id)
    return None if row is None else (DeadLetter(*row[:-1]), row[-1])


def drop(connection: Connection, letter_id: int) -> bool:
    """Delete a rejected record; False when there is none."""
    dropped = [run(connection, "journal/drop_dead_letter", id=letter_id).rowcount for _ in buckets.within(connection)]
    return sum(dropped) == 1
