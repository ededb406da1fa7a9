"""Finding what somebody names: turns, memories, histories, delegations and logged recalls. Nothing is changed here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import memories, tombstones
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_erasure import without
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.store.selection import Selection, stamps_of, without_stamps
from hermes_memory_pgvector.values import MemoryOperation, RemoveMemory, Target

PAGE = 500
ALL = 2**62
"""Above every number a row has."""

Change = tuple[Placed, MemoryOperation | None]
"""An operation of a history, and what it becomes; None when it goes."""


@dataclass(frozen=True, slots=True)
class Until:
    """Until when something is meant: a time, and for each table the highest number of the rows that were there then.

    A row whose clock was ahead is dated later than it was stored, and is meant all the same.
    """

    at: datetime
    turns: int = 0
    memories: int = 0
    operations: int = 0
    delegations: int = 0
    recalls: int = 0

    @classmethod
    def now(cls, at: datetime) -> Until:
        """Everything that is there."""
        return cls(at, ALL, ALL, ALL, ALL, ALL)

    @property
    def numbers(self) -> list[int]:
        """The numbers alone, in the order of the fields."""
        return [self.turns, self.memories, self.operations, self.delegations, self.recalls]


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn that is meant."""

    theme: str
    id: int
    session_id: str
    role: str
    content: str
    ts: datetime
    metadata: Mapping[str, Any]
    ordinal: int | None
    digest: str
    """Hex digest of the words once said."""


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """An entry that is meant."""

    theme: str
    target: Target
    id: int
    content: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Counted:
    """How many turns of a theme are meant."""

    theme: str
    turns: int
    sessions: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A turn of a session, and whether it is meant."""

    theme: str
    session_id: str
    id: int
    is_meant: bool


@dataclass(frozen=True, slots=True)
class History:
    """What becomes of the operations on one theme and target."""

    theme: str
    target: Target
    plan: tuple[Change, ...]

    @property
    def changes(self) -> list[Change]:
        """Those that do not stay as they are."""
        return [(item, new) for item, new in self.plan if new is not item.operation]

    @property
    def size(self) -> tuple[int, tuple[int, str, int, int]]:
        """Tells whether operations have come since: how many there are, and the place of the last."""
        return len(self.plan), self.plan[-1][0].order if self.plan else (0, "", 0, 0)


def themes(connection: Connection) -> list[str]:
    """Every theme that holds anything."""
    return [str(row[0]) for row in connection.execute(statement("erase/themes")).fetchall()]


def count_turns(connection: Connection, selection: Selection, until: Until) -> list[Counted]:
    """How many turns are meant, by theme."""
    if _names_no_turns(selection):
        return []
    rows: list[Any] = connection.execute(statement("erase/count_turns"), _of_turns(selection, until)).fetchall()
    return [Counted(*row) for row in rows]


def find_turns(connection: Connection, selection: Selection, until: Until, limit: int) -> list[FoundTurn]:
    """Some turns that are meant."""
    if _names_no_turns(selection):
        return []
    values = {**_of_turns(selection, until), "limit": limit}
    rows: list[Any] = connection.execute(statement("erase/find_turns"), values).fetchall()
    return [FoundTurn(*row) for row in rows]


def named_among(
    connection: Connection, selection: Selection, until: Until, keys: Sequence[tuple[str, int]]
) -> list[FoundTurn]:
    """Those of these turns (theme, id) that are meant at this moment."""
    values = {
        **_of_turns(selection, until),
        "themes": [theme for theme, _ in keys],
        "row_ids": [row_id for _, row_id in keys],
    }
    rows: list[Any] = connection.execute(statement("erase/named_among"), values).fetchall()
    return [FoundTurn(*row) for row in rows]


def named_sessions(connection: Connection, selection: Selection, until: Until, above: int = 0) -> list[tuple[str, str]]:
    """The sessions (theme, id) with turns that are meant and have a number above this one."""
    if _names_no_turns(selection):
        return []
    values = {**_of_turns(selection, until), "above": above}
    rows: list[Any] = connection.execute(statement("erase/named_sessions"), values).fetchall()
    return [(str(theme), str(session_id)) for theme, session_id in rows]


def session_turns(
    connection: Connection, selection: Selection, until: Until, sessions: Sequence[tuple[str, str]]
) -> list[SessionTurn]:
    """The turns of sessions, in the order they were said."""
    values = {
        **_of_turns(selection, until),
        "themes": [theme for theme, _ in sessions],
        "session_ids": [session_id for _, session_id in sessions],
    }
    rows: list[Any] = connection.execute(statement("erase/session_keys"), values).fetchall()
    return [SessionTurn(*row) for row in rows]


def find_memories(connection: Connection, selection: Selection, until: Until) -> list[FoundMemory]:
    """Entries that are meant."""
    if selection.authors is not None or (selection.memory_ids is None and selection.turn_ids is not None):
        return []
    ids = None if selection.memory_ids is None else list(selection.memory_ids)
    values = {**selection.values(until.at), "ids": ids, "horizon": until.memories}
    rows: list[Any] = connection.execute(statement("erase/find_memories"), values).fetchall()
    return [FoundMemory(*row) for row in rows]


def find_histories(
    connection: Connection, selection: Selection, until: Until, above: int = 0
) -> list[tuple[str, Target]]:
    """The theme and target of histories that may hold something that is meant, with a number above this one."""
    found = set() if above else {(each.theme, each.target) for each in find_memories(connection, selection, until)}
    if not selection.by_id and selection.authors is None:
        values = {**selection.values(until.at), "horizon": until.operations, "above": above}
        rows: list[Any] = connection.execute(statement("erase/find_histories"), values).fetchall()
        found |= {(theme, target) for theme, target in rows}
    return sorted(found)


def count_operations(connection: Connection, selection: Selection, until: Until) -> int:
    """How many operations of histories would change."""
    return sum(
        len(plan_history(connection, selection, until, theme, target).changes)
        for theme, target in find_histories(connection, selection, until)
    )


def leaving(connection: Connection, selection: Selection, until: Until) -> list[FoundMemory]:
    """Entries that are meant and of which nothing is left; one that somebody added again after the time stays."""
    found = find_memories(connection, selection, until)
    left = {
        group: fold(new for _, new in plan_history(connection, selection, until, *group).plan if new is not None)
        for group in {(each.theme, each.target) for each in found}
    }
    return [each for each in found if each.content not in left[each.theme, each.target]]


def entries_of(
    connection: Connection, selection: Selection, until: Until, theme: str, target: Target
) -> list[FoundMemory]:
    """Entries of one theme and target that are meant."""
    if selection.theme is not None and selection.theme != theme:
        return []
    found = find_memories(connection, replace(selection, theme=theme), until)
    return [each for each in found if each.target == target]


def plan_history(connection: Connection, selection: Selection, until: Until, theme: str, target: Target) -> History:
    """Every operation of a theme and target with what it becomes."""
    items = memories.history(connection, theme, target)
    entries = entries_of(connection, selection, until, theme, target) if selection.by_id else []
    named = {each.content for each in entries}
    cut = tombstones.micros(until.at)
    before = None if selection.before is None else tombstones.micros(selection.before)
    ahead = _ahead(connection, until, theme, target)
    orders = {id(item.operation): item.order for item in items}

    def is_forgotten(text: str, operation: MemoryOperation) -> bool:
        if operation.when.wall_us > cut and orders[id(operation)] not in ahead:
            return False
        if before is not None and operation.when.wall_us >= before:
            return False
        if selection.by_id:
            return text in named
        if selection.session_id is not None and tombstones.session_of(operation) != selection.session_id:
            return False
        return selection.match is None or selection.tells(text)

    operations = [item.operation for item in items]
    told = "\0".join(
        each.content for each in operations if not isinstance(each, RemoveMemory) and is_forgotten(each.content, each)
    )

    def quotes(text: str) -> bool:
        return bool(text) and (selection.tells(text) or text.strip() in told or any(text in each for each in named))

    new = without(operations, is_forgotten, quotes)
    changes = [(item, _without_stamps(each, selection, until)) for item, each in zip(items, new, strict=True)]
    return History(theme, target, tuple(changes))


def find_delegations(connection: Connection, selection: Selection, until: Until, limit: int) -> list[tuple[str, int]]:
    """The keys of delegations that are meant by theme, session or time."""
    if not selection.is_scope:
        return []
    values = {**selection.values(until.at), "horizon": until.delegations, "limit": limit}
    rows: list[Any] = connection.execute(statement("erase/find_delegations"), values).fetchall()
    return [(str(theme), int(edge_id)) for theme, edge_id in rows]


def find_recalls(connection: Connection, selection: Selection, until: Until, limit: int) -> list[tuple[str, int]]:
    """The keys of logged recalls that are meant; none where single rows or speakers are."""
    if selection.names_rows:
        return []
    values = {**selection.values(until.at), "horizon": until.recalls, "limit": limit}
    rows: list[Any] = connection.execute(statement("erase/find_recalls"), values).fetchall()
    return [(str(theme), int(row_id)) for theme, row_id in rows]


def find_stamped(connection: Connection, selection: Selection, until: Until, limit: int) -> list[tuple[str, str, int]]:
    """Rows (table, theme, id) that are not meant by their words, and whose metadata contain the text."""
    if selection.match is None or selection.names_rows:
        return []
    values = {
        **selection.values(until.at),
        "turn_horizon": until.turns,
        "memory_horizon": until.memories,
        "edge_horizon": until.delegations,
        "limit": limit,
    }
    rows: list[Any] = connection.execute(statement("erase/find_stamped"), values).fetchall()
    return [(str(table), str(theme), int(row_id)) for table, theme, row_id in rows]


def _of_turns(selection: Selection, until: Until) -> dict[str, Any]:
    ids = None if selection.turn_ids is None else list(selection.turn_ids)
    return {**selection.values(until.at), "ids": ids, "horizon": until.turns}


def _names_no_turns(selection: Selection) -> bool:
    return selection.turn_ids is None and selection.memory_ids is not None


def _ahead(connection: Connection, until: Until, theme: str, target: Target) -> set[tuple[int, str, int, int]]:
    """The places of operations that are dated later than they were stored."""
    values = {"theme": theme, "target": target, "cut": until.at, "horizon": until.operations}
    rows: list[Any] = connection.execute(statement("erase/operations_ahead"), values).fetchall()
    return {(int(order), str(writer), int(seq), int(part)) for order, writer, seq, part in rows}


def _without_stamps(operation: MemoryOperation | None, selection: Selection, until: Until) -> MemoryOperation | None:
    """An operation whose metadata do not contain the text that is forgotten."""
    if operation is None or selection.match is None or operation.when.wall_us > tombstones.micros(until.at):
        return operation
    if selection.names_rows or not operation.metadata or not any(map(selection.tells, stamps_of(operation.metadata))):
        return operation
    return replace(operation, metadata=without_stamps(operation.metadata, selection.match))


def metadata_json(metadata: Mapping[str, Any]) -> str:
    """Metadata as the statements take them."""
    return json.dumps(dict(metadata), ensure_ascii=False)


def keys_of(rows: Iterable[tuple[str, int]]) -> dict[str, list[Any]]:
    """Keys as the statements take them."""
    listed = list(rows)
    return {"themes": [theme for theme, _ in listed], "ids": [row_id for _, row_id in listed]}
