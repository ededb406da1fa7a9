"""Memory operations against plain models: the meaning of the fold, and rows that equal it however they arrive."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, RemoveMemory, ReplaceMemory
from testing.cases import examples
from testing.postgres import Database

HOMES = ("home-a", "home-b")
# Few words with few letters, so that substrings, wildcards, quotes and repetitions meet each other often.
CONTENTS = st.text(alphabet="ab%_\\' ", min_size=1, max_size=4).map(str.strip).filter(bool)
PARTS = st.text(alphabet="ab%_\\' ", max_size=3)
_themes = itertools.count(1)


@dataclass
class PlainModel:
    """The contract, written down once more: an entry is its words and the homes that hold it."""

    homes_of: dict[str, set[str]]

    def add(self, content: str, home: str) -> None:
        self.homes_of.setdefault(content, set()).add(home)

    def drop(self, content: str, home: str) -> None:
        self.homes_of[content].discard(home)
        if not self.homes_of[content]:
            del self.homes_of[content]

    def meant(self, old_text: str, previous: str | None, home: str) -> str | None:
        own = [content for content, homes in self.homes_of.items() if home in homes]
        if previous is not None and previous in own:
            return previous
        found = [content for content in own if old_text.strip() and old_text.strip() in content]
        return found[0] if len(found) == 1 else None

    def take(self, operation: MemoryOperation) -> None:
        home = operation.home_id
        if isinstance(operation, AddMemory):
            self.add(operation.content, home)
            return
        meant = self.meant(operation.old_text, operation.previous, home)
        if meant is not None and not (isinstance(operation, ReplaceMemory) and meant == operation.content):
            self.drop(meant, home)
        if isinstance(operation, ReplaceMemory):
            self.add(operation.content, home)


@st.composite
def operations(draw: st.DrawFn, theme: str = "theme") -> list[MemoryOperation]:
    made: list[MemoryOperation] = []
    for number in range(draw(st.integers(1, 12))):
        # Some share their moment: then the journal's place decides.
        when = Moment(1_700_000_000_000_000 + number, number // draw(st.sampled_from((1, 1, 2))))
        home = draw(st.sampled_from(HOMES))
        kind = draw(st.sampled_from(("add", "add", "replace", "remove")))
        if kind == "add":
            made.append(AddMemory(theme, "memory", draw(CONTENTS), when, home))
            continue
        old, previous = draw(PARTS), draw(st.none() | CONTENTS)
        if kind == "replace":
            made.append(ReplaceMemory(theme, "memory", draw(CONTENTS), old, when, home, previous=previous))
        else:
            made.append(RemoveMemory(theme, "memory", old, when, home, previous=previous))
    return made


@given(operations())
@settings(max_examples=examples(200))
def test_the_fold_is_what_the_contract_says(made: list[MemoryOperation]) -> None:
    model = PlainModel({})
    for operation in made:
        model.take(operation)
    assert {content: set(entry.homes) for content, entry in fold(made).items()} == model.homes_of


@pytest.fixture(scope="module")
def connection(postgres_server: object, migrated_template: Database) -> Iterator[Connection]:
    from testing.postgres import new_database

    with (
        new_database(postgres_server, template=migrated_template.name) as made,  # type: ignore[arg-type]
        psycopg.connect(made.owner_dsn, autocommit=True, prepare_threshold=None) as opened,
    ):
        yield opened


@given(data=st.data())
@settings(max_examples=examples(60))
def test_the_rows_are_the_fold_in_any_order_of_arrival(connection: Connection, data: st.DataObject) -> None:
    """Operations of several writers arrive in any order, in batches of any size, some of them twice."""
    theme = f"theme {next(_themes)}"
    made = data.draw(operations(theme))
    writers = [data.draw(st.sampled_from(("w1", "w2"))) for _ in made]
    placed = [Placed(operation, writers[seq], seq, 0) for seq, operation in enumerate(made)]
    arriving = data.draw(st.permutations(placed + data.draw(st.lists(st.sampled_from(placed), max_size=3))))
    while arriving:
        size = data.draw(st.integers(1, len(arriving)))
        batch, arriving = arriving[:size], arriving[size:]
        with connection.transaction():
            memories.store(connection, batch)
    expected = fold(item.operation for item in sorted(placed, key=lambda item: item.order))
    assert _rows(connection, theme) == {content: set(entry.homes) for content, entry in expected.items()}


def test_an_operation_that_arrives_twice_in_one_batch_is_applied_once(connection: Connection) -> None:
    theme = f"theme {next(_themes)}"
    made: list[MemoryOperation] = [
        AddMemory(theme, "memory", "Oslo", Moment(1, 1), HOMES[0]),
        AddMemory(theme, "memory", "Oslo harbour", Moment(2, 2), HOMES[0]),
        RemoveMemory(theme, "memory", "Oslo", Moment(3, 3), HOMES[0], previous="Oslo"),
    ]
    placed = [Placed(operation, "w1", seq, 0) for seq, operation in enumerate(made)]
    with connection.transaction():
        memories.store(connection, [*placed, *placed])
    assert _rows(connection, theme) == {"Oslo harbour": {HOMES[0]}}


def _rows(connection: Connection, theme: str) -> dict[str, set[str]]:
    found = connection.execute(
        "SELECT content, ARRAY(SELECT jsonb_object_keys(homes)) FROM memory_entries WHERE agent_identity = %s",
        (theme,),
    ).fetchall()
    return {str(content): set(homes) for content, homes in found}  # type: ignore[call-overload]


def test_a_row_put_in_by_hand_survives_an_operation_that_arrives_late(connection: Connection) -> None:
    theme = f"theme {next(_themes)}"
    connection.execute(
        "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, 'memory', 'By hand')", (theme,)
    )
    for order in (5, 2):
        with connection.transaction():
            added = AddMemory(theme, "memory", f"Said at {order}", Moment(order, order), HOMES[0])
            memories.store(connection, [Placed(added, "w1", order, 0)])
    assert _rows(connection, theme) == {"By hand": set(), "Said at 2": {HOMES[0]}, "Said at 5": {HOMES[0]}}


def test_entries_that_change_places_in_one_batch_keep_their_rows(connection: Connection) -> None:
    theme = f"theme {next(_themes)}"
    steps: list[MemoryOperation] = [
        AddMemory(theme, "memory", "first", Moment(1, 1), HOMES[0]),
        AddMemory(theme, "memory", "second", Moment(2, 2), HOMES[0]),
        ReplaceMemory(theme, "memory", "aside", "", Moment(3, 3), HOMES[0], previous="first"),
        ReplaceMemory(theme, "memory", "first", "", Moment(4, 4), HOMES[0], previous="second"),
        ReplaceMemory(theme, "memory", "second", "", Moment(5, 5), HOMES[0], previous="aside"),
    ]
    placed = [Placed(operation, "w1", seq, 0) for seq, operation in enumerate(steps)]
    with connection.transaction():
        memories.store(connection, placed[:2])
    before = _ids(connection, theme)
    with connection.transaction():
        memories.store(connection, placed[2:])
    assert _ids(connection, theme) == {"first": before["second"], "second": before["first"]}


def _ids(connection: Connection, theme: str) -> dict[object, object]:
    query = "SELECT content, id FROM memory_entries WHERE agent_identity = %s"
    return {row[0]: row[1] for row in connection.execute(query, (theme,)).fetchall()}
