"""Taking operations out of a history of memories, so that the same entries are left. The plans are pure.

Entries are the sum of all operations, and operations name entries by a part of their text: leaving one out may change
what another means. So what says a text that goes is left out, and what only quotes it becomes a plain add; where the
sum is not the same then, the history is flattened: for every entry and home that is left, the operation that made it
so becomes a plain add, and everything else goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.store import history
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.store.memory_state import State, fold, select
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Origin, RemoveMemory, Target

Shape = Mapping[str, frozenset[str]]
"""The homes that hold each entry."""


class Rest(NamedTuple):
    """What becomes of a history: which operations go, and which become plain adds of what they say."""

    gone: tuple[int, ...] = ()
    added: tuple[int, ...] = ()

    def of(self, events: Sequence[Event]) -> list[Event]:
        """The history afterwards."""
        gone, added = set(self.gone), set(self.added)
        return [
            replace(event, action="add", old_text="", previous=None) if event.id in added else event
            for event in events
            if event.id not in gone
        ]


def without(
    events: Sequence[Event], texts: Collection[str], quotes: Callable[[str], bool], removals: Collection[int] = ()
) -> Rest:
    """A history that no longer says any of these texts, and quotes nothing that may be a part of them.

    `removals` that are named by their numbers go, too.
    """
    gone: list[int] = []
    added: list[int] = []
    for event in events:
        if event.content in texts if event.action != "remove" else event.id in removals:
            gone.append(event.id)
        elif any(quotes(text) for text in (event.old_text, event.previous or "") if text):
            (gone if event.action == "remove" else added).append(event.id)
    cut = Rest(tuple(gone), tuple(added))
    wanted = {content: homes for content, homes in shape(events).items() if content not in texts}
    return cut if shape(cut.of(events)) == wanted else flattened(events, wanted)


def shortened(events: Sequence[Event], before: datetime) -> Rest:
    """A history without what is older, except what the entries of then are made of; whole where that is not enough."""
    old = [event for event in events if event.at < before]
    rest = flattened(old, shape(old))
    return rest if shape(rest.of(events)) == shape(events) else Rest()


def flattened(events: Sequence[Event], wanted: Shape) -> Rest:
    """A history that says of each entry that its homes have added it, and nothing else."""
    kept: set[int] = set()
    for content, homes in wanted.items():
        says = [event for event in events if event.action != "remove" and event.content == content]
        # Whoever typed an entry into the table has left no operation.
        for home in (homes or [""]) if says else ():
            makers = [event for event in says if event.home_id == home] or says
            told = [event for event in makers if event.origin is Origin.TOOL]
            kept.add((told or makers)[-1].id)
    return Rest(
        tuple(event.id for event in events if event.id not in kept),
        tuple(event.id for event in events if event.id in kept and event.action != "add"),
    )


def shape(events: Sequence[Event]) -> Shape:
    """What a history makes."""
    return {content: frozenset(entry.homes) for content, entry in fold(event.operation() for event in events).items()}


def apply(connection: Connection, theme: str, rest: Rest) -> int:
    """Give a theme's history the form that was planned; how many operations it concerns."""
    if rest.gone:
        run(connection, "history/drop", theme=theme, ids=list(rest.gone))
    if rest.added:
        run(connection, "history/flatten", theme=theme, ids=list(rest.added))
    return len(rest.gone) + len(rest.added)


def due(connection: Connection, before: datetime, limit: int) -> list[tuple[str, Target]]:
    """Themes and targets whose history can be shortened; none while another process is at it."""
    if not one(connection, "history/our_turn")[0]:
        return []
    return run(connection, "history/due", before=before, limit=limit).fetchall()


def shorten(connection: Connection, theme: str, target: Target, before: datetime) -> int:
    """Shorten one theme's history while nobody changes its memories; how many operations went."""
    history.lock(connection, theme, [target], [])
    rest = shortened(history.of_theme(connection, theme, target), before)
    apply(connection, theme, rest)
    return len(rest.gone)


def exactly(operation: MemoryOperation, state: State) -> MemoryOperation | None:
    """A late operation as it applies to the state at its place, quoting only what is there; None for a void one."""
    if isinstance(operation, AddMemory):
        return operation
    meant = select(state, operation)
    if meant is not None:
        return replace(operation, old_text="", previous=meant.content)
    if isinstance(operation, RemoveMemory):
        return None
    # A replacement of something that is not there is an addition.
    return AddMemory(
        operation.theme, operation.target, operation.content, operation.when, operation.home_id, operation.origin,
        operation.metadata, operation.written_by, operation.untrusted,
    )  # fmt: skip
