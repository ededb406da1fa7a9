"""Moving everything of one theme into another, a little at a time.

Each step is a transaction of its own and leaves a state that the next one, or another process, goes on from. Since the
alias is there from the first step on, nothing new comes to the old theme meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.erasure import change_operation, drop_pending
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_state import State, apply, fold, select
from hermes_memory_pgvector.values import (
    TARGETS,
    AddMemory,
    Kind,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    Target,
)

BATCH = 500
WRITER = "remap"
"""Stands in a history for what no journal holds."""
SAME_SECONDS = 600.0
"""The same words under the same key, no further apart than this, are one turn that came twice."""


@dataclass(frozen=True, slots=True)
class Contents:
    """How much a theme holds."""

    turns: int
    memories: int
    history: int
    delegations: int
    recall_log: int
    duplicates: int
    """Memories that the other theme has, too."""
    indexes: int
    """Indexes of the theme's own."""

    @property
    def total(self) -> int:
        """How many rows are to be moved."""
        return self.turns + self.memories + self.history + self.delegations + self.recall_log


@dataclass(slots=True)
class Moved:
    """What was moved, and what was folded into what was there."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, count: int) -> None:
        """Count."""
        self.counts[name] = self.counts.get(name, 0) + count


def contents(connection: Connection, theme: str, other: str) -> Contents:
    """What a theme holds, and what another one has of it."""
    row: Any = connection.execute(statement("remap/count"), {"theme": theme, "other": other}).fetchone()
    return Contents(*map(int, row))


def alias_of(connection: Connection, theme: str) -> tuple[str, datetime | None] | None:
    """Where a theme was moved to and when that was finished; None when it was not."""
    row: Any = connection.execute(statement("remap/alias"), {"old": theme}).fetchone()
    return None if row is None else (str(row[0]), row[1])


def begin(connection: Connection, old: str, new: str) -> None:
    """With the gate closed: from now on, what is written to the old name goes to the new one."""
    connection.execute(statement("remap/revive"), {"theme": new})
    connection.execute(statement("remap/redirect"), {"old": old, "new": new})
    connection.execute(statement("remap/begin"), {"old": old, "new": new})
    connection.execute(statement("quarantine/move"), {"old": old, "new": new})


def finish(connection: Connection, old: str) -> None:
    """Everything has been moved."""
    connection.execute(statement("remap/finish"), {"old": old})


def step(connection: Connection, old: str, new: str, moved: Moved) -> bool:
    """Move some rows; False when there are none left."""
    connection.execute(statement("remap/lock"))
    return (
        any(_move_memories(connection, old, new, target, moved) for target in TARGETS)
        or _move_turns(connection, old, new, moved)
        or _move_delegations(connection, old, new, moved)
        or _move_recalls(connection, old, new, moved)
        or _move_agents(connection, old, new)
    )


def _move_turns(connection: Connection, old: str, new: str, moved: Moved) -> bool:
    names = {"theme": old, "other": new}
    rows: list[Any] = connection.execute(
        statement("remap/turns"), {**names, "window": SAME_SECONDS, "limit": BATCH}
    ).fetchall()
    ids: list[int] = []
    ordinals: list[int | None] = []
    twins: list[int] = []
    last: dict[tuple[str, bytes | None], int] = {}
    for _, ordinal, _, highest, session_id, digest in rows:
        last[session_id, digest] = max(last.get((session_id, digest), 0), ordinal or 0, highest or 0)
    for row_id, ordinal, is_same, _, session_id, digest in rows:
        if is_same:
            twins.append(row_id)
            continue
        ids.append(row_id)
        if is_same is None:
            # Its number is how a retry or a recovery knows it again.
            ordinals.append(ordinal)
            continue
        # Said in the other theme's session of the same name, at another time: one occurrence more.
        last[session_id, digest] += 1
        ordinals.append(last[session_id, digest])
    if twins:
        gone = {"themes": [old] * len(twins), "ids": twins}
        moved.add("duplicates", connection.execute(statement("erase/drop_turns"), gone).rowcount)
        drop_pending(connection, [(old, Kind.TURN.value, row_id) for row_id in twins])
    if ids:
        moving = {**names, "ids": ids}
        moved.add("turns", connection.execute(statement("remap/move_turns"), {**moving, "ordinals": ordinals}).rowcount)
        connection.execute(statement("remap/move_pending"), {**moving, "kind": Kind.TURN.value})
    return bool(rows)


def _move_delegations(connection: Connection, old: str, new: str, moved: Moved) -> bool:
    names = {"theme": old, "other": new}
    rows: list[Any] = connection.execute(statement("remap/delegations"), {**names, "limit": BATCH}).fetchall()
    twins = [row_id for row_id, is_there in rows if is_there]
    if twins:
        connection.execute(statement("erase/drop_delegations"), {"themes": [old] * len(twins), "ids": twins})
    ids = [row_id for row_id, is_there in rows if not is_there]
    if ids:
        moved.add(
            "delegations", connection.execute(statement("remap/move_delegations"), {**names, "ids": ids}).rowcount
        )
    return bool(rows)


def _move_recalls(connection: Connection, old: str, new: str, moved: Moved) -> bool:
    rows: list[Any] = connection.execute(statement("remap/recalls"), {"theme": old, "limit": BATCH}).fetchall()
    if rows:
        values = {"theme": old, "other": new, "ids": [row_id for (row_id,) in rows]}
        moved.add("recall_log", connection.execute(statement("remap/move_recalls"), values).rowcount)
    return bool(rows)


def _move_agents(connection: Connection, old: str, new: str) -> bool:
    return connection.execute(statement("remap/agents"), {"theme": old, "other": new}).rowcount > 0


def _move_memories(connection: Connection, old: str, new: str, target: Target, moved: Moved) -> bool:
    """Move the entries and the history of a target; both themes' operations then name exactly what they meant."""
    for theme in sorted((old, new)):
        connection.execute(statement("memories/lock"), {"theme": theme, "target": target})
    names: dict[str, Any] = {"theme": old, "other": new, "target": target}
    history = memories.history(connection, old, target)
    rows: list[Any] = connection.execute(statement("remap/entries"), names).fetchall()
    if not history and not rows:
        return False
    if history:
        for theme, items in ((old, history), (new, memories.history(connection, new, target))):
            _name_exactly(connection, theme, target, items)
        columns = {
            "orders": [item.operation.when.order_us for item in history],
            "writers": [item.writer for item in history],
            "seqs": [item.seq for item in history],
            "parts": [item.part for item in history],
        }
        moved.add("history", connection.execute(statement("remap/move_operations"), {**names, **columns}).rowcount)
    twins = {row_id: same for row_id, same in rows if same is not None}
    ids = [row_id for row_id, same in rows if same is None]
    held: list[Any] = connection.execute(
        statement("remap/sources"), {"theme": old, "ids": [row_id for row_id, _ in rows]}
    ).fetchall()
    dropped = {"ids": [each[0] for each in held], "home_ids": [each[1] for each in held]}
    # An entry that homes hold cannot change its theme while they do.
    connection.execute(statement("memories/drop_sources"), {"theme": old, **dropped})
    if ids:
        moved.add("memories", connection.execute(statement("remap/move_entries"), {**names, "ids": ids}).rowcount)
        connection.execute(statement("remap/move_pending"), {**names, "ids": ids, "kind": Kind.MEMORY.value})
    if twins:
        connection.execute(statement("memories/delete"), {"theme": old, "ids": list(twins)})
        drop_pending(connection, [(old, Kind.MEMORY.value, row_id) for row_id in twins])
        moved.add("duplicates", len(twins))
    connection.execute(
        statement("remap/add_sources"),
        {
            "theme": new,
            "ids": [twins.get(each[0], each[0]) for each in held],
            "home_ids": [each[1] for each in held],
            "origins": [each[2] for each in held],
            "sinces": [each[3] for each in held],
        },
    )
    _complete_history(connection, new, target)
    return True


