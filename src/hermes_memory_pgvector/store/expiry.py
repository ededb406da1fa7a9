"""What is older than its theme keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.store import erasure
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.values import Kind

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

    @classmethod
    def of(cls, settings: Settings, now: datetime, theme: str | None = None) -> Rules:
        """What the settings say."""
        own = tuple((name, _cut(now, days)) for name, days in settings.ttl)
        return cls(_cut(now, settings.ttl_days), own, _cut(now, settings.memory_ttl_days), theme)

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
            "theme": self.theme,
        }


@dataclass(frozen=True, slots=True)
class Due:
    """What a theme has that is about to go."""

    theme: str
    now: int
    """Turns that are older than they are kept."""
    soon: int
    """Turns that will be within the days asked for."""
    oldest: datetime


@dataclass(slots=True)
class Expired:
    """What went."""

    counts: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many rows."""
        return sum(self.counts.values())

    def add(self, name: str, count: int) -> None:
        """Count what went."""
        self.counts[name] = self.counts.get(name, 0) + count


def due(connection: Connection, rules: Rules, soon_days: int) -> list[Due]:
    """What is about to go, by theme."""
    values = {**rules.values(), "soon": soon_days}
    rows: list[Any] = connection.execute(statement("expire/count"), values).fetchall()
    return [Due(*row) for row in rows if row[1] or row[2]]


def is_alone(connection: Connection) -> bool:
    """Whether this transaction is the only one that sweeps."""
    row: Any = connection.execute(statement("expire/lock")).fetchone()
    return bool(row[0])


def expire_turns(connection: Connection, rules: Rules, limit: int) -> Expired:
    """Delete some turns and delegations that are older than they are kept; none are left when nothing went."""
    expired = Expired()
    values = {**rules.values(), "limit": limit}
    turns: list[Any] = connection.execute(statement("expire/turns"), values).fetchall()
    if turns:
        keys = {"themes": [theme for theme, _ in turns], "ids": [row_id for _, row_id in turns]}
        expired.add("turns", connection.execute(statement("erase/drop_turns"), keys).rowcount)
        erasure.drop_pending(connection, [(theme, Kind.TURN.value, row_id) for theme, row_id in turns])
    edges: list[Any] = connection.execute(statement("expire/delegations"), values).fetchall()
    if edges:
        keys = {"themes": [theme for theme, _ in edges], "ids": [row_id for _, row_id in edges]}
        expired.add("delegations", connection.execute(statement("erase/drop_delegations"), keys).rowcount)
    return expired


def _cut(now: datetime, days: int) -> datetime | None:
    return now - timedelta(days=days) if 0 < days <= LONG_AGO_DAYS else None
