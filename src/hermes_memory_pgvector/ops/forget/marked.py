"""Stored rows as the items they once were, to know by their marks whether they were forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from hermes_memory_pgvector.ops.forget.rows import Findings, streamed
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import marks
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.values import AddMemory, AddTurn, Kind, Moment, RemoveMemory, Target, WriteItem


class StoredItem(NamedTuple):
    """A row, and the item it would be."""

    kind: Kind | None
    """None for an operation on memories."""
    id: int
    target: Target
    item: WriteItem
    quoted: tuple[str, ...] = ()
    """What an operation quotes of an entry that it changes, and a turn of those before it."""
    session_id: str = ""


def items(connection: Connection, theme: str | None = None) -> Iterator[StoredItem]:
    """Every turn, entry and operation on memories, of a theme or of all."""
    values = {"theme": theme}
    for name, row_id, session, content, at, metadata, before in streamed(connection, "forget/verify_turns", values):
        turn = AddTurn(name, session, "user", content, 1, _moment(at), True, metadata=metadata)
        yield StoredItem(Kind.TURN, row_id, "memory", turn, (before,), session)
    for name, row_id, target, content, at, metadata in streamed(connection, "forget/verify_entries", values):
        yield StoredItem(
            Kind.MEMORY, row_id, target, AddMemory(name, target, content, _moment(at), "", metadata=metadata)
        )
    for name, row_id, target, action, content, old, previous, at, metadata in streamed(
        connection, "forget/verify_events", values
    ):
        told: WriteItem = AddMemory(name, target, content, _moment(at), "", metadata=metadata)
        if action == "remove":
            told = RemoveMemory(name, target, old, _moment(at), "", previous or None, metadata=metadata)
        yield StoredItem(None, row_id, target, told, (old, previous))


def has_mark(item: WriteItem, opened: Gate, known: Mapping[bytes, datetime]) -> bool:
    """Whether an item has one of these marks, and was said no later than its time."""
    if opened.marker is None:
        return False
    names = marks.names_of(item.theme, opened.aliases)
    own = opened.marker.of_item(item, names)
    return any(mark in known and marks.is_covered(item, known[mark]) for mark in own)


def find(connection: Connection, opened: Gate, known: Mapping[bytes, datetime]) -> Findings:
    """Every row that has one of these marks, as what is to be forgotten."""
    found = Findings()
    for each in items(connection):
        if not has_mark(each.item, opened, known):
            continue
        theme = each.item.theme
        if each.kind is Kind.TURN:
            found.turns[theme, each.id] = each.session_id
        elif isinstance(each.item, AddMemory):
            found.gone[theme, each.target].add(each.item.content)
            if each.kind is Kind.MEMORY:
                found.entries[theme, each.id] = each.target, each.item.content
        else:
            found.removals.add(each.id)
            found.events[theme, each.target].add(each.id)
    return found


def _moment(at: datetime) -> Moment:
    return Moment(marks.micros(at), 0)
