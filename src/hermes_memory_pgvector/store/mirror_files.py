"""What the mirror needs of the database: each home's files as last compared, and the entries each home holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.values import Target


class HeldEntry(NamedTuple):
    """An entry that a home holds."""

    theme: str
    content: str
    since_us: int


def digest_of(entry: str) -> bytes:
    """What stands for an entry in a file as last compared."""
    return hashlib.sha256(entry.encode("utf-8", "surrogatepass")).digest()


def lock_home(connection: Connection, home_id: str) -> None:
    """Wait for whoever compares or announces memories of this home, and keep them out until the transaction ends."""
    run(connection, "mirror/lock_home", home_id=home_id)


@dataclass(frozen=True, slots=True)
class ComparedFile:
    """A home's file as last compared."""

    digests: list[bytes]
    written_us: int
    """When it had been written."""


def last_comparison(connection: Connection, home_id: str, target: Target) -> ComparedFile | None:
    """A home's file as last compared; None when it never was."""
    row = one(connection, "mirror/last_comparison", home_id=home_id, target=target)
    return None if row is None else ComparedFile(*row)


def write_file(connection: Connection, home_id: str, target: Target, file: ComparedFile, now: datetime) -> None:
    """Remember what a home's file holds now."""
    run(
        connection, "mirror/set_file", home_id=home_id, target=target, digests=file.digests,
        written_us=file.written_us, now=now,
    )  # fmt: skip


def unsee(connection: Connection, home_id: str, target: Target, entries: Iterable[str]) -> None:
    """A home's tool has taken these entries out: when they stand in its file again, they are news."""
    run(connection, "mirror/unsee", home_id=home_id, target=target, digests=list(map(digest_of, entries)))


def held_entries(connection: Connection, home_id: str, target: Target) -> list[HeldEntry]:
    """The entries that a home holds, with their themes."""
    return [HeldEntry(*row) for row in run(connection, "mirror/held", home_id=home_id, target=target)]
