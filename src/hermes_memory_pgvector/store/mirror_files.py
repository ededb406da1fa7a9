"""What the mirror needs of the database: each home's files as last compared, and the entries each home holds."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.values import Target


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the last comparison of a file left behind."""

    withheld: frozenset[bytes]
    """Keyed hashes of forgotten entries that the file held."""
    at: datetime | None
    """When it was; None when the file was never compared."""


@dataclass(frozen=True, slots=True)
class HeldEntry:
    """An entry that a home holds."""

    theme: str
    content: str
    since: datetime


def lock_home(connection: Connection, home_id: str) -> None:
    """Wait for memory writes of this home that are being stored, and hold back new ones until the transaction ends."""
    connection.execute(statement("mirror/lock_home"), {"home_id": home_id})


def open_file(connection: Connection, home_id: str, target: Target) -> list[str]:
    """A home's file as last compared, created if it is new; locked against the home's other processes."""
    key = {"home_id": home_id, "target": target}
    connection.execute(statement("mirror/create_file"), key)
    row: Any = connection.execute(statement("mirror/lock_file"), key).fetchone()
    return list(row[0])


def read_file(connection: Connection, home_id: str, target: Target) -> list[str]:
    """A home's file as last compared, locked; empty when there is none."""
    row: Any = connection.execute(statement("mirror/lock_file"), {"home_id": home_id, "target": target}).fetchone()
    return [] if row is None else list(row[0])


def write_file(connection: Connection, home_id: str, target: Target, entries: list[str]) -> None:
    """Remember what a home's file holds now."""
    values = {"home_id": home_id, "target": target, "entries": json.dumps(entries)}
    connection.execute(statement("mirror/set_file"), values)


def last_comparison(connection: Connection, home_id: str, target: Target) -> Comparison:
    """What the last comparison of a home's file left behind."""
    row: Any = connection.execute(
        statement("mirror/last_comparison"), {"home_id": home_id, "target": target}
    ).fetchone()
    return Comparison(frozenset(), None) if row is None else Comparison(frozenset(map(bytes, row[0])), row[1])


def note_comparison(connection: Connection, home_id: str, target: Target, withheld: Collection[bytes]) -> None:
    """Remember which forgotten entries a home's file still holds, and that it was compared now."""
    values = {"home_id": home_id, "target": target, "withheld": sorted(withheld)}
    connection.execute(statement("mirror/note_comparison"), values)


def held_entries(connection: Connection, home_id: str, target: Target) -> list[HeldEntry]:
    """The entries that a home holds, with their themes."""
    rows: list[Any] = connection.execute(statement("mirror/held"), {"home_id": home_id, "target": target}).fetchall()
    return [HeldEntry(theme, content, since) for theme, content, since in rows]
