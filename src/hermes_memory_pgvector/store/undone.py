"""Turns that the user has taken back: hidden for as long as the host's own store has them taken back.

Nothing is deleted. The host's store says which turns: a row of ours belongs to a message there by its words and, where
they were said more than once, by its time. What an operator has shown again stays shown.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import audit_log, gate, hidden
from hermes_memory_pgvector.store.hidden import Bounds, Key
from hermes_memory_pgvector.values import Kind, UndoTurns

State = Literal["active", "undone", "replaced"]
"""Replaced: a summary, a copy or another session stands for it now."""
SessionName = tuple[str, str]
"""(theme, session id)"""
USER: Final = "user"
"""Who takes back what was said."""
MAX_SESSIONS: Final = 2000
EARLIER_US: Final = 2_000_000
"""A turn is reported after it was said, but the two clocks that say so may differ by this."""


class Rewound(NamedTuple):
    """How often a session was rewound, and how many of its messages are taken back now."""

    times: int
    undone: int


class Saying(NamedTuple):
    """A message of user or assistant in the host's store."""

    digests: frozenset[str]
    """Of its words, in each form the host may have reported them."""
    at_us: int
    state: State


class SessionTold(NamedTuple):
    """What the host's store holds of a session."""

    sessions: tuple[str, ...]
    """The session and those it goes on from since they were compressed."""
    sayings: tuple[Saying, ...]
    """Oldest first."""


class HostSessions(Protocol):
    """The host's own store."""

    def rewound(self, session_ids: Collection[str]) -> dict[str, Rewound]:
        """Those of these sessions that were ever rewound."""

    def told(self, session_id: str) -> SessionTold | None:
        """What the store holds of a session; None where nobody can tell."""


class TurnState(NamedTuple):
    """A row that may have been taken back."""

    id: int
    digest: str
    at_us: int
    is_hidden: bool
    is_undone: bool
    """Whether it is hidden because it was taken back."""
    may_be_hidden: bool
    """False for what an operator has shown again."""


class UndoneTurns:
    """Hides what was taken back, and shows what is active again."""

    def __init__(self, host: HostSessions, home_id: str, *, wants_vectors: bool) -> None:
        self._host = host
        self._home_id = home_id
        self._wants_vectors = wants_vectors
        self._sessions: OrderedDict[SessionName, None] = OrderedDict()

    @property
    def sessions(self) -> tuple[SessionName, ...]:
        """The sessions of which this process has stored turns, the latest last."""
        return tuple(self._sessions)

    def rewound(self, sessions: Iterable[SessionName]) -> dict[SessionName, Rewound]:
        """Those of these sessions that were ever rewound, and how far."""
        names = list(dict.fromkeys(sessions))
        rewound = self._host.rewound({session_id for _, session_id in names}) if names else {}
        return {name: rewound[name[1]] for name in names if name[1] in rewound}

    def read(self, connection: Connection, sessions: Iterable[SessionName]) -> dict[SessionName, SessionTold]:
        """Hide and show what is stored of these sessions as the host has it now; return those ever rewound."""
        names = list(dict.fromkeys(sessions))
        for name in names:
            self._sessions[name] = None
            self._sessions.move_to_end(name)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        told = {name: self._host.told(name[1]) for name in self.rewound(names)}
        found = {name: each for name, each in told.items() if each is not None}
        for name, each in found.items():
            self._apply(connection, name, each)
        return found

    def hide_new(
        self, connection: Connection, told: Mapping[SessionName, SessionTold], stored: Collection[tuple[str, int]]
    ) -> None:
        """Hide those of the turns just stored that were taken back before they arrived."""
        for name, each in told.items() if stored else ():
            self._apply(connection, name, each, among={row_id for _, row_id in stored})

    def take_back(self, connection: Connection, item: UndoTurns) -> None:
        """The host has told of an undo: apply it, by the last exchange reported where its store cannot be read."""
        name = item.theme, item.session_id
        told = self._host.told(item.session_id)
        if told is not None:
            self._apply(connection, name, told)
        elif item.turns:
            theme = gate.enter(connection).renamed(item).theme
            rows = _rows(connection, theme, (item.session_id,), item.turns)
            newest = {row.digest: row for row in sorted(rows, key=lambda row: row.at_us) if not row.is_hidden}
            self._hide(connection, theme, item.session_id, {row.id for row in newest.values()})

    def _apply(
        self, connection: Connection, name: SessionName, told: SessionTold, among: Collection[int] | None = None
    ) -> None:
        theme, session_id = name
        theme = gate.enter(connection).aliases.get(theme, theme)
        undone = {digest for each in told.sayings if each.state == "undone" for digest in each.digests}
        hide, show = decided(told.sayings, _rows(connection, theme, told.sessions, sorted(undone)))
        self._hide(connection, theme, session_id, hide if among is None else hide & set(among))
        if show and among is None:
            keys = [Key(Kind.TURN, theme, row_id) for row_id in sorted(show)]
            shown = hidden.show(connection, keys, wants_vectors=self._wants_vectors)
            self._note(connection, "redo", theme, session_id, len(shown))

    def _hide(self, connection: Connection, theme: str, session_id: str, rows: Collection[int]) -> None:
        if not rows:
            return
        bounds = Bounds(theme=theme, session_id=session_id)
        rule = hidden.add(connection, "undone", USER, home_id=self._home_id, bounds=bounds, is_open=False)
        gone = hidden.hide(connection, rule, [Key(Kind.TURN, theme, row_id) for row_id in sorted(rows)])
        self._note(connection, "undo", theme, session_id, len(gone))

    def _note(self, connection: Connection, action: str, theme: str, session_id: str, count: int) -> None:
        audit_log.insert(
            connection, actor=USER, home_id=self._home_id, action=action, theme=theme, subject=session_id[:200],
            counts={"turns": count},
        )  # fmt: skip


def decided(sayings: Sequence[Saying], rows: Sequence[TurnState]) -> tuple[set[int], set[int]]:
    """Which rows to hide, and which to show again. Pure.

    A row is of the last saying of its words that is not later than the row. A saying without a row that follows one
    that was replaced is its copy, and has its row.
    """
    said: dict[str, list[Saying]] = defaultdict(list)
    for saying in sayings:
        for digest in saying.digests:
            said[digest].append(saying)
    stored: dict[str, list[TurnState]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.at_us, row.id)):
        stored[row.digest].append(row)
    hide, show = set(), set()
    for digest, mine in stored.items():
        owned: list[list[TurnState]] = [[] for _ in said[digest]]
        for row in mine if owned else ():
            earlier = [place for place, each in enumerate(said[digest]) if each.at_us - EARLIER_US <= row.at_us]
            owned[max(earlier, default=0)].append(row)
        for place in range(1, len(owned)):
            if not owned[place] and owned[place - 1] and said[digest][place - 1].state == "replaced":
                owned[place].append(owned[place - 1].pop())
        for saying, each in zip(said[digest], owned, strict=True):
            for row in each:
                if saying.state == "undone" and not row.is_hidden and row.may_be_hidden:
                    hide.add(row.id)
                elif saying.state == "active" and row.is_undone:
                    show.add(row.id)
    return hide, show


def _rows(connection: Connection, theme: str, sessions: Sequence[str], digests: Sequence[str]) -> list[TurnState]:
    """The turns of these words in these sessions, and those that are hidden as taken back."""
    found = run(connection, "hidden/of_undone", theme=theme, session_ids=list(sessions), digests=list(digests))
    return [TurnState(*row) for row in found]
