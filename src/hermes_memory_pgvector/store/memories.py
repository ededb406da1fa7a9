"""Memories in Postgres: the entries are what all operations make of them, in whatever order the operations arrive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.store import flatten, gate, history, mirror_files
from hermes_memory_pgvector.store.memory_state import Entry, Hold, State, apply, fold
from hermes_memory_pgvector.store.turns import EPOCH, time_of
from hermes_memory_pgvector.values import (
    AddMemory,
    DistrustMemories,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
)


class Placed(NamedTuple):
    """An operation and its place in the journal."""

    operation: MemoryOperation
    writer: str
    seq: int
    part: int

    @property
    def order(self) -> tuple[int, str, int, int]:
        """Where it stands among all operations of its theme and target."""
        return (self.operation.when.order_us, self.writer, self.seq, self.part)


def store(connection: Connection, placed: Sequence[Placed]) -> list[tuple[str, int]]:
    """Apply operations exactly once; return (theme, id) of entries that are new or have new content."""
    placed = _admitted(connection, placed)
    homes = sorted({item.operation.home_id for item in placed if item.operation.origin is Origin.TOOL})
    if homes:
        # A mirror that compares at the same moment would take the entries reported here for somebody else's.
        run(connection, "memories/lock_homes", home_ids=homes)
    groups: dict[tuple[str, Target], list[Placed]] = {}
    for item in placed:
        groups.setdefault((item.operation.theme, item.operation.target), []).append(item)
    changed: list[tuple[str, int]] = []
    moved: list[Placed] = []
    # A fixed order of locks keeps two writers with the same themes from waiting for each other.
    for (theme, target), items in sorted(groups.items()):
        run(connection, "memories/lock", theme=theme, target=target)
        # A batch may bring an operation twice, and a removal done twice would take an entry nobody named.
        once = {item.order: item for item in items}
        last = one(connection, "memories/last_operation", theme=theme, target=target)
        fresh = record(connection, theme, target, [once[order] for order in sorted(once)])
        if not fresh:
            continue
        before = entries(connection, theme, target)
        is_late = last is not None and fresh[0].order < last
        after = _folded(connection, theme, target, before) if is_late else _applied(before, fresh)
        changed += set_entries(connection, theme, target, before, after)
        _unsee(connection, target, fresh, before, after)
        moved += _given_up(connection, theme, target, fresh, after)
    # The other themes may lie in other buckets.
    for part in buckets.apart(connection, moved, lambda each: each.operation.theme) if moved else ():
        changed += store(connection, part)
    return changed


def _admitted(connection: Connection, placed: Sequence[Placed]) -> list[Placed]:
    """The operations that may be stored, under the names their themes have now.

    What was forgotten is left out, also under its theme's old name. An operation that may quote it names what it means.
    """
    if not placed:
        return []
    opened = gate.enter(connection)
    in_order = sorted(placed, key=lambda each: each.order)
    refused = opened.refused(connection, [item.operation for item in in_order])
    kept: list[Placed] = []
    for item, is_refused in zip(in_order, refused, strict=True):
        if is_refused:
            continue
        operation: MemoryOperation | None = opened.renamed(item.operation)
        assert operation is not None
        if opened.may_quote(item.operation):
            theme, target = operation.theme, operation.target
            earlier = {each.order: each.operation() for each in history.of_theme(connection, theme, target)}
            beside = [each for each in kept if (each.operation.theme, each.operation.target) == (theme, target)]
            earlier |= {each.order: each.operation for each in beside}
            state = fold(earlier[order] for order in sorted(earlier) if order < item.order)
            operation = flatten.exactly(operation, state)
        if operation is not None:
            kept.append(item._replace(operation=operation))
    return kept


def _applied(before: State, fresh: Sequence[Placed]) -> State:
    after = dict(before)
    for item in fresh:
        apply(after, item.operation)
    return after


def _folded(connection: Connection, theme: str, target: Target, before: State) -> State:
    """What all operations make, and what stands there without one: rows that somebody has inserted by hand."""
    told = [event.operation() for event in history.of_theme(connection, theme, target)]
    said = {_content(operation) for operation in told}
    hidden = {content: entry.hidden_by for content, entry in before.items() if entry.hidden_by is not None}
    state = fold(told, hidden, {content: entry for content, entry in before.items() if content not in said})
    return {
        content: replace(before[content], homes=entry.homes) if content in before else entry
        for content, entry in state.items()
    }


def _unsee(connection: Connection, target: Target, items: Sequence[Placed], before: State, after: State) -> None:
    """Entries that a home's tool took out of its file are news when they stand there again."""
    homes = {item.operation.home_id for item in items if item.operation.origin is Origin.TOOL} - {""}
    for home in sorted(homes):
        left = [
            content
            for content, entry in before.items()
            if home in entry.homes and (content not in after or home not in after[content].homes)
        ]
        if left:
            mirror_files.unsee(connection, home, target, left)


def _given_up(
    connection: Connection, theme: str, target: Target, items: Sequence[Placed], state: State
) -> list[Placed]:
    """Removals of what a home holds in other themes by its file alone, now that a tool has said which theme it is of.

    A home holds an entry in one theme, and a tool's word beats a file's.
    """
    announced = [item for item in items if _is_announced(item.operation, state)]
    if not announced:
        return []
    values = {
        "theme": theme,
        "target": target,
        "home_ids": [item.operation.home_id for item in announced],
        "contents": [_content(item.operation) for item in announced],
    }
    told = buckets.reached(connection, lambda each: run(each, "memories/held_elsewhere", **values).fetchall())
    moved = []
    for number, (place, other, newest) in enumerate(row for rows in told.values() for row in rows):
        item = announced[place - 1]
        # It takes back what the file said, so it comes after it, however late the report has arrived.
        when = Moment(item.operation.when.wall_us, (newest or 0) + 1)
        removal = RemoveMemory(
            other, target, "", when, item.operation.home_id, previous=_content(item.operation), origin=Origin.FILE
        )
        moved.append(Placed(removal, item.writer, item.seq, item.part + 10_000 + number))
    return moved