def _complete_history(connection: Connection, theme: str, target: Target) -> None:
    """Add what makes the merged history lead to the entries that are there.

    A home that gave up an entry in one theme gave up nothing in the other, but the two histories in one say it did.
    """
    items = memories.history(connection, theme, target)
    rows = memories.entries(connection, theme, target)
    told = fold(item.operation for item in items)
    order = max((item.operation.when.order_us for item in items), default=0)
    missing: list[MemoryOperation] = []

    def next_moment(wall_us: int) -> Moment:
        return Moment(wall_us, order + 1 + len(missing))

    for content, entry in rows.items():
        known = told.get(content)
        homes = {home: origin for home, origin in entry.homes.items() if known is None or home not in known.homes}
        if known is None and not homes:
            homes = {"": Origin.FILE}
        for home, origin in sorted(homes.items()):
            when = next_moment(entry.updated_us)
            missing.append(
                AddMemory(theme, target, content, when, home, origin, entry.metadata, entry.origin, entry.trust)
            )
    for content, entry in told.items():
        if content not in rows:
            for home in sorted(entry.homes) or [""]:
                when = next_moment(entry.updated_us)
                missing.append(RemoveMemory(theme, target, "", when, home, previous=content, origin=Origin.FILE))
    placed = [Placed(operation, WRITER, number, 0) for number, operation in enumerate(missing)]
    memories.record(connection, theme, target, placed)


def _name_exactly(connection: Connection, theme: str, target: Target, items: Sequence[Placed]) -> None:
    """Write down which entry each operation meant: beside more entries, a part of its text may mean another one."""
    state: State = {}
    for item in items:
        operation = item.operation
        if not isinstance(operation, AddMemory) and operation.old_text:
            meant = select(state, operation)
            exact = replace(operation, old_text="", previous=None if meant is None else meant.content)
            change_operation(connection, theme, target, item, exact)
        apply(state, operation)
