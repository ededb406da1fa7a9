"""What arrives, as it arrives: turns and changes of memories, by a cheap look every so often.

Numbers are given out before rows are committed, so a row may appear after one with a higher number. Each look therefore
goes back a stretch and leaves out what was seen.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_memory_pgvector.ops.browse.shapes import EventRow, StoredRow, event_of, row_of
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.store import browse, history
from hermes_memory_pgvector.values import Kind

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection

STRETCH = 5000
PAUSE_SECONDS = 1.0
BEGUN = {"rows": tuple(Kind), "memories": (Kind.MEMORY,), "turns": (Kind.TURN,)}


def news(memory: Memory, which: str, theme: str | None, begin: int) -> Iterator[StoredRow | EventRow]:
    """The newest rows, and from then on what arrives."""
    begun: list[browse.Row] = []
    with memory.reading(theme) as connection:
        tail = Tail(connection, which, theme)
        if which in BEGUN:
            begun = browse.rows(connection, kinds=BEGUN[which], theme=theme, since=None, before=None, limit=begin)
    yield from (row_of(row) for row in reversed(begun))
    while True:
        time.sleep(PAUSE_SECONDS)
        with memory.reading() as connection:
            arrived = tail.look(connection)
        yield from arrived


class Tail:
    """Follows one theme or all, from the moment it is made."""

    def __init__(self, connection: Connection, which: str = "rows", theme: str | None = None) -> None:
        self._which, self._theme = which, theme
        self._turn, self._event = browse.last_numbers(connection)
        self._seen: deque[str] = deque(maxlen=4 * STRETCH)
        # What is there already is no news.
        self.look(connection)

    def look(self, connection: Connection) -> list[StoredRow | EventRow]:
        """What is new, in the order in which it was said."""
        event, turn = (max(0, number - STRETCH) for number in (self._event, self._turn))
        turns = browse.turns_after(connection, self._theme, turn) if self._which in ("rows", "turns") else []
        events = history.newest(connection, theme=self._theme, after_id=event) if self._which != "turns" else []
        self._turn = max([self._turn, *(row.id for row in turns)])
        self._event = max([self._event, *(each.id for each in events)])
        found: list[tuple[datetime, StoredRow | EventRow]] = [(row.at, row_of(row)) for row in turns]
        found += [(each.at, event_of(each)) for each in reversed(events)]
        known = set(self._seen)
        news = [line for _, line in sorted(found, key=lambda each: each[0]) if line.id not in known]
        self._seen.extend(line.id for line in news)
        return news
