"""How far each journal has arrived, and the records that Postgres refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused record as an operator sees it."""

    id: int
    writer: str
    seq: int
    size: int
    reason: str
    at: datetime


ENDED = 2**63 - 1
"""The watermark of a journal that has ended: whatever a restored copy of it holds has arrived long ago."""


def lock(connection: Connection, writers: Sequence[str], home_id: str) -> dict[str, int]:
    """The watermarks of journals, locked until the transaction ends."""
    connection.execute(statement("progress_create"), {"writers": list(writers), "home_id": home_id})
    rows = connection.execute(statement("progress_lock"), {"writers": list(writers)}).fetchall()
    found = {str(writer): int(cast(int, seq)) for writer, seq in rows}
    return {writer: found.get(writer, ENDED) for writer in writers}


def advance(connection: Connection, marks: Mapping[str, int]) -> None:
    """Move watermarks; belongs into the transaction that stored the records."""
    connection.execute(statement("progress_advance"), {"writers": list(marks), "seqs": list(marks.values())})


def end(connection: Connection, writers: Sequence[str]) -> None:
    """Note that all of these journals has arrived and that their files are about to be removed.

    Their watermarks give way to a list that names them, so that a copy which turns up later is not stored again.
    """
    connection.execute(statement("progress_end"), {"writers": list(writers)})


def watermarks(connection: Connection, writers: Sequence[str]) -> dict[str, int]:
    """The watermarks of these journals, as far as they have one."""
    rows = connection.execute(statement("progress_of"), {"writers": list(writers)}).fetchall()
    return {str(writer): int(cast(int, seq)) for writer, seq in rows}


def bury(connection: Connection, writer: str, seq: int, payload: bytes, reason: str) -> None:
    """Keep a refused record."""
    values = {"writer": writer, "seq": seq, "payload": payload, "reason": reason[:500]}
    connection.execute(statement("dead_letter_insert"), values)


def dead_letters(connection: Connection, limit: int) -> list[DeadLetter]:
    """Refused records, newest first."""
    rows: list[Any] = connection.execute(statement("dead_letter_list"), {"limit": limit}).fetchall()
    return [DeadLetter(*row) for row in rows]


def dead_letter(connection: Connection, letter_id: int) -> tuple[DeadLetter, bytes] | None:
    """One refused record with its payload."""
    row: Any = connection.execute(statement("dead_letter_show"), {"id": letter_id}).fetchone()
    if row is None:
        return None
    payload = bytes(row[3])
    return DeadLetter(row[0], row[1], row[2], len(payload), row[4], row[5]), payload


def drop_dead_letter(connection: Connection, letter_id: int) -> bool:
    """Forget a refused record; False when there is none."""
    return connection.execute(statement("dead_letter_drop"), {"id": letter_id}).rowcount == 1
