"""What quarantines hold of one theme. Within the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store.browse import Place, Row
from hermes_memory_pgvector.values import Kind


def counts(connection: Connection, theme: str) -> dict[int, tuple[int, int]]:
    """How many turns and memories of a theme each quarantine holds."""
    rows: list[Any] = connection.execute(statement("quarantine/in_theme"), {"theme": theme}).fetchall()
    return {int(number): (int(turns), int(memories)) for number, turns, memories in rows}


def turns(connection: Connection, theme: str, number: int, before: Place | None, limit: int) -> list[Row]:
    """Turns of a theme in a quarantine, newest first."""
    rows: list[Any] = connection.execute(
        statement("quarantine/held_turns"), _values(theme, number, before, limit)
    ).fetchall()
    return [
        Row(Kind.TURN, row_id, name, at, content, role, session_id, None, origin, trust)
        for name, row_id, at, session_id, role, content, _, origin, trust in rows
    ]


def memories(connection: Connection, theme: str, number: int, before: Place | None, limit: int) -> list[Row]:
    """Memories of a theme in a quarantine, last changed first."""
    rows: list[Any] = connection.execute(
        statement("quarantine/held_memories"), _values(theme, number, before, limit)
    ).fetchall()
    return [
        Row(Kind.MEMORY, row_id, name, at, content, target, None, None, origin, trust)
        for name, row_id, at, target, content, _, origin, trust in rows
    ]


def among(connection: Connection, theme: str, rows: Iterable[Row]) -> set[tuple[Kind, int]]:
    """Which of these rows of a theme are in a quarantine."""
    ids: dict[Kind, list[int]] = {Kind.TURN: [], Kind.MEMORY: []}
    for row in rows:
        ids[row.kind].append(row.id)
    values = {"theme": theme, "turn_ids": ids[Kind.TURN], "memory_ids": ids[Kind.MEMORY]}
    found: list[Any] = connection.execute(statement("quarantine/among"), values).fetchall()
    return {(Kind.TURN if is_turn else Kind.MEMORY, int(row_id)) for is_turn, row_id in found}


def _values(theme: str, number: int, before: Place | None, limit: int) -> dict[str, Any]:
    return {
        "theme": theme,
        "id": number,
        "before": None if before is None else before.at,
        "before_id": None if before is None else before.id,
        "limit": limit,
    }
