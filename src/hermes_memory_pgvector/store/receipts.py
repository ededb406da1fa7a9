"""Receipts of what was forgotten: who asked, when, by which options, how much there was, and what is left. No text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.terminal.fields import column


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten; it is written in the transaction that forgets."""

    id: int = column("receipt", right=True)
    forgotten_at: datetime = column("when (UTC)")
    """What was said later is not forgotten."""
    actor: str = column("by")
    home_id: str = ""
    named: tuple[str, ...] = column("named", rare=True, default=())
    """The options that were given."""
    counts: Mapping[str, int] = column("rows", text=True, show=amounts.counted)
    left: Sequence[str] = ()
    """What could not be reached, in sentences."""


def number(connection: Connection) -> int:
    """The number of the next receipt, with the gate closed; no receipt and no mark has had it."""
    (marked,) = one(connection, "gate/last_receipt")
    return int(one(connection, "forget/next_receipt", marked=marked)[0])


def of_expiry(connection: Connection) -> list[int]:
    """The numbers of the receipts of what nobody named: it was only kept too long."""
    return [number for (number,) in run(connection, "forget/of_expiry")]


def insert(connection: Connection, receipt: Receipt) -> None:
    """Write a receipt, with the gate closed."""
    run(
        connection, "forget/insert_receipt", id=receipt.id, at=receipt.forgotten_at, actor=receipt.actor,
        home_id=receipt.home_id, named=list(receipt.named), counts=json.dumps(dict(receipt.counts)),
        left=list(receipt.left),
    )  # fmt: skip


def find(connection: Connection, receipt: int) -> Receipt | None:
    """One receipt."""
    return next(map(_receipt, run(connection, "forget/receipts", id=receipt, limit=1)), None)


def listed(connection: Connection, limit: int) -> list[Receipt]:
    """The newest receipts."""
    return list(map(_receipt, run(connection, "forget/receipts", id=None, limit=limit)))


def _receipt(row: Any) -> Receipt:
    *told, named, counts, left = row
    return Receipt(*(*told, tuple(named), counts, tuple(left)))
