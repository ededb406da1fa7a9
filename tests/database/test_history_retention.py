"""Old history goes without changing what is remembered: neither entries nor what late operations make of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.runtime import tasks
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store import flatten, history, memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.store.turns import time_of
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, RemoveMemory, ReplaceMemory
from testing.agent import AgentHome
from testing.postgres import Database, new_database

START = 1_700_000_000_000_000
CONTENTS = st.sampled_from(("alpha", "beta", "alphabet", "gamma"))
_themes = itertools.count(1)


@pytest.fixture(scope="module")
def connection(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Connection]:
    with (
        new_database(postgres_server, template=migrated_template.name) as database,
        psycopg.connect(database.runtime_dsn, autocommit=True) as opened,
    ):
        yield opened


@st.composite
def operations(draw: st.DrawFn) -> list[MemoryOperation]:
    made: list[MemoryOperation] = []
    for number in range(draw(st.integers(1, 10))):
        when, home = (
            Moment(START + 1_000_000 * number, START + 1_000_000 * number),
            draw(st.sampled_from(("a", "b", ""))),
        )
        kind = draw(st.sampled_from(("add", "replace", "remove")))
        old = draw(st.sampled_from(("alpha", "bet", "gamma", "")))
        if kind == "add":
            made.append(AddMemory("t", "memory", draw(CONTENTS), when, home))
        elif kind == "replace":
            made.append(ReplaceMemory("t", "memory", draw(CONTENTS), old, when, home))
        else:
            made.append(RemoveMemory("t", "memory", old, when, home))
    return made


def entries(connection: Connection, theme: str) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT id, content, ARRAY(SELECT jsonb_object_keys(homes) AS home ORDER BY home) FROM memory_entries"
        " WHERE agent_identity = %s ORDER BY 1",
        (theme,),
    ).fetchall()


@settings(max_examples=40)
@given(made=operations(), cut=st.integers(0, 11))
def test_shortening_changes_no_entry_and_no_sum(connection: Connection, made: list[MemoryOperation], cut: int) -> None:
    theme = f"retention-{next(_themes)}"
    before = time_of(Moment(START + 1_000_000 * cut, 0))
    with connection.transaction(force_rollback=True):
        for number, operation in enumerate(made):
            memories.store(connection, [Placed(replace(operation, theme=theme), "w", number, 0)])
        rows, events = entries(connection, theme), history.of_theme(connection, theme, "memory")
        done = flatten.shorten(connection, theme, "memory", before)
        left = history.of_theme(connection, theme, "memory")
        assert entries(connection, theme) == rows
        assert _shape(left) == _shape(events)
        assert len(events) - len(left) == done
        # An operation that arrives late has everything summed up anew: the entries stay.
        late = AddMemory(theme, "memory", "omega", Moment(START - 1, START - 1), "a")
        memories.store(connection, [Placed(late, "late", 1, 0)])
        assert {row[1] for row in entries(connection, theme)} == {row[1] for row in rows} | {"omega"}


def _shape(events: list[history.Event]) -> dict[str, set[str]]:
    return {content: set(entry.homes) for content, entry in fold(event.operation() for event in events).items()}


def test_the_texts_of_old_versions_go_and_the_sweep_is_audited(agent_home: AgentHome) -> None:
    agent = agent_home.provider("market")
    agent.on_memory_write("add", "memory", "The secret is 1234", {})
    agent.on_memory_write("replace", "memory", "The secret is gone", {"old_text": "1234"})
    agent.on_memory_write("add", "memory", "Left over", {})
    agent.on_memory_write("remove", "memory", "", {"old_text": "Left over"})
    agent_home.settle()
    stored = agent_home.stored
    stored.rows("UPDATE memory_operations SET at = now() - interval '400 days' RETURNING 1")
    engine = agent_home.engine
    sweep = tasks.ShortenHistory(engine.pool, engine.writer, engine.home_id, 365)
    sweep._due_at = 0.0
    sweep.run()
    assert stored.rows("SELECT action, content, old_text, previous FROM memory_operations") == [
        ("add", "The secret is gone", "", None)
    ]
    assert stored.memories("market") == [("memory", "The secret is gone")]
    assert stored.rows("SELECT actor, action, theme, counts FROM audit_log") == [
        ("sweep", "expire history", "market", {"events": 3})
    ]
    sweep._due_at = 0.0
    sweep.run()
    assert stored.count("audit_log") == 1
