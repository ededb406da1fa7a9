"""Memories in Postgres: the entries are what all operations make of them, in whatever order the operations arrive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store import gate, vectors
from hermes_memory_pgvector.store.memory_erasure import pinned
from hermes_memory_pgvector.store.memory_state import Entry, State, apply, fold
from hermes_memory_pgvector.store.turns import EPOCH, time_of
from hermes_memory_pgvector.text.lexemes import memory_lexemes
from hermes_memory_pgvector.values import (
    AddMemory,
    JudgeMemories,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
    Trust,
)


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
    placed = _admitted(connection, placed)
    homes = sorted({item.operation.home_id for item in placed if item.operation.origin is Origin.TOOL})
    if homes:
        # A mirror that compares at the same moment would take the entries reported here for somebody else's.
        connection.execute(statement("memories/lock_homes"), {"home_ids": homes})
    groups: dict[tuple[str, Target], list[Placed]] = {}
    for item in placed:
        groups.setdefault((item.operation.theme, item.operation.target), []).append(item)
    changed: list[tuple[str, int]] = []
    moved: list[Placed] = []
    # A fixed order of locks keeps two writers with the same themes from waiting for each other.
    for (theme, target), items in sorted(groups.items()):
        connection.execute(statement("memories/lock"), {"theme": theme, "target": target})
        rows = _Rows(connection, theme, target, model_id)
        # A batch may bring an operation twice, and a removal done twice would take an entry nobody named.
        once = {item.order: item for item in items}
        fresh, state = _store_group(connection, rows, [once[order] for order in sorted(once)])
        changed += rows.changed
        moved += _withdrawn_guesses(connection, rows, fresh, state)
    return changed + (store(connection, moved, model_id) if moved else [])


def _admitted(connection: Connection, placed: Sequence[Placed]) -> list[Placed]:
    """The operations that may be stored, under the names their themes have now.

    What was forgotten is left out, also under its theme's old name. An operation that may quote it names what it means.
    """
    if not placed:
        return []
    opened = gate.enter(connection)
    known = opened.tombstones(connection, [item.operation for item in placed])
    kept: list[Placed] = []
    for item in sorted(placed, key=lambda each: each.order):
        told = item.operation
        if known.refuses_scope(told):
            continue
        new = replace(item, operation=opened.renamed(told))
        is_forgotten = known.refuses(told)
        if not is_forgotten and not known.quotes(told):
            kept.append(new)
            continue
        theme, target = new.operation.theme, new.operation.target
        beside = [each for each in kept if (each.operation.theme, each.operation.target) == (theme, target)]
        earlier = {each.order: each.operation for each in (*history(connection, theme, target), *beside)}
        state = fold(earlier[order] for order in sorted(earlier) if order < new.order)
        operation = pinned(new.operation, state, is_forgotten=is_forgotten)
        if operation is not None:
            kept.append(replace(new, operation=operation))
    return kept


def _store_group(connection: Connection, rows: _Rows, items: Sequence[Placed]) -> tuple[list[Placed], State]:
    """Apply the operations of one theme and target; which of them were new, and what the theme holds now."""
    last: Any = connection.execute(statement("memories/last_operation"), rows.key).fetchone()
    fresh = record(connection, rows.theme, rows.target, items)
    if not fresh:
        return [], {}
    if last is not None and fresh[0].order < tuple(last):
        before = rows.load(everything=True)
        hidden = {content: entry.hidden_by for content, entry in before.items() if entry.hidden_by is not None}
        everything = fold((item.operation for item in history(connection, rows.theme, rows.target)), hidden)
        rows.make_equal(before, everything, fresh[-1].operation.when)
        rows.flush(everything)
        return fresh, everything
    state = rows.load(operations=[item.operation for item in fresh])
    for item in fresh:
        if not isinstance(item.operation, AddMemory) or rows.is_new(item.operation.content):
            # It may mean an entry that has no row yet.
            rows.flush_new(state)
        # Only what the operation concerns is compared: a theme may hold thousands of entries.
        touched = apply(state, item.operation)
        before = {content: entry for content, entry in touched.items() if entry is not None}
        after = {content: state[content] for content in touched if content in state}
        rows.make_equal(before, after, item.operation.when)
        state.update(after)
    rows.flush(state)
    return fresh, state


def _withdrawn_guesses(connection: Connection, rows: _Rows, items: Sequence[Placed], state: State) -> list[Placed]:
    """Removals of entries the mirror put into another theme just before the theme that wrote them reported them."""
    announced = [(item, item.operation) for item in items if _is_announced(item.operation, state)]
    if not announced:
        return []
    found: list[Any] = connection.execute(
        statement("memories/guessed_elsewhere"),
        {
            **rows.key,
            "home_ids": [operation.home_id for _, operation in announced],
            "contents": [_content(operation) for _, operation in announced],
            "ats": [time_of(operation.when) for _, operation in announced],
        },
    ).fetchall()
    moved = []
    for number, (place, theme, newest) in enumerate(found):
        item, operation = announced[place - 1]
        # It takes back the guess, so it comes after it, however late the report has arrived.
        when = Moment(operation.when.wall_us, int(newest) + 1)
        removal = RemoveMemory(
            str(theme), rows.target, "", when, operation.home_id, previous=_content(operation), origin=Origin.FILE
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
    found: list[Any] = connection.execute(
        statement("memories/insert_operations"),
        {
            "theme": theme,
            "target": target,
            "orders": [operation.when.order_us for operation in operations],
            "writers": [item.writer for item in items],
            "seqs": [item.seq for item in items],
            "parts": [item.part for item in items],
            "actions": [ACTIONS[type(operation)] for operation in operations],
            "contents": [_content(operation) for operation in operations],
            "old_texts": ["" if isinstance(operation, AddMemory) else operation.old_text for operation in operations],
            "previous": [None if isinstance(operation, AddMemory) else operation.previous for operation in operations],
            "home_ids": [operation.home_id for operation in operations],
            "origins": [operation.origin.value for operation in operations],
            "ats": [time_of(operation.when) for operation in operations],
            "metadata": [_json(operation.metadata) for operation in operations],
            "written_by": [operation.written_by for operation in operations],
            "trusts": [operation.trust for operation in operations],
        },
    ).fetchall()
    new = {(str(writer), int(seq), int(part)) for writer, seq, part in found}
    return [item for item in items if (item.writer, item.seq, item.part) in new]


def history(connection: Connection, theme: str, target: Target) -> list[Placed]:
    """Every operation of a theme and target with its place, in order."""
    rows: list[Any] = connection.execute(
        statement("memories/all_operations"), {"theme": theme, "target": target}
    ).fetchall()
    found: list[Placed] = []
    for (
        order_us,
        writer,
        seq,
        part,
        action,
        content,
        old_text,
        previous,
        home_id,
        origin,
        at,
        metadata,
        by,
        trust,
    ) in rows:
        common: dict[str, Any] = {
            "when": Moment(_microseconds(at), order_us),
            "home_id": home_id,
            "origin": Origin(origin),
            "metadata": metadata,
            "written_by": by and RowOrigin(by),
            "trust": trust and Trust(trust),
        }
        operation: MemoryOperation
        if action == "add":
            operation = AddMemory(theme, target, content, **common)
        elif action == "replace":
            operation = ReplaceMemory(theme, target, content, old_text, previous=previous, **common)
        else:
            operation = RemoveMemory(theme, target, old_text, previous=previous, **common)
        found.append(Placed(operation, writer, seq, part))
    return found


@dataclass(frozen=True, slots=True)
class Holding:
    """An entry that contains a text, and the homes that hold it."""

    target: Target
    content: str
    homes: tuple[str, ...]


def containing(connection: Connection, theme: str, targets: Sequence[Target], text: str, limit: int) -> list[Holding]:
    """The entries of a theme that contain a text, the shortest first; nothing that recall does not find."""
    values = {"theme": theme, "targets": list(targets), "text": text, "limit": limit}
    rows: list[Any] = connection.execute(statement("memories/containing"), values).fetchall()
    return [Holding(target, str(content), tuple(homes)) for target, content, homes in rows]


def judge(connection: Connection, item: JudgeMemories) -> int:
    """Note how far to trust what some calls of the memory tool wrote; return how many entries they concern."""
    item = gate.enter(connection).renamed(item)
    values = {
        "theme": item.theme,
        "session_id": item.session_id,
        "calls": list(item.calls),
        "at": time_of(item.when),
        "trust": item.trust,
        "tools": json.dumps({"tools": list(item.tools)} if item.tools else {}),
    }
    connection.execute(statement("memories/judge_operations"), values)
    return connection.execute(statement("memories/judge_entries"), values).rowcount


def entries(connection: Connection, theme: str, target: Target) -> State:
    """The entries of a theme and target as they are."""
    return _Rows(connection, theme, target, None).load(everything=True)


def set_entries(
    connection: Connection, theme: str, target: Target, before: State, after: State, when: Moment, model_id: int | None
) -> list[tuple[str, int]]:
    """Turn the entries of a theme and target into others; return (theme, id) of those with new words."""
    rows = _Rows(connection, theme, target, model_id)
    rows.make_equal(before, after, when)
    rows.flush(after)
    for content, entry in after.items():
        if content in before and before[content].metadata != entry.metadata:
            rows.update(entry)
    return rows.changed


class _Rows:
    """The rows of one theme and target, changed step by step to the state the operations lead to.

    Rows that consecutive operations add, or remove, go to the server together: thousands of entries at once must not
    cost thousands of round trips.
    """

    def __init__(self, connection: Connection, theme: str, target: Target, model_id: int | None) -> None:
        self._connection = connection
        self.theme = theme
        self.target = target
        self.key = {"theme": theme, "target": target}
        self._model_id = model_id
        self.changed: list[tuple[str, int]] = []
        self._new: dict[str, tuple[Entry, Moment]] = {}
        """Entries that wait to be added, with the moment since which their homes hold them."""
        self._held: dict[tuple[int, str], tuple[Origin, Moment]] = {}
        """By entry and home: how the home came to hold it, and since when."""
        self._gone: list[int] = []
        self._dropped: list[tuple[int, str]] = []

    def is_new(self, content: str) -> bool:
        """Whether an entry waits to be added."""
        return content in self._new

    def load(self, *, operations: Sequence[MemoryOperation] = (), everything: bool = False) -> State:
        contents = [item.content for item in operations if not isinstance(item, RemoveMemory)]
        contents += [item.previous for item in operations if not isinstance(item, AddMemory) and item.previous]
        olds = [item.old_text.strip() for item in operations if not isinstance(item, AddMemory)]
        rows: list[Any] = self._connection.execute(
            statement("memories/candidates"),
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
                hidden_by,
                written_by and RowOrigin(written_by),
                home_id or "",
                trust and Trust(trust),
            )
            for row_id, content, created, updated, metadata, hidden_by, written_by, home_id, trust, homes in rows
        }

    def make_equal(self, before: State, after: State, when: Moment) -> None:
        """Turn the rows of `before` into those of `after`, which receives the row ids that are known."""
        kept = {entry.id for entry in after.values() if entry.id is not None}
        for content, entry in before.items():
            if entry.id not in kept and content not in after:
                assert entry.id is not None
                self.flush_new()
                self._gone.append(entry.id)
        by_id = {entry.id: entry for entry in before.values()}
        for content, entry in list(after.items()):
            known = by_id.get(entry.id) if entry.id is not None else before.get(content)
            if known is None:
                self._flush_gone()
                self._new[content] = (entry, when)
                continue
            row_id = known.id
            assert row_id is not None
            entry = after[content] = replace(entry, id=row_id)
            if known.content != content:
                self.update(entry)
                # It is another entry now, held since this moment.
                known = replace(known, homes={})
            self._set_homes(row_id, known, entry, when)

    def flush(self, state: State | None = None) -> None:
        """Tell the server everything that waits; entries of the state receive the ids of their new rows."""
        self._flush_gone()
        self.flush_new(state)

    def flush_new(self, state: State | None = None) -> None:
        """Tell the server what was added."""
        new, held = self._new, self._held
        self._new, self._held = {}, {}
        for content, row_id in self._insert([entry for entry, _ in new.values()]):
            entry, when = new[content]
            self.changed.append((self.theme, row_id))
            held |= {(row_id, home): (origin, when) for home, origin in entry.homes.items()}
            if state is not None and content in state:
                state[content] = replace(state[content], id=row_id)
        if held:
            self._execute(
                "memories/set_sources",
                ids=[row_id for row_id, _ in held],
                home_ids=[home for _, home in held],
                origins=[origin.value for origin, _ in held.values()],
                sinces=[time_of(since) for _, since in held.values()],
            )

    def _flush_gone(self) -> None:
        gone, dropped = self._gone, self._dropped
        self._gone, self._dropped = [], []
        if dropped:
            ids, homes = [row_id for row_id, _ in dropped], [home for _, home in dropped]
            self._execute("memories/drop_sources", ids=ids, home_ids=homes)
        if gone:
            self._execute("memories/delete", ids=gone)

    def _insert(self, entries: Sequence[Entry]) -> list[tuple[str, int]]:
        if not entries:
            return []
        rows: list[Any] = self._execute(
            "memories/insert",
            target=self.target,
            contents=[entry.content for entry in entries],
            created=[time_of(Moment(entry.created_us, 0)) for entry in entries],
            updated=[time_of(Moment(entry.updated_us, 0)) for entry in entries],
            metadata=[_json(entry.metadata) for entry in entries],
            lexemes=[memory_lexemes(self.theme, entry.content) for entry in entries],
            hidden=[entry.hidden_by for entry in entries],
            origins=[entry.origin for entry in entries],
            home_ids=[entry.home_id for entry in entries],
            trusts=[entry.trust for entry in entries],
        ).fetchall()
        return [(str(content), int(row_id)) for content, row_id in rows]

    def update(self, entry: Entry) -> None:
        """Tell the server the words and metadata of an entry that has a row."""
        assert entry.id is not None
        # The content it gets may have been another entry's until now.
        self.flush()
        self._execute("memories/update", id=entry.id, **self._columns(entry))
        if self._model_id is not None:
            # Of every model: while the model changes, the next one's vectors are already being made.
            for model_id in vectors.model_ids(self._connection):
                query = model_statement("memories/drop_vectors", model_id)
                self._connection.execute(query, {"theme": self.theme, "id": entry.id})
        self.changed.append((self.theme, entry.id))

    def _set_homes(self, row_id: int, before: Entry, after: Entry, when: Moment) -> None:
        held = [(home, origin) for home, origin in after.homes.items() if before.homes.get(home) is not origin]
        dropped = [home for home in before.homes if home not in after.homes]
        if held:
            self._flush_gone()
            self._held |= {(row_id, home): (origin, when) for home, origin in held}
        if dropped:
            self.flush_new()
            self._dropped += [(row_id, home) for home in dropped]

    def _columns(self, entry: Entry) -> dict[str, Any]:
        return {
            "content": entry.content,
            "updated_at": time_of(Moment(entry.updated_us, 0)),
            "metadata": _json(entry.metadata),
            "lexemes": memory_lexemes(self.theme, entry.content),
            "origin": entry.origin,
            "home_id": entry.home_id,
            "trust": entry.trust,
        }

    def _execute(self, name: str, **values: Any) -> Any:
        return self._connection.execute(statement(name), {"theme": self.theme, **values})


def _json(value: Any) -> str:
    return json.dumps(dict(value), ensure_ascii=False)


def _microseconds(value: Any) -> int:
    delta = value - EPOCH
    return cast(int, (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)
