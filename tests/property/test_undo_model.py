"""Undo and restore against a plain model, over random operations by tool and by file, and undos of undos."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.care import changes, timeline
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.care.changes import Hand
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import history, memories, mirror_files
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.themes import theme_names
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, Origin, RemoveMemory, ReplaceMemory
from testing.postgres import Database

MIRRORED, UNMIRRORED = "home-a", "home-b"
HOMES = (MIRRORED, UNMIRRORED)
CONTENTS = st.sampled_from(("alpha", "beta", "gamma", "delta"))
START = 1_700_000_000_000_000
_themes = itertools.count(1)


@dataclass
class Model:
    """Which homes hold which entries; every step remembers what was there before and after it."""

    homes_of: dict[str, set[str]] = field(default_factory=dict)
    steps: list[tuple[set[str], set[str]]] = field(default_factory=list)

    def take(self, operation: MemoryOperation) -> None:
        before, home = set(self.homes_of), operation.home_id
        if isinstance(operation, AddMemory):
            self._hold(operation.content, home)
        else:
            old = operation.previous or ""
            is_meant = old in self.homes_of and (not self.homes_of[old] or home in self.homes_of[old])
            if isinstance(operation, RemoveMemory):
                if is_meant:
                    self._drop(old, home)
            elif not is_meant:
                self._hold(operation.content, home)
            elif old != operation.content:
                self._drop(old, home)
                self._hold(operation.content, home)
        self.steps.append((before, set(self.homes_of)))

    def undo(self, number: int) -> str:
        """Undo a step; "done", or why it cannot be: "file wins" or "nothing"."""
        before, after = self.steps[number]
        remove = (after - before) & set(self.homes_of)
        restore = (before - after) - set(self.homes_of)
        if not remove and not restore:
            return "nothing"
        if any(MIRRORED in self.homes_of[content] for content in remove):
            return "file wins"
        was = set(self.homes_of)
        holders = [self.homes_of.pop(content) for content in remove]
        for content in restore:
            # An entry that only gets its former words back stays with the home that holds it.
            self.homes_of[content] = holders[0] if len(remove) == len(restore) == 1 and len(holders[0]) <= 1 else set()
        steps = 1 if len(remove) == len(restore) == 1 and len(holders[0]) <= 1 else 0
        self.steps += [(was, set(self.homes_of))] * steps
        return "done"

    def _hold(self, content: str, home: str) -> None:
        self.homes_of.setdefault(content, set()).update({home} if home else set())

    def _drop(self, content: str, home: str) -> None:
        self.homes_of[content].discard(home)
        if not self.homes_of[content]:
            del self.homes_of[content]


class Rows:
    """The same in Postgres, by the way that every write goes; the mirrored home's file holds what the home holds."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.theme = f"undo-{next(_themes)}"
        self.clock = START
        self.hand = Hand(Actor("ada@desk", UNMIRRORED), self.now, wants_vectors=True)

    def now(self) -> Moment:
        self.clock += 1_000_000
        return Moment(self.clock, self.clock)

    def take(self, operation: MemoryOperation) -> None:
        memories.store(self.connection, [Placed(operation, "w", operation.when.order_us, 0)])
        self.write_file()

    def write_file(self) -> None:
        held = [content for content, homes in self.homes_of().items() if MIRRORED in homes]
        digests = [mirror_files.digest_of(each) for each in held]
        mirror_files.write_file(self.connection, MIRRORED, "memory", digests, datetime.now(UTC))

    def homes_of(self) -> dict[str, set[str]]:
        rows = self.connection.execute(
            "SELECT content, ARRAY(SELECT jsonb_object_keys(homes)) FROM memory_entries WHERE agent_identity = %s",
            (self.theme,),
        ).fetchall()
        return {str(content): set(homes) for content, homes in rows}  # type: ignore[call-overload]

    def events(self) -> list[history.Event]:
        return history.of_theme(self.connection, self.theme, "memory")[0]

    def undo(self, event_id: int) -> str:
        try:
            found = changes.undo(self.connection, event_id, self.hand, execute=True)
        except CareError:
            return "nothing"
        assert found.executed is not bool(found.blocked)
        return "file wins" if found.blocked else "done"


