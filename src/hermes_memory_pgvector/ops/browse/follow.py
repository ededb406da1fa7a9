"""What arrives, as it arrives: turns and changes of memories, by a cheap look every so often.

Numbers are given out before rows are committed, so a row may appear after one with a higher number. Each look therefore
goes back a stretch and leaves out what was seen.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_memory_pgvector.ops.browse.shapes import EventRow, StoredRow, event_of, row_of
from hermes_memory_pgvector.ops.memory import Memory

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.store.browse import Row
    from hermes_memory_pgvector.store.history import Event

STRETCH = 5000
PAUSE_SECONDS = 1.0


def follow(memory: Memory, which: str, theme: str | None, begin: int) -> Iterator[StoredRow | EventRow]:
    """The newest rows, and from then on what arrives; Ctrl-C ends it."""
    from hermes_memory_pgvector.ops.browse import pages
    from hermes_memory_pgvector.values import Kind

    shows_turns, shows_events = which in ("rows", "turns"), which != "turns"
    with _until_interrupted() as stopped:
        with memory.reading(theme) as connection:
            tail = Tail(connection, theme)
            kinds = {"memories": (Kind.MEMORY,), "turns": (Kind.TURN,), "events": ()}.get(which, pages.BOTH)
            begun = pages.rows(connection, kinds=kinds, theme=theme, limit=begin)[0] if kinds else []
        yield from (row_of(row) for row in reversed(begun))
        while not stopped.wait(PAUSE_SECONDS):
            with memory.reading() as connection:
                news = tail.look(connection)
            arrived: list[tuple[datetime, StoredRow | EventRow]] = []
            arrived += [(row.at, row_of(row)) for row in news.turns if shows_turns]
            arrived += [(event.at, event_of(event)) for event in news.events if shows_events]
            yield from (row for _, row in sorted(arrived, key=lambda each: each[0]))


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Set when somebody presses Ctrl-C; a second time, it interrupts as usual."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, former)

    former = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, former)


@dataclass(frozen=True, slots=True)
class News:
    """What has arrived since the last look."""

    turns: tuple[Row, ...]
    events: tuple[Event, ...]


class Tail:
    """Follows one theme or all, from the moment it is made."""

    def __init__(self, connection: Connection, theme: str | None = None) -> None:
        self._theme = theme
        from hermes_memory_pgvector.store import browse

        self._turn, self._event = browse.last_numbers(connection)
        self._seen: deque[tuple[str, int]] = deque(maxlen=4 * STRETCH)
        # What is there already is no news.
        self.look(connection)

    def look(self, connection: Connection) -> News:
        """What is new."""
        from hermes_memory_pgvector.store import browse, history

        event, turn = (max(0, number - STRETCH) for number in (self._event, self._turn))
        known = set(self._seen)
        turns = [row for row in browse.turns_after(connection, self._theme, turn) if ("turn", row.id) not in known]
        events = [each for each in history.after(connection, self._theme, event) if ("event", each.id) not in known]
        self._seen.extend(("turn", row.id) for row in turns)
        self._seen.extend(("event", each.id) for each in events)
        self._turn = max([self._turn, *(row.id for row in turns)])
        self._event = max([self._event, *(each.id for each in events)])
        return News(tuple(turns), tuple(events))
