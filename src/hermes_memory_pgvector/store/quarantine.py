"""Quarantines: batches of rows that are kept and left out of every search. Within the caller's transaction.

A row in a quarantine keeps its vectors and words; the search reads which ids it must leave out (`hermes_excluded`). A
trigger holds rows that arrive late and that a quarantine is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store.browse import Row
from hermes_memory_pgvector.store.taking_along import MutedTurn
from hermes_memory_pgvector.values import Kind

MOST_LISTED = 1000
IMPORTED = "import"
"""Who made the quarantine of what an import brought."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which rows are meant; whatever is given must all hold."""

    session_id: str | None = None
    origin: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    theme: str | None = None

    def values(self) -> dict[str, Any]:
        """What the statements take."""
        return {
            "theme": self.theme,
            "session_id": self.session_id,
            "origin": self.origin,
            "since": self.since,
            "until": self.until,
        }


@dataclass(frozen=True, slots=True)
class Concerned:
    """How many rows of a theme a rule is about."""

    theme: str
    turns: int = 0
    memories: int = 0
    held: int = 0
    """How many of them are in a quarantine already."""
    in_files: int = 0
    """How many memories stand in a home's MEMORY.md or USER.md, and so in the host's own prompt."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A batch, and what is in it."""

    id: int
    at: datetime
    actor: str
    rule: Rule
    is_rule: bool
    """False for what an import brought, and for what was forgotten since: no late row joins it."""
    undone_at: datetime | None
    turns: int
    memories: int


def concerned(connection: Connection, rule: Rule) -> list[Concerned]:
    """How many rows a rule is about, by theme."""
    turns: list[Any] = connection.execute(statement("quarantine/count_turns"), rule.values()).fetchall()
    memories: list[Any] = connection.execute(statement("quarantine/count_memories"), rule.values()).fetchall()
    found = {theme: Concerned(theme, turns=count, held=held) for theme, count, held in turns}
    for theme, count, held, in_files in memories:
        known = found.get(theme, Concerned(theme))
        found[theme] = Concerned(theme, known.turns, count, known.held + held, in_files)
    return sorted(found.values(), key=lambda each: (-each.turns - each.memories, each.theme))


def samples(connection: Connection, rule: Rule, limit: int) -> list[Row]:
    """Some of the rows a rule is about, the newest first."""
    values = {**rule.values(), "limit": limit}
    turns: list[Any] = connection.execute(statement("quarantine/sample_turns"), values).fetchall()
    memories: list[Any] = connection.execute(statement("quarantine/sample_memories"), values).fetchall()
    found = [
        Row(Kind.TURN, row_id, theme, at, content, role, session_id, None, origin, trust)
        for theme, row_id, at, session_id, role, content, _, origin, trust in turns
    ]
    found += [
        Row(Kind.MEMORY, row_id, theme, at, content, target, None, None, origin, trust)
        for theme, row_id, at, target, content, _, origin, trust in memories
    ]
    return sorted(found, key=lambda row: row.at, reverse=True)[:limit]


def hold(connection: Connection, rule: Rule, actor: str, home_id: str) -> Quarantine:
    """Take everything a rule is about out of recall, with the gate closed: nobody stores such a row meanwhile."""
    number, at = _begin(connection, rule, actor, home_id, None, is_rule=True)
    values = {**rule.values(), "id": number}
    turns = connection.execute(statement("quarantine/hold_turns"), values).rowcount
    memories = connection.execute(statement("quarantine/hold_memories"), values).rowcount
    return Quarantine(number, at, actor, rule, True, None, turns, memories)


def release(connection: Connection, number: int) -> tuple[int, int]:
    """End a quarantine; return how many turns and memories were in it."""
    values = {"id": number}
    connection.execute(statement("quarantine/undo"), values)
    turns = connection.execute(statement("quarantine/release_turns"), values).rowcount
    return turns, connection.execute(statement("quarantine/release_memories"), values).rowcount


def listed(connection: Connection, number: int | None = None) -> list[Quarantine]:
    """All quarantines, the newest first, or one."""
    values = {"id": number, "limit": MOST_LISTED}
    rows: list[Any] = connection.execute(statement("quarantine/list"), values).fetchall()
    return [
        Quarantine(
            made, at, actor, Rule(session_id, origin, since, until, theme), is_rule, undone_at, int(turns),
            int(memories),
        )
        for made, at, actor, theme, session_id, origin, since, until, is_rule, undone_at, turns, memories in rows
    ]  # fmt: skip


def totals(connection: Connection) -> tuple[int, int]:
    """How many turns and memories are in a quarantine."""
    row: Any = connection.execute(statement("quarantine/totals")).fetchone()
    return int(row[0]), int(row[1])


def of_row(connection: Connection, kind: Kind, theme: str, row_id: int) -> tuple[int, ...]:
    """The quarantines a row is in."""
    name = "quarantine/of_memory" if kind is Kind.MEMORY else "quarantine/of_turn"
    rows: list[Any] = connection.execute(statement(name), {"theme": theme, "id": row_id}).fetchall()
    return tuple(int(row[0]) for row in rows)


def bring_turns(connection: Connection, brought: Sequence[MutedTurn]) -> None:
    """Take turns out of recall that were in a quarantine where they come from; their time is since when."""
    numbers = _brought(connection, [turn.at for turn in brought])
    values = {
        "themes": [turn.theme for turn in brought],
        "session_ids": [turn.session_id for turn in brought],
        "digests": [turn.digest for turn in brought],
        "ordinals": [turn.ordinal for turn in brought],
        "quarantine_ids": [numbers[turn.at] for turn in brought],
    }
    connection.execute(statement("quarantine/hold_brought_turns"), values)


def bring_memories(connection: Connection, brought: Sequence[tuple[str, int, datetime]]) -> None:
    """The same for memories: theme, id, since when."""
    numbers = _brought(connection, [at for _, _, at in brought])
    values = {
        "themes": [theme for theme, _, _ in brought],
        "ids": [row_id for _, row_id, _ in brought],
        "quarantine_ids": [numbers[at] for _, _, at in brought],
    }
    connection.execute(statement("quarantine/hold_brought_memories"), values)


def _brought(connection: Connection, times: Sequence[datetime]) -> dict[datetime, int]:
    found: dict[datetime, int] = {}
    for at in dict.fromkeys(times):
        row: Any = connection.execute(statement("quarantine/brought"), {"at": at, "actor": IMPORTED}).fetchone()
        found[at] = int(row[0]) if row else _begin(connection, Rule(), IMPORTED, "", at, is_rule=False)[0]
    return found


def _begin(
    connection: Connection, rule: Rule, actor: str, home_id: str, at: datetime | None, *, is_rule: bool
) -> tuple[int, datetime]:
    values = {**rule.values(), "actor": actor, "home_id": home_id, "at": at, "is_rule": is_rule}
    row: Any = connection.execute(statement("quarantine/begin"), values).fetchone()
    return int(row[0]), row[1]
