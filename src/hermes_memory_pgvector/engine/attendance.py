"""Who works with the memory in this process: the themes that it speaks for, how they are reached, and how much they do.

A hook puts down what it did and goes on; heartbeats carry it to the registry of agents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hermes_memory_pgvector.meters import SEPARATOR, Meters
from hermes_memory_pgvector.values import AddMemory, AddTurn, RemoveMemory, ReplaceMemory, Session, WriteItem

MAX_THEMES = 1000
"""Whoever calls an API may name any theme: so many are followed by name."""
MAX_SESSIONS = 10_000
SESSIONS, TURNS, MEMORIES, RECALLS = COUNTED = ("sessions", "turns", "memories", "recalls")


@dataclass(frozen=True, slots=True)
class Attended:
    """What a theme has done in this process since it was last stored."""

    theme: str
    kind: str
    """Where its people write: cli, api_server, telegram …"""
    counts: Mapping[str, int]


class Attendance:
    """Any thread may put something down; one thread takes it."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._sessions: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._done = Meters()
        self._stored: Mapping[str, float] = {}

    @property
    def kind(self) -> str:
        """Where people write to this process, as far as it knows: the kinds it has met, the last one first."""
        return ", ".join(dict.fromkeys(each for each in reversed(self._kinds.values()) if each))

    def begin(self, session: Session) -> None:
        """A session begins, or goes on in another request."""
        key = (session.theme, session.session_id)
        if session.theme not in self._kinds and len(self._kinds) >= MAX_THEMES:
            return
        self._kinds[session.theme] = session.platform or self._kinds.get(session.theme, "")
        if key not in self._sessions:
            self._sessions[key] = None
            self._put(session.theme, SESSIONS, 1)
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def write(self, items: Sequence[WriteItem]) -> None:
        """Items were recorded."""
        for item in items:
            if isinstance(item, AddTurn):
                self._put(item.theme, TURNS, 1)
            elif isinstance(item, AddMemory | ReplaceMemory | RemoveMemory):
                self._put(item.theme, MEMORIES, 1)

    def recall(self, theme: str) -> None:
        """A question was asked."""
        self._put(theme, RECALLS, 1)

    def due(self) -> tuple[list[Attended], Mapping[str, float]]:
        """What has not been stored yet, and a mark for `stored` to say that it has."""
        totals = self._done.totals()
        done: dict[str, dict[str, int]] = {}
        for name, total in totals.items():
            more = int(total - self._stored.get(name, 0))
            if more:
                what, _, theme = name.partition(SEPARATOR)
                done.setdefault(theme, dict.fromkeys(COUNTED, 0))[what] = more
        return [Attended(theme, self._kinds.get(theme, ""), counts) for theme, counts in done.items()], totals

    def stored(self, mark: Mapping[str, float]) -> None:
        """What was due at this mark is in the registry."""
        self._stored = mark

    def _put(self, theme: str, what: str, amount: int) -> None:
        if theme in self._kinds:
            self._done.put(f"{what}{SEPARATOR}{theme}", amount)
