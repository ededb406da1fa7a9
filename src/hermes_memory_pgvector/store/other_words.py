"""What is stored, read page by page, and given other words where it must not say what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.erasure import change_operation
from hermes_memory_pgvector.store.memory_state import Entry, State, apply, select
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, RemoveMemory, Target

Reword = Callable[[MemoryOperation], MemoryOperation]
Page = list[tuple[str, int, Any]]


@dataclass(frozen=True, slots=True)
class Text:
    """A row and what it says."""

    theme: str
    id: int
    content: str
    metadata: Mapping[str, Any]


def turns(connection: Connection, theme: str | None, after: tuple[str, int], limit: int) -> list[Text]:
    """The turns above a key, in the order of their keys."""
    values = {**_above(theme, after), "limit": limit}
    rows: list[Any] = connection.execute(statement("scan/turns"), values).fetchall()
    return [Text(*row) for row in rows]


def questions(connection: Connection, theme: str | None, after: tuple[str, int], limit: int) -> Page:
    """The logged questions above a key."""
    rows: list[Any] = connection.execute(statement("scan/recalls"), {**_above(theme, after), "limit": limit}).fetchall()
    return rows


def edges(connection: Connection, theme: str | None, after: tuple[str, int], limit: int) -> Page:
    """The metadata of delegations above a key."""
    rows: list[Any] = connection.execute(
        statement("scan/delegations"), {**_above(theme, after), "limit": limit}
    ).fetchall()
    return rows


def dead_letters(connection: Connection, after: int, limit: int) -> list[tuple[int, bytes]]:
    """The rejected records above a number."""
    rows: list[Any] = connection.execute(statement("scan/dead_letters"), {"id_after": after, "limit": limit}).fetchall()
    return [(int(row_id), bytes(payload)) for row_id, payload in rows]


def histories(connection: Connection, theme: str | None) -> list[tuple[str, Target]]:
    """The themes and targets that have memories."""
    rows: list[Any] = connection.execute(statement("scan/histories"), {"theme": theme}).fetchall()
    return [(str(name), target) for name, target in rows]


def set_question(connection: Connection, theme: str, row_id: int, query: str) -> None:
    """Give a logged question other words."""
    connection.execute(statement("scan/set_recall"), {"theme": theme, "id": row_id, "query": query})


def set_edge(connection: Connection, theme: str, row_id: int, metadata: Mapping[str, Any]) -> None:
    """Give a delegation other metadata."""
    values = {"theme": theme, "id": row_id, "metadata": json.dumps(dict(metadata), ensure_ascii=False)}
    connection.execute(statement("scan/set_delegation"), values)


def set_dead_letter(connection: Connection, row_id: int, payload: bytes) -> None:
    """Give a rejected record another payload."""
    connection.execute(statement("scan/set_dead_letter"), {"id": row_id, "payload": payload})


def operations(connection: Connection, theme: str, target: Target) -> list[MemoryOperation]:
    """The history of a theme and target."""
    return [item.operation for item in memories.history(connection, theme, target)]


def entries(connection: Connection, theme: str, target: Target) -> list[str]:
    """What the entries of a theme and target say."""
    return list(memories.entries(connection, theme, target))


def lock_memories(connection: Connection, theme: str, target: Target) -> None:
    """Keep everybody else from changing the memories of a theme and target."""
    connection.execute(statement("memories/lock"), {"theme": theme, "target": target})


def reword_memories(connection: Connection, theme: str, target: Target, reword: Reword) -> list[tuple[str, int]]:
    """Give the entries and the history of a theme and target other words; return (theme, id) of the entries changed.

    Two entries that say the same afterwards become one. Whoever calls has locked them.
    """
    items = memories.history(connection, theme, target)
    for item, new in zip(items, reworded([item.operation for item in items], reword), strict=True):
        if new != item.operation:
            change_operation(connection, theme, target, item, new)
    before = memories.entries(connection, theme, target)
    return memories.set_entries(connection, theme, target, before, _after(before, theme, target, reword))


def reworded(operations: list[MemoryOperation], reword: Reword) -> list[MemoryOperation]:
    """Each operation in other words, and each still about the entry that it was about."""
    state: State = {}
    found: list[MemoryOperation] = []
    for operation in operations:
        meant = None if isinstance(operation, AddMemory) else select(state, operation)
        new = reword(operation)
        if meant is not None and not isinstance(new, AddMemory):
            said = _content(meant, operation.theme, operation.target, reword)
            if new != operation or said != meant.content:
                # A part of the old words may be a part of no entry, or of several, once they are others.
                new = replace(new, old_text="", previous=said)
        apply(state, operation)
        found.append(new)
    return found


def _after(before: State, theme: str, target: Target, reword: Reword) -> State:
    """The entries in other words; of two that say the same then, the one that said so before stays."""
    after: State = {}
    for entry in before.values():
        addition = reword(_added(entry, theme, target))
        assert isinstance(addition, AddMemory)
        kept = after.get(addition.content) or before.get(addition.content) or entry
        after[addition.content] = replace(
            kept, content=addition.content, metadata=addition.metadata, homes={**entry.homes, **kept.homes}
        )
    return after


def _content(entry: Entry, theme: str, target: Target, reword: Reword) -> str:
    new = reword(_added(entry, theme, target))
    assert not isinstance(new, RemoveMemory)
    return new.content


def _added(entry: Entry, theme: str, target: Target) -> AddMemory:
    return AddMemory(theme, target, entry.content, Moment(entry.created_us, 0), "", metadata=entry.metadata)


def _above(theme: str | None, after: tuple[str, int]) -> dict[str, Any]:
    return {"theme": theme, "theme_after": after[0], "id_after": after[1]}
