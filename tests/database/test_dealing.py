"""`migrate --buckets N` on a database that is in use: every row lands in its theme's bucket, once."""

from __future__ import annotations

import functools
import time
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.schema import buckets, migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import hidden
from testing.agent import AgentHome
from testing.postgres import DIM, MODEL, Database
from testing.steady_load import SteadyLoad
from testing.waiting import wait_until

COUNT = 4
THEMES = [f"theme-{number}" for number in range(12)]
ROWS = f"""
INSERT INTO conversations (agent_identity, session_id, role, content, hidden_by)
    SELECT %(theme)s, 's', 'user', 'words ' || n || ' of ' || %(theme)s, CASE WHEN n = 3 THEN 1 END
    FROM generate_series(1, 5) AS n;
INSERT INTO memory_entries (agent_identity, target, content) VALUES (%(theme)s, 'memory', 'known to ' || %(theme)s);
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, at)
    VALUES (%(theme)s, 'memory', 1, 'w', 1, 0, 'add', now());
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
    SELECT agent_identity, id, ts, 1, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM conversations
    WHERE agent_identity = %(theme)s;
INSERT INTO pending_vectors (agent_identity, kind, id)
    SELECT agent_identity, 'memory', id FROM memory_entries WHERE agent_identity = %(theme)s;
"""
COMPARED = {
    "conversations": "agent_identity, id, content, lexemes", "memory_entries": "agent_identity, id, content, lexemes",
    "memory_operations": "agent_identity, id", "pending_vectors": "agent_identity, id",
    "conversations_embedded": "agent_identity, id, chunk, embedding", "dead_letters": "id, payload",
    "hermes_rows": "theme, kind, id, content",
}  # fmt: skip


@pytest.fixture
def filled(database: Database) -> Database:
    """A database with rows of twelve themes, one of which was merged into another."""
    with psycopg.connect(database.owner_dsn) as connection:
        connection.execute("INSERT INTO hidden (rule, actor) VALUES ('muted', 'somebody')")
        connection.execute("INSERT INTO hidden (rule, actor, is_open, origin) VALUES ('muted', 'x', true, 'import')")
        connection.execute("INSERT INTO journal_writers (writer, position) VALUES ('w', 4711)")
        connection.execute("INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', 1, 'x', 'bad')")
        connection.execute("INSERT INTO theme_aliases (old, new) VALUES ('old', 'theme-0'), ('older', 'theme-1')")
        for theme in THEMES:
            for each in ROWS.split(";\n"):
                if each.strip():
                    connection.execute(each.encode(), {"theme": theme})
    return database


def _shown(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(database.runtime_dsn) as connection:
        return {
            table: sorted(connection.execute(f"SELECT {columns} FROM {table}".encode()).fetchall(), key=str)
            for table, columns in COMPARED.items()
        }


def test_every_row_is_in_the_bucket_of_its_theme_and_nowhere_else(filled: Database) -> None:
    before = _shown(filled)
    outcome = migrate.apply(filled.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
    assert (outcome.dealt, outcome.handed_out) == (COUNT, 0)
    assert _shown(filled) == before
    with psycopg.connect(filled.runtime_dsn) as connection:
        for theme in THEMES:
            for bucket in range(COUNT):
                row = connection.execute(
                    f"SELECT count(*) FROM hermes_{bucket:02}.conversations WHERE agent_identity = %s".encode(),
                    (theme,),
                ).fetchone()
                assert row == (5 if bucket == bucket_of(theme, COUNT) else 0,)


def test_what_every_write_looks_at_is_in_every_bucket(filled: Database) -> None:
    migrate.apply(filled.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
    with psycopg.connect(filled.runtime_dsn) as connection:
        places: dict[str, int] = dict(connection.execute("SELECT theme, bucket FROM theme_places").fetchall())
        for old, new in (("old", "theme-0"), ("older", "theme-1")):
            assert places.get(old, bucket_of(old, COUNT)) == bucket_of(new, COUNT)
            where = f"SELECT old FROM hermes_{bucket_of(new, COUNT):02}.theme_aliases WHERE old = %s".encode()
            assert connection.execute(where, (old,)).fetchall() == [(old,)]
        assert connection.execute("SELECT count(*) FROM theme_aliases").fetchone() == (2,)
        for bucket in range(COUNT):
            connection.execute(f"SET search_path = hermes_{bucket:02}, public".encode())
            assert connection.execute("SELECT writer, position FROM journal_writers").fetchall() == [("w", 4711)]
            assert connection.execute("SELECT id, name, is_current FROM embedding_models").fetchall() == [
                (1, MODEL, True)
            ]
            # The rule that is open, and the one that rows name.
            assert connection.execute("SELECT id FROM hidden ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_rule_that_every_bucket_has_is_one_rule(filled: Database) -> None:
    with psycopg.connect(filled.runtime_dsn) as connection:
        before = hidden.listed(connection)
    migrate.apply(filled.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
    with psycopg.connect(filled.runtime_dsn) as connection:
        assert hidden.listed(connection) == before
        assert [hidden.twins(connection, each.id) for each in before] == [[each.id] for each in before]


def test_new_numbers_are_given_once(filled: Database) -> None:
    migrate.apply(filled.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
    with psycopg.connect(filled.runtime_dsn) as connection:
        for bucket in range(COUNT):
            connection.execute(f"SET search_path = hermes_{bucket:02}, public".encode())
            for _ in range(3):
                connection.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'new')")
        connection.execute("SET search_path = public")
        rows = connection.execute("SELECT id FROM conversations").fetchall()
        assert len(set(rows)) == len(rows) == 5 * len(THEMES) + 3 * COUNT


def test_agents_that_write_meanwhile_lose_nothing_and_find_their_rows_again(
    database: Database, agent_home: AgentHome
) -> None:
    with SteadyLoad(agent_home, writes=60, questions=5) as load:
        wait_until(lambda: load.count > 50, seconds=60)
        # Longer than it takes Postgres to find that two wait for each other.
        slowly = functools.partial(time.sleep, 1.2)
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT, report=lambda _: slowly())
        dealt, moment = load.count, time.monotonic()
        wait_until(lambda: load.count > dealt + 50 and load.first_answer_after(moment), seconds=120)
    agent_home.settle(120)
    assert (load.lost(), load.doubled()) == ([], [])


def test_whoever_fails_on_the_way_has_dealt_nothing(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _shown(filled)

    def fail(*_: object) -> None:
        raise SchemaError("stopped")

    with monkeypatch.context() as patched:
        patched.setattr(migrate, "make_views_and_grants", fail)
        with pytest.raises(SchemaError):
            migrate.apply(filled.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
    assert _shown(filled) == before
    migrate.apply(filled.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
    assert _shown(filled) == before


@pytest.mark.parametrize("count", [buckets.MOST_BUCKETS + 1, 1000])
def test_more_buckets_than_anybody_needs_are_refused(database: Database, count: int) -> None:
    with pytest.raises(SchemaError, match="2 to 64"):
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=count)


def test_a_database_is_dealt_once(four_buckets: Database) -> None:
    with pytest.raises(SchemaError, match="keeps them"):
        migrate.apply(four_buckets.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=8)
