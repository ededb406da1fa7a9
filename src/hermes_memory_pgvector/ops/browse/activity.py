"""`activity`: what came into a memory on each of the last days, for the page's chart and its line about trust."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import Facts, Operation, Option

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.browse import DayCount

DAYS: Final = 14


@dataclass(frozen=True, slots=True)
class Activity(Facts):
    """The last days, the oldest first, and what of their rows needs a second look."""

    untrusted: int = column("untrusted", default=0)
    """Rows that came from turns that read a stranger's text, and that recall may find."""
    hidden: int = column("hidden", default=0)
    days: tuple[DayCount, ...] = ()


def activity(memory: Memory, *, theme: str | None) -> Activity:
    """Count what came; a day without anything is there, too."""
    from hermes_memory_pgvector.store import browse

    last = datetime.now(UTC).date()
    every = [last - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    with memory.reading(theme) as connection:
        found = {each.day: each for each in browse.days(connection, datetime.combine(every[0], time.min, UTC), theme)}
    lines = tuple(found.get(day, browse.DayCount(day)) for day in every)
    return Activity(sum(each.untrusted for each in lines), sum(each.hidden for each in lines), lines)


ACTIVITY = Operation(
    "activity",
    "what came in on each of the last 14 days",
    (Option("--theme", "only this theme (default: all)", parse.filled, metavar="THEME"),),
    activity,
    (("activity --theme marketing", "how a theme grew in two weeks"),),
    is_listed=False,
)
