"""Shortens the history of memories: what lies before a time goes, except what the entries of today are made of.

Entries are the sum of all operations, so an old operation may go only if the sum stays the same. For every entry that
is still there, one add for each home that holds it remains; texts that an old replace took away go with the rest. If
the remainder did not make the same entries, everything would stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import history
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.store.memory_state import State, fold
from hermes_memory_pgvector.values import Target


@dataclass(frozen=True, slots=True)
class Shortened:
    """Which operations go, and which become plain adds."""

    gone: tuple[int, ...] = ()
    flattened: tuple[int, ...] = ()


def due(connection: Connection, before: datetime, limit: int) -> list[tuple[str, Target]]:
    """Themes and targets with something to shorten; none while another process is at it."""
    ours: Any = connection.execute(statement("history/our_turn")).fetchone()
    if not ours[0]:
        return []
    rows: list[Any] = connection.execute(statement("history/due"), {"before": before, "limit": limit}).fetchall()
    return [(str(theme), target) for theme, target in rows]


def shorten(connection: Connection, theme: str, target: Target, before: datetime) -> Shortened:
    """Shorten one theme's history while nobody changes its memories."""
    history.lock(connection, theme, [target], [])
    found = plan(history.of_theme(connection, theme, target)[0], before)
    if found.gone:
        connection.execute(statement("history/drop"), {"theme": theme, "ids": list(found.gone)})
    if found.flattened:
        connection.execute(statement("history/flatten"), {"theme": theme, "ids": list(found.flattened)})
    return found


def plan(events: Sequence[Event], before: datetime) -> Shortened:
    """What can go without changing what the operations make. Pure."""
    old = [event for event in events if event.at < before]
    needed: dict[int, Event] = {}
    for entry in _state(old).values():
        for home in list(entry.homes) or [""]:
            makers = [event for event in old if event.content == entry.content and event.home_id == home]
            if not makers:
                return Shortened()
            needed[makers[-1].id] = makers[-1]
    flat = {event.id for event in needed.values() if event.action != "add"}
    old_ids = {event.id for event in old}
    remaining = [
        replace(event, action="add", old_text="", previous=None) if event.id in flat else event
        for event in events
        if event.id not in old_ids or event.id in needed
    ]
    if _shape(_state(remaining)) != _shape(_state(events)):
        return Shortened()
    gone = tuple(event.id for event in old if event.id not in needed)
    return Shortened(gone, tuple(sorted(flat)))


def _state(events: Sequence[Event]) -> State:
    return fold(event.operation() for event in events)


def _shape(state: State) -> dict[str, dict[str, str]]:
    return {
        content: {home: held.origin.value for home, held in entry.homes.items()} for content, entry in state.items()
    }