@pytest.fixture(scope="module")
def connection(postgres_server: object, migrated_template: Database) -> Iterator[Connection]:
    from testing.postgres import new_database

    with (
        new_database(postgres_server, template=migrated_template.name) as database,  # type: ignore[arg-type]
        psycopg.connect(database.runtime_dsn, autocommit=True) as opened,
    ):
        yield opened


@st.composite
def operations(draw: st.DrawFn, theme: str, when: Moment) -> MemoryOperation:
    home, origin = draw(st.sampled_from(HOMES)), draw(st.sampled_from(tuple(Origin)))
    kind = draw(st.sampled_from(("add", "add", "replace", "remove")))
    if kind == "add":
        return AddMemory(theme, "memory", draw(CONTENTS), when, home, origin)
    previous = draw(CONTENTS)
    if kind == "replace":
        return ReplaceMemory(theme, "memory", draw(CONTENTS), "", when, home, previous, origin)
    return RemoveMemory(theme, "memory", "", when, home, previous, origin)


@settings(max_examples=25)
@given(data=st.data())
def test_undo_of_anything_leads_to_the_state_of_the_model(connection: Connection, data: st.DataObject) -> None:
    rows, model = Rows(connection), Model()
    numbers: list[int] = []
    with connection.transaction():
        for _ in range(data.draw(st.integers(1, 10))):
            wants_undo: bool = data.draw(st.booleans())
            if numbers and wants_undo:
                place = data.draw(st.integers(0, len(numbers) - 1))
                assert rows.undo(numbers[place]) == model.undo(place)
                rows.write_file()
            else:
                operation = data.draw(operations(rows.theme, rows.now()))
                model.take(operation)
                rows.take(operation)
            assert rows.homes_of() == model.homes_of
            events = rows.events()
            assert {content: set(entry.homes) for content, entry in timeline.state_of(events).items()} == model.homes_of
            # Undoing several entries at once takes several events: each is undone by itself.
            new = [event.id for event in events if event.id not in set(numbers)]
            numbers += new
            for effect in list(timeline.replay(events))[len(model.steps) :]:
                model.steps.append((set(_before(events, effect.event.id)), set(_after(events, effect.event.id))))


def _before(events: list[history.Event], event_id: int) -> set[str]:
    return set(timeline.state_of(event for event in events if event.id < event_id))


def _after(events: list[history.Event], event_id: int) -> set[str]:
    return set(timeline.state_of(event for event in events if event.id <= event_id))


@settings(max_examples=15)
@given(data=st.data())
def test_restore_brings_back_every_moment_as_far_as_files_allow(connection: Connection, data: st.DataObject) -> None:
    rows, model = Rows(connection), Model()
    with connection.transaction():
        moments = []
        for _ in range(data.draw(st.integers(1, 8))):
            operation = data.draw(operations(rows.theme, rows.now()))
            model.take(operation)
            rows.take(operation)
            moments.append((timeline.time_of(rows.clock), set(model.homes_of)))
        # A theme that never held anything does not exist.
        assume(rows.theme in theme_names(connection))
        at, wanted = data.draw(st.sampled_from(moments))
        in_file = {content for content, homes in model.homes_of.items() if MIRRORED in homes}
        dry = changes.restore(connection, rows.theme, at, rows.hand, execute=False)
        assert set(rows.homes_of()) == set(model.homes_of)
        done = changes.restore(connection, rows.theme, at, rows.hand, execute=True)
        assert [each.remove for each in done.changes] == [each.remove for each in dry.changes]
        assert set(rows.homes_of()) == wanted | in_file
        assert {blocked.content for _, blocked in done.blocked} == in_file - wanted
        again = changes.restore(connection, rows.theme, at + timedelta(microseconds=1), rows.hand, execute=True)
        assert not again.executed
