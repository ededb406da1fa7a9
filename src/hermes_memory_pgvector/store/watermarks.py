"""How far each journal has arrived in the database: a position, moved in the transaction that stores the records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run


def lock(connection: Connection, writer: str, home_id: str) -> int:
    """The mark of a journal, locked until the transaction ends."""
    run(connection, "journal/create_mark", writer=writer, home_id=home_id)
    return int(one(connection, "journal/lock_mark", writer=writer)[0])


def advance(connection: Connection, writer: str, mark: int) -> None:
    """Move a mark, in the transaction that stores the records."""
    run(connection, "journal/advance_mark", writer=writer, position=mark, now=datetime.now(UTC))


def everywhere(connection: Connection, writers: Sequence[str]) -> list[dict[str, int]]:
    """As `read`, in every bucket that can be reached; one that cannot has none."""
    found = buckets.reached(connection, lambda each: read(each, writers))
    return [found.get(bucket, {}) for bucket in range(buckets.layout(connection).count)]


def read(connection: Connection, writers: Sequence[str]) -> dict[str, int]:
    """The marks of those of these journals that have one."""
    return dict(run(connection, "journal/read_marks", writers=list(writers)).fetchall())
