"""Receipts of what was forgotten: who asked, when, by which options, how much there was, and what is left. No text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten; it is written in the transaction that forgets."""

    id: int
    forgotten_at: datetime
    """What was said later is not forgotten."""
    actor: str
    home_id: str
    named: tuple[str, ...]
    """The options that were given."""
    counts: Mapping[str, int]
    left: Sequence[str] = ()
    """What could not be reached, in sentences."""


def number(connection: Connection) -> int:
    """The number of the next receipt, with the gate closed; no receipt and no mark has had it."""
    marked: Any = connection.execute(statement("gate/last_receipt")).fetchone()
    row: Any = connection.execute(statement("forget/next_receipt"), {"marked": marked[0]}).fetchone()
    return int(row[0])


def of_expiry(connection: Connection) -> list[int]:
    """The numbers of the receipts of what nobody named: it was only kept too long."""
    rows: list[Any] = connection.execute(statement("forget/of_expiry")).fetchall()
    return [number for (number,) in rows]


def insert(connection: Connection, receipt: Receipt) -> None:
    """Write a receipt, with the gate closed."""
    values = {
        "id": receipt.id, "at": receipt.forgotten_at, "actor": receipt.actor, "home_id": receipt.home_id,
        "named": list(receipt.named), "counts": json.dumps(dict(receipt.counts)), "left": list(receipt.left),
    }  # fmt: skip
    connection.execute(statement("forget/insert_receipt"), values)


def find(connection: Connection, receipt: int) -> Receipt | None:
    """One receipt."""
    row: Any = connection.execute(statement("forget/receipt"), {"id": receipt}).fetchone()
    return None if row is None else _receipt(row)


def listed(connection: Connection, limit: int) -> list[Receipt]:
    """The newest receipts."""
    rows: list[Any] = connection.execute(statement("forget/receipts"), {"limit": limit}).fetchall()
    return [_receipt(row) for row in rows]


def _receipt(row: Any) -> Receipt:
    receipt, at, actor, home_id, named, counts, left = row
    return Receipt(receipt, at, actor, home_id, tuple(named), counts, tuple(left))
