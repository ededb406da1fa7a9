"""Receipts of what was forgotten."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import gate, tombstones
from hermes_memory_pgvector.store.named_rows import Until
from hermes_memory_pgvector.store.selection import Selection
from hermes_memory_pgvector.store.tombstones import Tombstones, keyed_hash


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten, by whom and when; no text."""

    id: int
    forgotten_at: datetime
    """What was said later is not forgotten."""
    actor: str
    home_id: str
    named: tuple[str, ...]
    """The options that were given."""
    finished_at: datetime | None
    """None when the command was ended before it was done."""
    counts: Mapping[str, int]
    unreached: tuple[str, ...]
    """What could not be reached from that home."""
    digest: str
    """Over the receipt and all its tombstones."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A receipt that is not finished."""

    id: int
    until: Until
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was erased before it was interrupted."""
    is_resumed: bool = False


def request_hash(key: bytes, selections: Sequence[Selection]) -> bytes:
    """What recognises a request when it is made again."""
    return keyed_hash(key, "request", *(word for each in selections for word in each.words()))


def begin(
    connection: Connection, actor: str, home_id: str, named: Sequence[str], request: bytes | None = None
) -> Begun:
    """Begin a receipt, with the gate closed: whatever is stored by then is there, whatever its clock said."""
    numbers: Any = connection.execute(statement("erase/horizon")).fetchone()
    values = {
        "actor": actor,
        "home_id": home_id,
        "named": list(named),
        "request": request,
        "horizon": [int(number) for number in numbers],
    }
    row: Any = connection.execute(statement("erase/begin"), values).fetchone()
    return Begun(int(row[0]), Until(row[1], *(int(number) for number in numbers)))


def unfinished(connection: Connection, request: bytes) -> Begun | None:
    """The receipt of the same request that was begun and not finished."""
    row: Any = connection.execute(statement("erase/unfinished"), {"request": request}).fetchone()
    return None if row is None else Begun(int(row[0]), Until(row[1], *map(int, row[2])), row[3], is_resumed=True)


def note_counts(connection: Connection, receipt: int, counts: Mapping[str, int]) -> None:
    """Note what was erased so far, in the transaction that erased it."""
    connection.execute(statement("erase/note_counts"), {"id": receipt, "counts": json.dumps(dict(counts))})


def finish(connection: Connection, receipt: int, counts: Mapping[str, int], unreached: Sequence[str]) -> Receipt:
    """End a receipt, sealed by a digest; one that somebody else has ended meanwhile stays as it is."""
    begun = find(connection, receipt)
    assert begun is not None
    digest = seal(begun.id, begun.forgotten_at, begun.named, counts, hashes(connection, receipt))
    values = {"id": receipt, "counts": json.dumps(dict(counts)), "unreached": list(unreached), "digest": digest}
    connection.execute(statement("erase/finish"), values)
    finished = find(connection, receipt)
    assert finished is not None
    return finished


def find(connection: Connection, receipt: int) -> Receipt | None:
    """One receipt."""
    row: Any = connection.execute(statement("erase/receipt"), {"id": receipt}).fetchone()
    return None if row is None else _receipt(row)


def listed(connection: Connection, limit: int) -> list[Receipt]:
    """The newest receipts."""
    rows: list[Any] = connection.execute(statement("erase/receipts"), {"limit": limit}).fetchall()
    return [_receipt(row) for row in rows]


def newest(connection: Connection) -> int:
    """The number of the newest receipt; 0 when nothing was ever forgotten."""
    row: Any = connection.execute(statement("erase/newest_receipt")).fetchone()
    return int(row[0])


def homes(connection: Connection) -> list[tuple[str, datetime | None]]:
    """Every home that has delivered anything, and when it was last heard of."""
    rows: list[Any] = connection.execute(statement("erase/homes")).fetchall()
    return [(str(name), at) for name, at in rows]


def hashes(connection: Connection, receipt: int) -> list[bytes]:
    """The tombstones of a receipt, in order."""
    rows: list[Any] = connection.execute(statement("erase/tombstones_of"), {"receipt": receipt}).fetchall()
    return [bytes(row[0]) for row in rows]


def leftovers(connection: Connection, receipt: int) -> dict[str, int]:
    """How many rows of each table hold what a receipt says is forgotten, recognised by their hashes."""
    values = {"receipt": receipt}
    found: dict[str, int] = {}
    for name, table in (
        ("erase/left_turns", "conversations"),
        ("erase/left_memories", "memory_entries"),
        ("erase/left_history", "memory_operations"),
        ("erase/left_delegations", "delegations"),
    ):
        row: Any = connection.execute(statement(name), values).fetchone()
        found[table] = int(row[0])
    return found


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """How many rows of a table hold a text."""

    rows: int
    """-1 when the table may not be read."""
    newer: int
    """In what was said later."""
    in_names: int
    """In names of themes, sessions and homes alone."""


def texts_in_tables(
    connection: Connection, needles: Sequence[str], themes: Sequence[str], until: datetime
) -> dict[str, FoundTexts]:
    """Which tables hold one of these texts, of these themes or of all."""
    values = {"needles": list(needles), "themes": list(themes) or None, "until": until}
    rows: list[Any] = connection.execute(statement("erase/texts"), values).fetchall()
    return {str(name): FoundTexts(*map(int, counts)) for name, *counts in rows}


def tombstones_of(connection: Connection, receipt: int) -> Tombstones:
    """The tombstones of one receipt, all of them."""
    row: Any = connection.execute(statement("erase/key_of_receipt"), {"id": receipt}).fetchone()
    keys = () if row is None else (bytes(row[0]),)
    rows: list[Any] = connection.execute(statement("erase/tombstones_of"), {"receipt": receipt}).fetchall()
    parts = [(key, length, each, at) for each, at, length in rows if length is not None for key in keys]
    return Tombstones(
        keys, {bytes(each): at for each, at, _ in rows}, gate.look(connection).aliases, tombstones.parts_of(parts)
    )


def seal(number: int, at: datetime, named: Sequence[str], counts: Mapping[str, int], hashes: Sequence[bytes]) -> str:
    """The digest of a receipt: whoever changes it, or takes a tombstone away, changes the digest."""
    told = json.dumps([number, at.astimezone(UTC).isoformat(), list(named), sorted(counts.items())])
    return hashlib.sha256(told.encode() + b"".join(hashes)).hexdigest()


def _receipt(row: Any) -> Receipt:
    number, at, actor, home_id, named, finished_at, counts, unreached, digest = row
    return Receipt(number, at, actor, home_id, tuple(named), finished_at, counts, tuple(unreached), digest)
