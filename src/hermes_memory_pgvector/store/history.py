"""The operations on memories as people name them, and what each made of the memory: by the rules of memory_state.py."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.store.memory_state import Entry, State, apply, fold
from hermes_memory_pgvector.store.turns import EPOCH
from hermes_memory_pgvector.values import (
    MCP_HOLDER,
    AddMemory,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
)

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Event:
    """One operation on memories."""

    theme: str
    id: int
    target: Target
    action: str
    content: str
    """What an add or replace wrote; empty for a remove."""
    old_text: str
    previous: str | None
    home_id: str
    origin: Origin
    at: datetime
    metadata: Mapping[str, Any]
    written_by: RowOrigin | None = None
    untrusted: bool = False
    order: tuple[int, str, int, int] = (0, "", 0, 0)
    """Where it stands among all operations of its theme and target."""

    @property
    def by(self) -> str:
        """Who made it: an agent's tool, an edited file, an operator's command, or another agent."""
        if self.home_id == MCP_HOLDER:
            return RowOrigin.MCP.value
        command = self.metadata.get("command") if self.written_by is RowOrigin.OPERATOR else None
        return str(command or self.origin.value)

    @property
    def session_id(self) -> str | None:
        """The session an agent was in, if the host said so."""
        session = self.metadata.get("session_id")
        return str(session) if session else None

    def operation(self) -> MemoryOperation:
        """The same as the rules of memory_state take it."""
        common: dict[str, Any] = {
            "when": Moment((self.at - EPOCH) // MICROSECOND, self.order[0]),
            "home_id": self.home_id,
            "origin": self.origin,
            "metadata": self.metadata,
            "written_by": self.written_by,
            "untrusted": self.untrusted,
        }
        if self.action == "add":
            return AddMemory(self.theme, self.target, self.content, **common)
        if self.action == "replace":
            return ReplaceMemory(self.theme, self.target, self.content, self.old_text, previous=self.previous, **common)
        return RemoveMemory(self.theme, self.target, self.old_text, previous=self.previous, **common)


def newest(
    connection: Connection,
    *,
    theme: str | None,
    since: datetime | None = None,
    until: datetime | None = None,
    after_id: int | None = None,
    before_id: int | None = None,
    limit: int | None = None,
) -> list[Event]:
    """Operations of a theme, a time and between two numbers, or all, the last to arrive first."""
    values = {"theme": theme, "since": since, "until": until, "after_id": after_id, "before_id": before_id}
    return list(map(_event, run(connection, "history/list", **values, limit=limit)))


def of_theme(connection: Connection, theme: str, target: Target) -> list[Event]:
    """Every operation on a theme's memories in the order they were made."""
    return list(map(_event, run(connection, "history/of_theme", theme=theme, target=target)))


def find(connection: Connection, event_id: int, theme: str | None = None) -> tuple[str, Target] | None:
    """The theme and target an operation belongs to."""
    found: tuple[str, Target] | None = one(connection, "history/find", id=event_id, theme=theme)
    return found


def lock(connection: Connection, theme: str, targets: Collection[Target], home_ids: Collection[str]) -> None:
    """Let nobody else change a theme's memories until the transaction ends.

    All homes first, and the targets in the order of every writer: a mirror that compares at this moment holds its home
    and waits for the theme.
    """
    run(connection, "memories/lock_homes", home_ids=sorted({"", *home_ids}))
    for target in sorted(targets):
        run(connection, "memories/lock", theme=theme, target=target)


def heard_of(connection: Connection, home_ids: Sequence[str], since: datetime) -> list[str]:
    """Those of these homes that somebody has heard of since a time."""
    return [home_id for (home_id,) in run(connection, "history/heard_of", home_ids=list(home_ids), since=since)]


def _event(row: Any) -> Event:
    *told, origin, at, metadata, by, untrusted, order_us, writer, seq, part = row
    order = order_us, writer, seq, part
    return Event(*(*told, Origin(origin), at, metadata, by and RowOrigin(by), untrusted, order))


class Effect(NamedTuple):
    """What one operation changed: the entries it concerned, before and after; None where there was none."""

    event: Event
    before: Mapping[str, Entry | None]
    after: Mapping[str, Entry | None]

    @property
    def gone(self) -> tuple[str, ...]:
        """Entries that were there before it and not after."""
        return tuple(content for content, entry in self.before.items() if entry is not None and self._lost(content))

    @property
    def came(self) -> tuple[str, ...]:
        """Entries that were there after it and not before."""
        return tuple(content for content, entry in self.before.items() if entry is None and not self._lost(content))

    def _lost(self, content: str) -> bool:
        return self.after.get(content) is None


def replay(events: Iterable[Event]) -> Iterator[Effect]:
    """What each operation changed, in the order they were made."""
    state: State = {}
    for event in events:
        before = apply(state, event.operation())
        yield Effect(event, before, {content: state.get(content) for content in before})


def last_known(events: Iterable[Event]) -> State:
    """Every entry there ever was, as it was last."""
    known: State = {}
    for effect in replay(events):
        known.update({content: entry for content, entry in effect.after.items() if entry is not None})
    return known


def state_at(events: Iterable[Event], at: datetime) -> State:
    """What a theme held at a time: what the operations made until then had made."""
    return fold(event.operation() for event in events if event.at <= at)


def former_words(events: Iterable[Event], at: datetime) -> dict[str, str]:
    """What the entries that were reworded since a time said then, by what they say now."""
    names: dict[str, str] = {}
    for effect in replay(events):
        if effect.event.at > at and len(effect.came) == len(effect.gone) == 1:
            (came,), (gone,) = effect.came, effect.gone
            names[came] = names.pop(gone, gone)
    return names


def lineage(events: Sequence[Event], content: str) -> tuple[Event, ...]:
    """How the entry of this content came to be: the operations that made it what it is, oldest first."""
    stories: dict[str, list[Event]] = {}
    for effect in replay(events):
        inherited = [event for gone in effect.gone for event in stories.pop(gone, [])]
        for came in effect.came:
            stories[came] = [*inherited, effect.event]
        if not effect.came and not effect.gone:
            for touched, entry in effect.after.items():
                if entry is not None and effect.before[touched] != entry:
                    stories.setdefault(touched, []).append(effect.event)
    return tuple(stories.get(content, ()))