def _is_announced(operation: MemoryOperation, state: State) -> bool:
    """Whether a hook has reported this entry and its home still holds it."""
    if isinstance(operation, RemoveMemory) or operation.origin is not Origin.TOOL or not operation.home_id:
        return False
    entry = state.get(operation.content)
    return entry is not None and operation.home_id in entry.homes


def _content(operation: MemoryOperation) -> str:
    return "" if isinstance(operation, RemoveMemory) else operation.content


ACTIONS = {AddMemory: "add", ReplaceMemory: "replace", RemoveMemory: "remove"}


def record(connection: Connection, theme: str, target: Target, items: Sequence[Placed]) -> list[Placed]:
    """Record operations of one theme and target, whose entries stay as they are; return those that are new."""
    if not items:
        return []
    operations = [item.operation for item in items]
    found = run(
        connection,
        "memories/insert_operations",
        theme=theme,
        target=target,
        orders=[operation.when.order_us for operation in operations],
        writers=[item.writer for item in items],
        seqs=[item.seq for item in items],
        parts=[item.part for item in items],
        actions=[ACTIONS[type(operation)] for operation in operations],
        contents=[_content(operation) for operation in operations],
        old_texts=["" if isinstance(operation, AddMemory) else operation.old_text for operation in operations],
        previous=[None if isinstance(operation, AddMemory) else operation.previous for operation in operations],
        home_ids=[operation.home_id for operation in operations],
        origins=[operation.origin.value for operation in operations],
        ats=[time_of(operation.when) for operation in operations],
        metadata=[_json(operation.metadata) for operation in operations],
        written_by=[operation.written_by for operation in operations],
        untrusted=[operation.untrusted for operation in operations],
    )
    new = set(found)
    return [item for item in items if item.order[1:] in new]


def distrust(connection: Connection, item: DistrustMemories) -> None:
    """Mark what some calls of the memory tool wrote from a stranger's text."""
    item = gate.enter(connection).renamed(item)
    values = {
        "theme": item.theme,
        "session_id": item.session_id,
        "calls": list(item.calls),
        "at": time_of(item.when),
        "tools": _json({"tools": list(item.tools)}),
    }
    run(connection, "memories/distrust_operations", **values)
    run(connection, "memories/distrust_entries", **values)
    asked = {name: value for name, value in values.items() if name != "tools"}
    read = [number for (number,) in run(connection, "memories/read_first", **asked).fetchall()]
    if read:
        run(connection, "memories/distrust_read", theme=item.theme, ids=read, tools=values["tools"])


def entries(connection: Connection, theme: str, target: Target) -> State:
    """The entries of a theme and target as they are."""
    return {
        content: Entry(
            content,
            {home: Hold(Origin(held["o"]), int(held["s"])) for home, held in homes.items()},
            (created - EPOCH) // history.MICROSECOND,
            (updated - EPOCH) // history.MICROSECOND,
            metadata,
            row_id,
            hidden_by,
            origin and RowOrigin(origin),
            home_id or "",
            untrusted,
        )
        for row_id, content, created, updated, metadata, hidden_by, origin, home_id, untrusted, homes in run(
            connection, "memories/entries", theme=theme, target=target
        )
    }


def set_entries(
    connection: Connection, theme: str, target: Target, before: State, after: State
) -> list[tuple[str, int]]:
    """Turn the entries of a theme and target into others; return (theme, id) of those with new words.

    An entry that gets other words keeps its number, and leaves its vectors behind.
    """
    by_id = {entry.id: entry for entry in before.values()}
    new: list[Entry] = []
    kept: list[Entry] = []
    for content, entry in after.items():
        known = by_id[entry.id] if entry.id is not None else before.get(content)
        if known is None or known.content != content:
            new.append(entry)
        else:
            kept.append(replace(entry, id=known.id))
    staying = {entry.id for entry in kept}
    gone = [entry.id for entry in before.values() if entry.id not in staying]
    if gone:
        run(connection, "memories/delete", theme=theme, ids=gone)
    noted = [entry for entry in kept if _notes(entry) != _notes(before[entry.content])]
    if noted:
        run(
            connection, "memories/note", theme=theme, ids=[entry.id for entry in noted],
            holders=[_homes(entry) for entry in noted], metadata=[_json(entry.metadata) for entry in noted],
        )  # fmt: skip
    if not new:
        return []
    found = run(
        connection,
        "memories/insert",
        theme=theme,
        target=target,
        ids=[entry.id for entry in new],
        contents=[entry.content for entry in new],
        created=[time_of(Moment(entry.created_us, 0)) for entry in new],
        updated=[time_of(Moment(entry.updated_us, 0)) for entry in new],
        metadata=[_json(entry.metadata) for entry in new],
        holders=[_homes(entry) for entry in new],
        hidden=[entry.hidden_by for entry in new],
        origins=[entry.origin for entry in new],
        home_ids=[entry.home_id for entry in new],
        untrusted=[entry.untrusted for entry in new],
    )
    return [(theme, row_id) for (row_id,) in found]


def _notes(entry: Entry) -> tuple[Any, Any]:
    return entry.homes, entry.metadata


def _homes(entry: Entry) -> str:
    return _json({home: {"o": held.origin.value, "s": held.since_us} for home, held in entry.homes.items()})


def _json(value: Any) -> str:
    return json.dumps(dict(value), ensure_ascii=False)
