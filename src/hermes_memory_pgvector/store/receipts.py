"""Receipts of what was forgotten."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.store.tombstones import Tombstones


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


def begin(connection: Connection, actor: str, home_id: str, named: Sequence[str]) -> tuple[int, datetime]:
    """Begin a receipt; its number and time."""
    values = {"actor": actor, "home_id": home_id, "named": list(named)}
    row: Any = connection.execute(statement("erase/begin"), values).fetchone()
    return int(row[0]), row[1]


def finish(connection: Connection, receipt: int, counts: Mapping[str, int], unreached: Sequence[str]) -> Receipt:
    """End a receipt, sealed by a digest."""
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


def hashes(connection: Connection, receipt: int) -> list[bytes]:
    """The tombstones of a receipt, in order."""
    rows: list[Any] = connection.execute(statement("erase/tombstones_of"), {"receipt": receipt}).fetchall()
    return [bytes(row[0]) for row in rows]


def leftovers(connection: Connection, receipt: int) -> dict[str, int]:
    """How many rows of each table hold what a receipt says is forgotten, recognised by their hashes."""
    values = {"receipt": receipt}
    row: Any = connection.execute(statement("erase/left_turns"), values).fetchone()
    found = {"conversations": max(int(row[0]), int(row[1]))}
    for name, table in (
        ("erase/left_memories", "memory_entries"),
        ("erase/left_history", "memory_operations"),
        ("erase/left_delegations", "delegations"),
        ("erase/left_files", "memory_files"),
    ):
        row = connection.execute(statement(name), values).fetchone()
        found[table] = int(row[0])
    return found


def tombstones_of(connection: Connection, receipt: int) -> Tombstones:
    """The tombstones of one receipt, all of them."""
    row: Any = connection.execute(statement("erase/key_of_receipt"), {"id": receipt}).fetchone()
    rows: list[Any] = connection.execute(statement("erase/tombstones_of"), {"receipt": receipt}).fetchall()
    return Tombstones(() if row is None else (bytes(row[0]),), {bytes(each): at for each, at in rows})


def seal(
    number: int, at: datetime, named: Sequence[str], counts: Mapping[str, int], tombstones: Sequence[bytes]
) -> str:
    """The digest of a receipt: whoever changes it, or takes a tombstone away, changes the digest."""
    told = json.dumps([number, at.astimezone(UTC).isoformat(), list(named), sorted(counts.items())])
    return hashlib.sha256(told.encode() + b"".join(tombstones)).hexdigest()


def _receipt(row: Any) -> Receipt:
    number, at, actor, home_id, named, finished_at, counts, unreached, digest = row
    return Receipt(number, at, actor, home_id, tuple(named), finished_at, counts, tuple(unreached), digest)
