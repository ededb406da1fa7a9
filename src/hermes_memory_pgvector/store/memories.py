"""Memories in Postgres: the entries are the fold of all operations, whatever order those arrive in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from hermes_memory_pgvector.fold import Entry, State, apply, fold
from hermes_memory_pgvector.model import (
    AddMemory,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    Target,
)
from hermes_memory_pgvector.searchtext import memory_lexemes
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import model_statement, statement
from hermes_memory_pgvector.store.turns import EPOCH, time_of


@dataclass(frozen=True, slots=True)
class Placed:
    """An operation and its place in the journal."""

    operation: MemoryOperation
    writer: str
    seq: int
    part: int

    @property
    def order(self) -> tuple[int, str, int, int]:
        """Where it stands among all operations of its theme and target."""
        return (self.operation.when.order_us, self.writer, self.seq, self.part)


def store(connection: Connection, placed: Sequence[Placed], model_id: int | None) -> list[tuple[str, int]]:
    """Apply operations exactly once; return (theme, id) of entries that are new or have new content."""
    homes = sorted({item.operation.home_id for item in placed if item.operation.origin is Origin.TOOL})
    if homes:
        # A mirror that compares at the same moment would take what is announced here for somebody else's.
        connection.execute(statement("memory_homes_lock"), {"home_ids": homes})
    groups: dict[tuple[str, Target], list[Placed]] = {}
    for item in placed:
        groups.setdefault((item.operation.theme, item.operation.target), []).append(item)
    changed: list[tuple[str, int]] = []
    moved: list[Placed] = []
    # A fixed order of locks keeps two writers with the same themes from waiting for each other.
    for (theme, target), items in sorted(groups.items()):
        connection.execute(statement("memory_lock"), {"theme": theme, "target": target})
        rows = _Rows(connection, theme, target, model_id)
        fresh, state = _store_group(connection, rows, sorted(items, key=lambda item: item.order))
        changed += rows.changed
        moved += [extra for item in fresh for extra in _withdrawn_guesses(connection, item, state)]
    return changed + (store(connection, moved, model_id) if moved else [])


def _store_group(connection: Connection, rows: _Rows, items: Sequence[Placed]) -> tuple[list[Placed], State]:
    """Apply the operations of one theme and target; which of them were new, and what the theme holds now."""
    last: Any = connection.execute(statement("memory_operations_last"), rows.key).fetchone()
    fresh = [item for item in items if _record(connection, item)]
    if not fresh:
        return [], {}
    if last is not None and fresh[0].order < tuple(last):
        everything = fold(_all_operations(connection, rows.theme, rows.target))
        rows.make_equal(rows.load(everything=True), everything, fresh[-1].operation.when)
        return fresh, everything
    state = rows.load(operations=[item.operation for item in fresh])
    for item in fresh:
        before = dict(state)
        apply(state, item.operation)
        rows.make_equal(before, state, item.operation.when)
    return fresh, state


def _withdrawn_guesses(connection: Connection, item: Placed, state: State) -> list[Placed]:
    """Removals of what the mirror put into another theme in the moment before the theme that wrote it spoke up."""
    operation = item.operation
    if isinstance(operation, RemoveMemory) or operation.origin is not Origin.TOOL or not operation.home_id:
        return []
    if operation.content not in state or operation.home_id not in state[operation.content].homes:
        # Taken back since: whoever holds it now has come by it in another way.
        return []
    rows: list[Any] = connection.execute(
        statement("memory_guessed_elsewhere"),
        {
            "home_id": operation.home_id,
            "theme": operation.theme,
            "target": operation.target,
            "content": operation.content,
            "at": time_of(operation.when),
        },
    ).fetchall()
    return [
        Placed(
            RemoveMemory(
                # It takes back the guess, so it comes after it, however late the announcement has arrived.
                str(theme), operation.target, "", Moment(operation.when.wall_us, int(newest) + 1), operation.home_id,
                previous=operation.content, origin=Origin.FILE,
            ),
            item.writer, item.seq, item.part + 10_000 + number,
        )
        for number, (theme, newest) in enumerate(rows)
    ]  # fmt: skip


def _record(connection: Connection, item: Placed) -> bool:
    operation = item.operation
    action = {AddMemory: "add", ReplaceMemory: "replace", RemoveMemory: "remove"}[type(operation)]
    values = {
        "theme": operation.theme,
        "target": operation.target,
        "order_us": operation.when.order_us,
        "writer": item.writer,
        "seq": item.seq,
        "part": item.part,
        "action": action,
        "content": "" if isinstance(operation, RemoveMemory) else operation.content,
        "old_text": "" if isinstance(operation, AddMemory) else operation.old_text,
        "previous": None if isinstance(operation, AddMemory) else operation.previous,
        "home_id": operation.home_id,
        "origin": operation.origin.value,
        "at": time_of(operation.when),
        "metadata": _json(operation.metadata),
    }
    return connection.execute(statement("memory_operation_insert"), values).fetchone() is not None


def _all_operations(connection: Connection, theme: str, target: Target) -> list[MemoryOperation]:
    rows: list[Any] = connection.execute(
        statement("memory_operations_all"), {"theme": theme, "target": target}
    ).fetchall()
    found: list[MemoryOperation] = []
    for order_us, action, content, old_text, previous, home_id, origin, at, metadata in rows:
        when = Moment(_microseconds(at), order_us)
        common: dict[str, Any] = {"when": when, "home_id": home_id, "origin": Origin(origin), "metadata": metadata}
        if action == "add":
            found.append(AddMemory(theme, target, content, **common))
        elif action == "replace":
            found.append(ReplaceMemory(theme, target, content, old_text, previous=previous, **common))
        else:
            found.append(RemoveMemory(theme, target, old_text, previous=previous, **common))
    return found


class _Rows:
    """The rows of one theme and target, changed step by step to what the fold says."""

    def __init__(self, connection: Connection, theme: str, target: Target, model_id: int | None) -> None:
        self._connection = connection
        self.theme = theme
        self.target = target
        self.key = {"theme": theme, "target": target}
        self._model_id = model_id
        self._when = Moment(0, 0)
        self.changed: list[tuple[str, int]] = []

    def load(self, *, operations: Sequence[MemoryOperation] = (), everything: bool = False) -> State:
        contents = [item.content for item in operations if not isinstance(item, RemoveMemory)]
        contents += [item.previous for item in operations if not isinstance(item, AddMemory) and item.previous]
        olds = [item.old_text.strip() for item in operations if not isinstance(item, AddMemory)]
        rows: list[Any] = self._connection.execute(
            statement("memory_candidates"),
            {
                "theme": self.theme,
                "target": self.target,
                "contents": contents,
                "old_texts": [old for old in olds if old],
                "everything": everything,
            },
        ).fetchall()
        return {
            content: Entry(
                content,
                {home: Origin(origin) for home, origin in homes.items()},
                _microseconds(created),
                _microseconds(updated),
                metadata,
                row_id,
            )
            for row_id, content, created, updated, metadata, homes in rows
        }

    def make_equal(self, before: State, after: State, when: Moment) -> None:
        """Turn the rows of `before` into those of `after`, which receives the row ids."""
        self._when = when
        kept = {entry.id for entry in after.values() if entry.id is not None}
        for content, entry in before.items():
            if entry.id not in kept and content not in after:
                self._execute("memory_delete", id=entry.id)
        by_id = {entry.id: entry for entry in before.values()}
        for content, entry in list(after.items()):
            known = by_id.get(entry.id) if entry.id is not None else before.get(content)
            if known is None:
                after[content] = self._insert(entry)
                continue
            row_id = known.id
            assert row_id is not None
            entry = after[content] = replace(entry, id=row_id)
            if known.content != content:
                self._update(entry)
                # It is another entry now, held since this moment.
                known = replace(known, homes={})
            self._set_homes(row_id, known, entry)

    def _insert(self, entry: Entry) -> Entry:
        row: Any = self._execute(
            "memory_insert", target=self.target, **self._columns(entry), **_created(entry)
        ).fetchone()
        self.changed.append((self.theme, int(row[0])))
        self._set_homes(int(row[0]), None, entry)
        return replace(entry, id=int(row[0]))

    def _update(self, entry: Entry) -> None:
        assert entry.id is not None
        self._execute("memory_update", id=entry.id, **self._columns(entry))
        if self._model_id is not None:
            query = model_statement("memory_vectors_drop", self._model_id)
            self._connection.execute(query, {"theme": self.theme, "id": entry.id})
        self.changed.append((self.theme, entry.id))

    def _set_homes(self, row_id: int, before: Entry | None, after: Entry) -> None:
        had = before.homes if before is not None else {}
        for home, origin in after.homes.items():
            if had.get(home) is not origin:
                since = time_of(self._when)
                self._execute("memory_source_set", id=row_id, home_id=home, origin=origin.value, since=since)
        for home in had:
            if home not in after.homes:
                self._execute("memory_source_drop", id=row_id, home_id=home)

    def _columns(self, entry: Entry) -> dict[str, Any]:
        return {
            "content": entry.content,
            "updated_at": time_of(Moment(entry.updated_us, 0)),
            "metadata": _json(entry.metadata),
            "lexemes": memory_lexemes(self.theme, entry.content),
        }

    def _execute(self, name: str, **values: Any) -> Any:
        return self._connection.execute(statement(name), {"theme": self.theme, **values})


def _created(entry: Entry) -> dict[str, Any]:
    return {"created_at": time_of(Moment(entry.created_us, 0))}


def _json(value: Any) -> str:
    return json.dumps(dict(value), ensure_ascii=False)


def _microseconds(value: Any) -> int:
    delta = value - EPOCH
    return cast(int, (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)
