"""How a fleet was used lately, day by day: what came into the memory, and what recall was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import browse, recall_log
from hermes_memory_pgvector.store.browse import DayGrowth
from hermes_memory_pgvector.store.recall_log import RecallDay

DAYS = 14
"""So many days are told apart; what came before is one sum."""


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a fleet, UTC."""

    day: date
    memories: int
    """Those that came, less those that went."""
    turns: int
    recalls: int
    """The least there were: the log keeps the last answers of each theme."""
    degraded: int
    """Recalls that had to do without something, such as the embedder."""
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Growth:
    """What the list of themes shows beside each of them."""

    days: Mapping[str, tuple[int, ...]]
    """For each theme, the rows that came on each of the last days, the oldest first."""
    homes: Mapping[str, tuple[str, ...]]
    """The homes that hold memories of it."""


def days(connection: Connection, theme: str | None = None, *, today: date | None = None) -> tuple[Day, ...]:
    """The last days of a theme or of all, the oldest first; a day without anything is there, too."""
    last = today or datetime.now(UTC).date()
    before = last - timedelta(days=DAYS)
    if theme is None:
        grown = browse.growth(connection, before)
    else:
        grown = browse.growth_of_themes(connection, [theme], before)[theme]
    asked = recall_log.days(connection, datetime.combine(before + timedelta(days=1), time.min, UTC), theme)
    came = {each.day: each for each in grown}
    answered = {each.day: each for each in asked}
    return tuple(_day(day, came.get(day), answered.get(day)) for day in _all_days(last))


def growth(connection: Connection, themes: Sequence[str], *, today: date | None = None) -> Growth:
    """How each of these themes grew, and who holds memories of it."""
    last = today or datetime.now(UTC).date()
    grown = browse.growth_of_themes(connection, themes, last - timedelta(days=DAYS))
    homes = browse.theme_homes(connection, themes)
    lines = {}
    for theme, known in grown.items():
        rows = {each.day: each.memories + each.turns for each in known}
        lines[theme] = tuple(rows.get(day, 0) for day in _all_days(last))
    return Growth(lines, {theme: tuple(names) for theme, names in homes.items()})


def _all_days(last: date) -> list[date]:
    return [last - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]


def _day(day: date, came: DayGrowth | None, answered: RecallDay | None) -> Day:
    return Day(
        day,
        came.memories if came else 0,
        came.turns if came else 0,
        answered.answers if answered else 0,
        answered.degraded if answered else 0,
        round(answered.p50_ms, 1) if answered else None,
        round(answered.p95_ms, 1) if answered else None,
    )
