"""The first thing an operator sees: the themes with their growth, and how the fleet was used day by day."""

from __future__ import annotations

import time
from pathlib import Path

from hermes_memory_pgvector.care import activity as activity_of
from hermes_memory_pgvector.care import themes
from hermes_memory_pgvector.web import access
from hermes_memory_pgvector.web.asked import Asked, Document, plain

PAGE = 50
MOST = 200
REMEMBERED_SECONDS = 25.0

_remembered: dict[Path, tuple[float, Document]] = {}
"""By home, when it was worked out, and the answer; replaced whole."""


def fleet(asked: Asked) -> Document:
    """One page of themes, sorted and searched by name; the sums are over all of them."""
    needle = asked.text("find").casefold()
    order = asked.one_of("sort", "size", "growth", "recent", "name")
    first = asked.whole("first", 0, 0, 10**9)
    limit = asked.whole("limit", PAGE, 1, MOST)
    with access.reading(asked.home) as connection:
        found = themes.overview(connection)
        wanted = [theme for theme in themes.ordered(found, order) if needle in theme.theme.casefold()]
        shown = wanted[first : first + limit]
        grown = activity_of.growth(connection, [theme.theme for theme in shown])
    return {
        "themes": [
            {**plain(theme), "growth": grown.days[theme.theme], "homes": grown.homes[theme.theme]} for theme in shown
        ],
        "first": first,
        "count": len(wanted),
        "all": len(found),
        "memories": sum(theme.memories for theme in found),
        "turns": sum(theme.turns for theme in found),
    }


def activity(asked: Asked) -> Document:
    """What came and what was asked on each of the last days, in one theme or in all."""
    theme = asked.text("theme") or None
    if theme is None:
        return _activity_of_all(asked)
    with access.reading(asked.home) as connection:
        themes.require(connection, theme)
        return {"days": plain(activity_of.days(connection, theme))}


def forget_answers() -> None:
    """Work the next answer out anew."""
    _remembered.clear()


def _activity_of_all(asked: Asked) -> Document:
    """The same for all themes, which reads the whole recall log: every open page shares one answer for a while."""
    now = time.monotonic()
    known = _remembered.get(asked.home)
    if known is not None and now - known[0] < REMEMBERED_SECONDS:
        return known[1]
    with access.reading(asked.home) as connection:
        found: Document = {"days": plain(activity_of.days(connection))}
    _remembered[asked.home] = now, found
    return found
