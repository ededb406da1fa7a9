"""What arrives, as it arrives: turns and operations on memories, by a cheap look every so often.

Numbers are given out before rows are committed, so a row may appear after one with a higher number. Each look therefore
goes back a stretch and leaves out what was seen.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hermes_memory_pgvector.store import browse, history
from hermes_memory_pgvector.store.browse import Row
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.store.pool import Connection

STRETCH = 5000


@dataclass(frozen=True, slots=True)
class News:
    """What has arrived since the last look."""

    turns: tuple[Row, ...]
    events: tuple[Event, ...]


class Tail:
    """Follows one theme or all, from the moment it is made."""

    def __init__(self, connection: Connection, theme: str | None = None) -> None:
        self._theme = theme
        self._line, self._event, self._turn = browse.last_numbers(connection)
        self._seen: deque[tuple[str, int]] = deque(maxlen=4 * STRETCH)
        # What is there already is no news.
        self.look(connection)

    def look(self, connection: Connection) -> News:
        """What is new."""
        line = max(0, self._line - STRETCH)
        event, turn = (max(0, number - STRETCH) for number in (self._event, self._turn))
        known = set(self._seen)
        turns = [
            row for row in browse.turns_after(connection, self._theme, line, turn) if ("turn", row.id) not in known
        ]
        events = [each for each in history.after(connection, self._theme, event) if ("event", each.id) not in known]
        self._seen.extend(("turn", row.id) for row in turns)
        self._seen.extend(("event", each.id) for each in events)
        self._turn = max([self._turn, *(row.id for row in turns)])
        self._event = max([self._event, *(each.id for each in events)])
        self._line = browse.last_line(connection)
        return News(tuple(turns), tuple(events))
