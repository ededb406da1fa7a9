"""Records that Postgres rejects permanently, kept so that an operator can look at them, retry them or drop them.

On a cluster, records of themes whose worker is away wait in the same table. They are not rejected: whoever finds the
worker again stores them, in the order in which they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.store.gate import NOT_GRANTED
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected record as an operator sees it."""

    id: int
    writer: str
    seq: int
    size: int
    reason: str
    at: datetime


def insert(connection: Connection, writer: str, seq: int, payload: bytes, reason: str) -> None:
    """Keep a rejected record."""
    values = {"writer": writer, "seq": seq, "payload": payload, "reason": reason[:500]}
    connection.execute(statement("journal/insert_dead_letter"), values)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A record of a theme that cannot be reached."""

    id: int
    writer: str
    seq: int
    payload: bytes
    themes: frozenset[str]
    """Under the names they had when it was set aside."""


def set_aside(
    connection: Connection, records: Sequence[tuple[str, int, bytes]], themes: Sequence[Iterable[str]], reason: str
) -> None:
    """Keep records (writer, number, payload) until the themes that each is about can be reached."""
    values = {
        "writers": [writer for writer, _, _ in records],
        "seqs": [seq for _, seq, _ in records],
        "payloads": [payload for _, _, payload in records],
        "waits_for": [json.dumps(sorted(each)) for each in themes],
        "reason": reason,
    }
    connection.execute(statement("journal/set_aside"), values)


def waiting_themes(connection: Connection) -> set[str]:
    """The themes that records wait for, under the names they have now: later ones come behind those."""
    rows: list[Any] = connection.execute(statement("journal/waiting_themes")).fetchall()
    return {str(row[0]) for row in rows}


def count_waiting(connection: Connection) -> int:
    """How many records wait for a theme that cannot be reached."""
    row: Any = connection.execute(statement("journal/count_waiting")).fetchone()
    return int(row[0])


def take_waiting(connection: Connection, after: int, limit: int, max_bytes: int) -> list[Waiting] | None:
    """The next records that wait, as many as fit and one at least, locked until the transaction ends.

    None while another process is storing them: two at once would not keep their order.
    """
    if connection.execute(statement("journal/our_turn_to_store")).fetchone() != (True,):
        return None
    sizes: list[Any] = connection.execute(
        statement("journal/waiting_sizes"), {"after": after, "limit": limit}
    ).fetchall()
    ids: list[int] = []
    for number, size in sizes:
        max_bytes -= size
        if ids and max_bytes < 0:
            break
        ids.append(number)
    rows: list[Any] = connection.execute(statement("journal/take_waiting"), {"ids": ids}).fetchall() if ids else []
    return [
        Waiting(int(number), str(writer), int(seq), bytes(payload), frozenset(themes))
        for number, writer, seq, payload, themes in rows
    ]


def drop_waiting(connection: Connection, ids: Sequence[int]) -> None:
    """These are stored, or about to be, in the same transaction."""
    connection.execute(statement("journal/drop_waiting"), {"ids": list(ids)})


def newest(connection: Connection, limit: int) -> list[DeadLetter]:
    """Rejected records, newest first."""
    rows: list[Any] = connection.execute(statement("journal/list_dead_letters"), {"limit": limit}).fetchall()
    return [DeadLetter(*row) for row in rows]


def not_granted(connection: Connection, after: int, limit: int) -> list[tuple[int, bytes]]:
    """Number and payload of this login's records that were rejected for want of a grant, the oldest first."""
    values = {"after": after, "told": NOT_GRANTED, "limit": limit}
    rows: list[Any] = connection.execute(statement("journal/not_granted"), values).fetchall()
    return [(int(letter), bytes(payload)) for letter, payload in rows]


def find(connection: Connection, letter_id: int) -> tuple[DeadLetter, bytes] | None:
    """One rejected record with its payload."""
    row: Any = connection.execute(statement("journal/show_dead_letter"), {"id": letter_id}).fetchone()
    if row is None:
        return None
    payload = bytes(row[3])
    return DeadLetter(row[0], row[1], row[2], len(payload), row[4], row[5]), payload


def beyond_grant(connection: Connection, letter_id: int, themes: Iterable[str]) -> tuple[str, list[str]] | None:
    """The login of single themes that left a record, and those of these themes that it may not write to, if any."""
    values = {"id": letter_id, "themes": sorted(set(themes))}
    row: Any = connection.execute(statement("journal/beyond_grant"), values).fetchone()
    return None if row is None else (str(row[0]), list(row[1]))


def drop(connection: Connection, letter_id: int) -> bool:
    """Delete a rejected record; False when there is none."""
    return connection.execute(statement("journal/drop_dead_letter"), {"id": letter_id}).rowcount == 1
