"""What a database knows beside its rows, for a move: other names of themes, and what was forgotten."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import gate, receipts

PAGE_ROWS = 1000


class Alias(NamedTuple):
    """Another name of a theme, as an export has it."""

    old: str
    new: str
    since: datetime
    finished_at: datetime | None


class CarriedReceipt(NamedTuple):
    """A receipt of another database, as an export has it."""

    at: datetime
    actor: str
    home_id: str
    named: tuple[str, ...]
    finished_at: datetime | None
    counts: Mapping[str, int]
    unreached: tuple[str, ...]
    key: bytes


class CarriedTombstone(NamedTuple):
    """A tombstone and the receipt it belongs to here."""

    hash: bytes
    receipt: int
    at: datetime
    length: int | None
    """Of a text that is looked for as a part of others."""


def may_read(connection: Connection) -> bool:
    """Whether this login may see what was forgotten."""
    row: Any = connection.execute(statement("transfer/may_read_forgotten")).fetchone()
    return bool(row[0])


def aliases(connection: Connection, theme: str | None) -> Iterator[Sequence[Any]]:
    """(old name, new name, since, finished) of each other name, or of those that lead from or to a theme."""
    return _rows(connection, "transfer/aliases", {"theme": theme})


def receipts_of(connection: Connection) -> Iterator[Sequence[Any]]:
    """(place, time, actor, home, what was named, finished, counts, not reached, key) of each receipt."""
    return _rows(connection, "transfer/receipts", {})


def tombstones(connection: Connection) -> Iterator[Sequence[Any]]:
    """(place of the receipt, hash, time, length of a part) of each tombstone."""
    return _rows(connection, "transfer/tombstones", {})


def store_aliases(connection: Connection, brought: Sequence[Alias]) -> tuple[int, int]:
    """Take over other names; how many were new, and how many stay out because their name means something else here."""
    gate.close(connection)
    new = in_use = 0
    for alias in brought:
        values = {"olds": [alias.old], "news": [alias.new], "since": [alias.since], "finished": [alias.finished_at]}
        rows: list[Any] = connection.execute(statement("transfer/insert_aliases"), values).fetchall()
        for old, leads_to in rows:
            # Names that led to this one lead on.
            connection.execute(statement("themes/move_aliases"), {"theme": old, "other": leads_to})
        new += len(rows)
        if not rows:
            known: list[Any] = connection.execute(statement("transfer/known_aliases"), {"olds": [alias.old]}).fetchall()
            in_use += not known
    return new, in_use


def store_receipt(connection: Connection, brought: CarriedReceipt) -> tuple[int, bool]:
    """The number that a receipt has here, and whether it is new."""
    values = {"at": brought.at, "actor": brought.actor, "home_id": brought.home_id, "named": list(brought.named)}
    row: Any = connection.execute(statement("transfer/find_receipt"), values).fetchone()
    if row is not None:
        return int(row[0]), False
    more = {
        "finished_at": brought.finished_at,
        "counts": json.dumps(dict(brought.counts)),
        "unreached": list(brought.unreached),
        "key": brought.key,
    }
    row = connection.execute(statement("transfer/insert_receipt"), {**values, **more}).fetchone()
    return int(row[0]), True


def store_tombstones(connection: Connection, brought: Sequence[CarriedTombstone]) -> int:
    """Set tombstones that were brought here; how many were new."""
    # Nobody stores what is forgotten from now on, on the word of a look taken before.
    gate.close(connection)
    values = {
        "hashes": [each.hash for each in brought],
        "receipts": [each.receipt for each in brought],
        "at": [each.at for each in brought],
        "lengths": [each.length for each in brought],
    }
    return connection.execute(statement("transfer/insert_tombstones"), values).rowcount


def seal(connection: Connection, numbers: Collection[int]) -> None:
    """Seal receipts whose tombstones have all arrived."""
    for number in sorted(numbers):
        found = receipts.find(connection, number)
        if found is not None and not found.digest:
            hashes = receipts.hashes(connection, number)
            digest = receipts.seal(number, found.forgotten_at, found.named, found.counts, hashes)
            connection.execute(statement("transfer/seal_receipt"), {"id": number, "digest": digest})


def _rows(connection: Connection, name: str, values: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    with connection.cursor(name="hermes_carried") as cursor:
        cursor.itersize = PAGE_ROWS
        cursor.execute(statement(name), values)
        yield from cursor
