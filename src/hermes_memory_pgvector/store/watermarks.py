"""How far each journal has arrived in the database: a position, moved in the transaction that stores the records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement


def lock(connection: Connection, writer: str, home_id: str) -> int:
    """The mark of a journal, locked until the transaction ends."""
    connection.execute(statement("journal/create_mark"), {"writer": writer, "home_id": home_id})
    row: Any = connection.execute(statement("journal/lock_mark"), {"writer": writer}).fetchone()
    return int(row[0])


def advance(connection: Connection, writer: str, mark: int) -> None:
    """Move a mark, in the transaction that stores the records."""
    moved = {"writer": writer, "position": mark, "now": datetime.now(UTC)}
    connection.execute(statement("journal/advance_mark"), moved)


def read(connection: Connection, writers: Sequence[str]) -> dict[str, int]:
    """The marks of those of these journals that have one."""
    rows: list[Any] = connection.execute(statement("journal/read_marks"), {"writers": list(writers)}).fetchall()
    return {str(writer): int(mark) for writer, mark in rows}
