"""What is older than its theme keeps it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.store import flatten, gate, history, vectors
from hermes_memory_pgvector.values import Kind, Target

BATCH = 1000
LONG_AGO_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Rules:
    """Before which time turns and memories go; None keeps them."""

    turns: datetime | None
    themes: tuple[tuple[str, datetime | None], ...] = ()
    """Themes with a rule of their own."""
    memories: datetime | None = None
    theme: str | None = None
    """Only this theme is looked at; None for all."""
    written: tuple[str, ...] | None = None
    """Only memories of these themes are looked at; None for all."""
    named: tuple[str, ...] | None = None
    """The same with those that have a rule of their own, for turns of no known home; None for all."""
    holder: str | None = None
    """Memories that another home than this one holds stay; None lets them go, too."""
    homes: tuple[str, ...] | None = None
    """Only turns that these homes wrote are looked at; None for all."""
    is_alone: bool = False
    """Whether no other home has written to this database: turns of no known home are then taken for these homes'."""

    @classmethod
    def of(cls, settings: Settings, now: datetime, theme: str | None = None) -> Rules:
        """What the settings say."""
        own = tuple((name, _cut(now, days)) for name, days in settings.days_of_themes)
        return cls(_cut(now, settings.turn_days), own, _cut(now, settings.memory_days), theme)

    def of_home(self, home_id: str, written: Collection[str] | None, former: Collection[str] = ()) -> Rules:
        """What a home may do unasked: other homes in the same database have rules of their own.

        It deletes the turns it wrote itself, also under the ids it had as a home it was copied from. Turns that do not
        say which home they come from, and memories, go only in the themes it writes to; None takes all themes for its.
        """
        themes = None if written is None else tuple(sorted(written))
        return replace(self, written=themes, holder=home_id, homes=(home_id, *former))

    def renamed(self, aliases: Mapping[str, str]) -> Rules:
        """The rules by the names that themes have now; of two that meet in a theme, the one that keeps more holds."""
        own = {name: cut for name, cut in self.themes if name not in aliases}
        for name, cut in self.themes:
            if name in aliases:
                new = aliases[name]
                own[new] = _longer(cut, own.get(new, self.turns))
        written = None if self.written is None else tuple(sorted({aliases.get(each, each) for each in self.written}))
        named = None
        if written is not None:
            # Whoever named the old theme did not name what the new one holds besides.
            named = tuple(sorted({*written, *(name for name, _ in self.themes if name not in aliases)}))
        return replace(self, themes=tuple(own.items()), written=written, named=named)

    @property
    def is_empty(self) -> bool:
        """Whether everything is kept."""
        return self.turns is None and self.memories is None and not any(cut for _, cut in self.themes)

    def values(self) -> dict[str, Any]:
        """What the statements take."""
        return {
            "themes": [name for name, _ in self.themes],
            "cuts": [cut for _, cut in self.themes],
            "cut": self.turns,
            "among": None if self.theme is None else [self.theme],
            "homes": None if self.homes is None else list(self.homes),
            "homeless": self._among(self.named) if self.is_alone else [],
        }

    def memory_values(self) -> dict[str, Any]:
        """What the statement for memories takes."""
        return {"cut": self.memories, "among": self._among(self.written), "holder": self.holder}

    def _among(self, themes: tuple[str, ...] | None) -> list[str] | None:
        if self.theme is not None:
            return [self.theme]
        return None if themes is None else list(themes)


class Due(NamedTuple):
    """What a theme has that is about to go."""

    theme: str
    now: int
    """Turns that are older than they are kept."""
    soon: int
    """Turns that will be within the days asked for."""
    oldest: datetime


class DueMemory(NamedTuple):
    """A memory that is too old."""

    theme: str
    target: Target
    id: int
    content: str


def due(connection: Connection, rules: Rules, soon_days: int) -> list[Due]:
    """What is about to go, by theme."""
    found = run(connection, "expire/count", **_current(connection, rules).values(), soon=soon_days)
    return [Due(*row) for row in found if row[1] or row[2]]


def is_alone(connection: Connection) -> bool:
    """Whether this transaction is the only one that sweeps."""
    return bool(one(connection, "expire/lock")[0])


def expire_turns(connection: Connection, rules: Rules, limit: int) -> int:
    """Delete some turns that are older than they are kept; how many, none when there are none left."""
    by_theme: dict[str, list[int]] = defaultdict(list)
    for theme, row_id in run(connection, "expire/turns", **_current(connection, rules).values(), limit=limit):
        by_theme[theme].append(row_id)
    expired = 0
    for theme, ids in by_theme.items():
        expired += run(connection, "forget/cut_turns", theme=theme, ids=ids).rowcount
        vectors.finish(connection, [(theme, Kind.TURN.value, row_id) for row_id in ids])
    return expired


def due_memories(connection: Connection, rules: Rules) -> list[DueMemory]:
    """Memories that nobody has changed, or added once more, for longer than they are kept."""
    if rules.memories is None:
        return []
    values = _current(connection, rules).memory_values()
    return [DueMemory(*row) for row in run(connection, "expire/memories", **values)]


def expire_memories(connection: Connection, due: Sequence[DueMemory]) -> None:
    """With the gate closed: delete memories, and what their history says of them."""
    groups: dict[tuple[str, Target], list[DueMemory]] = defaultdict(list)
    for each in due:
        groups[each.theme, each.target].append(each)
    for (theme, target), entries in sorted(groups.items()):
        gone = {each.content for each in entries}

        def quotes(text: str, gone: Collection[str] = gone) -> bool:
            return any(text.strip() in content for content in gone)

        flatten.apply(
            connection, theme, flatten.without(history.of_theme(connection, theme, target), gone, quotes)
        )  # fmt: skip
        run(connection, "memories/delete", theme=theme, ids=[each.id for each in entries])
        vectors.finish(connection, [(theme, Kind.MEMORY.value, each.id) for each in entries])


def _current(connection: Connection, rules: Rules) -> Rules:
    if rules.homes is not None:
        homes = list(rules.homes)
        # A home has marks in the buckets it wrote to: in each of them nobody else may have any.
        alone = buckets.reached(connection, lambda each: bool(one(each, "expire/is_only_home", homes=homes)[0]))
        is_alone = len(alone) == buckets.layout(connection).count and all(alone.values())
        rules = replace(rules, is_alone=is_alone)
    return rules.renamed(gate.look(connection).aliases)


def _longer(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else min(one, other)


def _cut(now: datetime, days: int) -> datetime | None:
    return now - timedelta(days=days) if 0 < days <= LONG_AGO_DAYS else None
