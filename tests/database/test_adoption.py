"""Databases made by the seed's schema or by the published package: every row and vector is carried over."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.store.search import search
from hermes_memory_pgvector.values import Kind, Question
from testing.command import Commands, with_password
from testing.postgres import Database
from testing.published import DIM, migrations

SEED, PEER = migrations()[:1], migrations()
MADE_BY = {"seed": SEED, "peer": PEER}

ROWS = """
CREATE TEMPORARY TABLE made AS
    SELECT n, (SELECT array_agg(sin(n * each))::vector FROM generate_series(1, 768) AS each) AS v
    FROM generate_series(1, 42) AS n;
INSERT INTO memory_entries (agent_identity, target, content, embedding, metadata) VALUES
    ('marketing', 'memory', 'the campaign starts in May', (SELECT v FROM made WHERE n = 41), '{"by": "ada"}'),
    ('marketing', 'user', 'likes tea', NULL, '{}'),
    ('Marketing', 'memory', 'the campaign starts in May', NULL, '{}'),
    (' Sales ', 'memory', 'quota is 40', (SELECT v FROM made WHERE n = 42), '{}');
INSERT INTO conversations (session_id, agent_identity, role, content, ts, embedding)
    SELECT 's' || n % 3, 'marketing', 'user', 'we talked about topic ' || n % 7, now() - n * interval '1 hour', v
    FROM made WHERE n <= 40;
INSERT INTO conversations (session_id, agent_identity, role, content)
    VALUES ('s1', 'Trading', 'assistant', 'no vector');
"""
EDGE = """
INSERT INTO memory_agent_edges (parent_identity, parent_session_id, child_session_id) VALUES ('Marketing', 's1', 'c1');
"""
"""Only the package's later versions have the table."""

LOST = """
SELECT 'm' || id FROM (SELECT id, target, content, created_at, updated_at, metadata FROM adopted_memory_entries
                       EXCEPT SELECT id, target, content, created_at, updated_at, metadata FROM memory_entries) AS m
UNION ALL
SELECT 't' || id FROM (SELECT id, session_id, role, content, ts, metadata FROM adopted_conversations
                       EXCEPT SELECT id, session_id, role, content, ts, metadata FROM conversations) AS t
UNION ALL
SELECT 'vector of m' || old.id FROM adopted_memory_entries AS old LEFT JOIN memory_entries_embedded AS new USING (id)
WHERE old.embedding IS NOT NULL AND (old.embedding <=> new.embedding::vector < 0.0001) IS NOT TRUE
UNION ALL
SELECT 'vector of t' || old.id FROM adopted_conversations AS old LEFT JOIN conversations_embedded AS new USING (id)
WHERE old.embedding IS NOT NULL AND (old.embedding <=> new.embedding::vector < 0.0001) IS NOT TRUE
"""
"""Rows and vectors that are not there as they were."""
EDGES = "SELECT agent_identity, session_id, metadata ->> 'delegated_to' FROM conversations WHERE role = 'tool'"


def made(database: Database, *scripts: str) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        for script in scripts:
            connection.execute(script)


@pytest.mark.parametrize("by", ["seed", "peer"])
def test_every_row_and_vector_is_there_afterwards(empty_database: Database, by: str) -> None:
    """Of databases that the published package's own migrations have made: by the first of them, or by all."""
    made(empty_database, *MADE_BY[by], ROWS, *((EDGE,) if by == "peer" else ()))
    outcome = migrate.apply(empty_database.owner_dsn, model=NewModel("nomic-embed-text", DIM))
    assert (outcome.adopted_memories, outcome.adopted_turns, outcome.adopted_vectors) == (4, 41, 42)
    edges = int(by == "peer")
    assert outcome.vectors_wanted == 3 + edges
    with psycopg.connect(empty_database.runtime_dsn) as connection:
        memories = connection.execute("SELECT agent_identity, content FROM memory_entries ORDER BY id").fetchall()
        turns = connection.execute("SELECT count(*), count(DISTINCT (session_id, digest, ordinal)) FROM conversations")
        assert turns.fetchone() == (41 + edges, 41 + edges)
        operations = connection.execute("SELECT count(*) FROM memory_operations").fetchone()
        lexemes = connection.execute("SELECT count(*) FROM conversations WHERE lexemes IS NULL").fetchone()
        following = connection.execute("SELECT nextval('conversations_id_seq')").fetchone()
    assert memories == [
        ("marketing", "the campaign starts in May"),
        ("marketing", "likes tea"),
        ("Marketing", "the campaign starts in May"),
        ("sales", "quota is 40"),
    ]
    assert operations == (4,)
    assert lexemes == (0,)
    with psycopg.connect(empty_database.owner_dsn) as connection:
        assert connection.execute(LOST).fetchall() == []
    assert following == (42 + edges,)


def test_a_second_migration_adopts_nothing_more(empty_database: Database) -> None:
    made(empty_database, *SEED, ROWS)
    migrate.apply(empty_database.owner_dsn, model=NewModel("nomic-embed-text", DIM))
    again = migrate.apply(empty_database.owner_dsn, model=NewModel("nomic-embed-text", DIM))
    assert (again.adopted_turns, again.adopted_vectors) == (0, 0)


def test_vectors_of_another_model_are_kept_beside_the_new_ones(empty_database: Database) -> None:
    made(empty_database, *SEED, ROWS)
    outcome = migrate.apply(empty_database.owner_dsn, model=NewModel("local", 256))
    assert outcome.adopted_vectors == 42
    assert outcome.vectors_wanted == 45
    with psycopg.connect(empty_database.runtime_dsn) as connection:
        models = connection.execute("SELECT name, dim, is_current FROM embedding_models ORDER BY id").fetchall()
    assert models == [("local", 256, True), ("nomic-embed-text", DIM, False)]


def test_edges_of_the_published_package_become_turns_that_name_the_session(empty_database: Database) -> None:
    unknown = (
        "INSERT INTO memory_agent_edges (parent_session_id, attrs) SELECT 's2', to_jsonb(json_build_object('n', n))"
    )
    made(empty_database, *PEER, EDGE, f"{unknown} FROM generate_series(1, 3) AS n")
    migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.runtime_dsn) as connection:
        rows = connection.execute(EDGES).fetchall()
        numbers = connection.execute("SELECT metadata -> 'n' FROM conversations WHERE session_id = 's2'").fetchall()
    assert sorted(rows) == [("default", "s2", "")] * 3 + [("marketing", "s1", "c1")]
    assert sorted(numbers) == [(1,), (2,), (3,)]


def test_the_earlier_tables_stay_until_the_operator_drops_them(empty_database: Database) -> None:
    made(empty_database, *SEED, ROWS)
    outcome = migrate.apply(empty_database.owner_dsn)
    assert any("adopted_conversations" in notice for notice in outcome.notices)
    with psycopg.connect(empty_database.owner_dsn) as connection:
        row = connection.execute("SELECT count(*) FROM adopted_conversations").fetchone()
    assert row == (41,)


def test_another_schemas_living_installation_is_left_alone(empty_database: Database) -> None:
    """With `search_path=second,public`, what is in public belongs to somebody else."""
    model = NewModel("test-model", DIM)
    migrate.apply(empty_database.owner_dsn, model=model)
    made(
        empty_database,
        "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('m', 's', 'user', 'fleet one')",
        "CREATE SCHEMA second",
    )
    objects = (
        "SELECT relname, relkind, oid FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " UNION ALL SELECT proname, 'f', oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2, 3"
    )
    with psycopg.connect(empty_database.owner_dsn) as connection:
        before = connection.execute(objects).fetchall()
    second = make_conninfo(empty_database.owner_dsn, options="-c search_path=second,public")
    outcome = migrate.apply(second, model=model)
    assert (outcome.adopted_memories, outcome.adopted_turns) == (0, 0)
    with psycopg.connect(empty_database.owner_dsn) as connection:
        assert connection.execute(objects).fetchall() == before
    with psycopg.connect(empty_database.runtime_dsn) as connection:
        assert connection.execute("SELECT content FROM public.conversations").fetchall() == [("fleet one",)]
        assert connection.execute("SELECT count(*) FROM public.conversations_embedded").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM second.conversations").fetchone() == (0,)
    # Each can be migrated again, and goes on by itself.
    assert migrate.apply(second, model=model).notices == []
    migrate.apply(empty_database.owner_dsn, model=model)


def test_the_two_installations_of_a_database_serve_their_own_rows(empty_database: Database) -> None:
    """A search made by one schema's migration reads that schema, also where the other is on its search_path."""
    model = NewModel("test-model", DIM)
    made(empty_database, 'CREATE SCHEMA "Second Fleet"')
    path = '-c search_path="Second\\ Fleet",public'
    migrate.apply(empty_database.owner_dsn, model=model)
    migrate.apply(make_conninfo(empty_database.owner_dsn, options=path), model=model)
    say = "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('m', 's', 'user', %s)"
    asked = Question("launch", Kind.TURN, "m")
    for dsn, text in (
        (empty_database.runtime_dsn, "the launch of the first"),
        (make_conninfo(empty_database.runtime_dsn, options=path), "the launch of the second"),
    ):
        with psycopg.connect(dsn) as connection:
            connection.execute(say, (text,))
            assert [hit.content for hit in search(connection, asked, None, read_wording(asked))] == [text]


@pytest.mark.parametrize("lost", ["DELETE FROM", "DROP TABLE"])
def test_our_own_tables_are_never_an_earlier_installation(empty_database: Database, lost: str) -> None:
    migrate.apply(empty_database.owner_dsn, model=NewModel("test-model", DIM))
    made(
        empty_database,
        "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('m', 's', 'user', 'still here')",
        f"{lost} hermes_pgvector_migrations",
    )
    with pytest.raises(SchemaError, match="restore that table from your backup"):
        migrate.apply(empty_database.owner_dsn, model=NewModel("test-model", DIM))
    with psycopg.connect(empty_database.owner_dsn) as connection:
        assert connection.execute("SELECT content FROM conversations").fetchall() == [("still here",)]


LATER = {
    "a column of memories": ("ALTER TABLE memory_entries ADD COLUMN importance real", "(memory_entries.importance)"),
    "a column of edges": ("ALTER TABLE memory_agent_edges ADD COLUMN weight real", "(memory_agent_edges.weight)"),
    "a table of its kind": ("CREATE TABLE memory_notes (id bigserial PRIMARY KEY, note text)", "(memory_notes)"),
    "a table with themes": ("CREATE TABLE notes (agent_identity text, note text)", "(notes)"),
    "a table of turns": ("CREATE TABLE seen (turn bigint REFERENCES conversations (id))", "(seen)"),
}


@pytest.mark.parametrize("change", LATER)
def test_tables_of_a_later_published_version_are_left_as_they_are(empty_database: Database, change: str) -> None:
    made(empty_database, *PEER, ROWS, LATER[change][0])
    with pytest.raises(SchemaError, match=rf"{re.escape(LATER[change][1])}.*nothing was changed. Upgrade this package"):
        migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn) as connection:
        assert connection.execute("SELECT count(embedding) FROM conversations").fetchone() == (40,)


def test_what_others_keep_beside_the_published_tables_is_no_obstacle(empty_database: Database) -> None:
    searched = (
        "ALTER TABLE conversations ADD COLUMN words tsvector"
        " GENERATED ALWAYS AS (to_tsvector('english', content)) STORED"
    )
    gone = (
        "ALTER TABLE memory_entries ADD COLUMN importance real",
        "ALTER TABLE memory_entries DROP COLUMN importance",
    )
    made(empty_database, *PEER, ROWS, searched, *gone, "CREATE TABLE orders (id bigserial PRIMARY KEY)")
    assert migrate.apply(empty_database.owner_dsn).adopted_turns == 41


@pytest.mark.parametrize("column", ["memory_entries.metadata", "conversations.ts", "memory_agent_edges.attrs"])
def test_tables_that_lack_a_column_are_left_as_they_are(empty_database: Database, column: str) -> None:
    table, _, name = column.partition(".")
    made(empty_database, *PEER, ROWS, f"ALTER TABLE {table} DROP COLUMN {name}")
    with pytest.raises(SchemaError, match=rf"lack columns .*\({column}\); nothing was changed"):
        migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn) as connection:
        assert connection.execute("SELECT count(embedding) FROM conversations").fetchone() == (40,)


def test_a_search_path_without_a_schema_is_named(empty_database: Database) -> None:
    nowhere = make_conninfo(empty_database.owner_dsn, options="-c search_path=missing")
    with pytest.raises(SchemaError, match="names no schema that exists"):
        migrate.apply(nowhere)


@pytest.mark.parametrize("command", ["up", "migrate"])
def test_what_was_adopted_is_said(empty_database: Database, tmp_path: Path, command: str) -> None:
    made(empty_database, *SEED, ROWS)
    commands = Commands(tmp_path)
    commands.configure(dsn=with_password(empty_database.runtime_dsn)[0])
    done = commands.run(command, variables={"HERMES_PGVECTOR_ADMIN_DSN": with_password(empty_database.owner_dsn)[0]})
    assert done.code == 0, done
    said = "45 rows adopted" if command == "up" else "adopted 4 memories, 41 turns and 42 vectors"
    assert said in " ".join(done.out.split())


def test_migrating_a_second_schema_leaves_the_first_fleet_its_memory(empty_database: Database, tmp_path: Path) -> None:
    """As an operator does it: the same database, another schema in front of the search_path."""
    commands = Commands(tmp_path)
    commands.configure(dsn=with_password(empty_database.runtime_dsn)[0])
    admin = with_password(empty_database.owner_dsn)[0]
    assert commands.run("migrate", "--admin-dsn", admin).code == 0
    made(
        empty_database,
        "INSERT INTO memory_entries (agent_identity, target, content) VALUES ('hermes', 'memory', 'the door is red')",
        "CREATE SCHEMA second",
    )
    assert "the door is red" in commands.run("recall", "which colour is the door").out
    elsewhere = make_conninfo(admin, options="-c search_path=second,public")
    done = commands.run("migrate", "--admin-dsn", elsewhere)
    assert done.code == 0, done
    assert "adopt" not in done.out
    assert "the door is red" in commands.run("recall", "which colour is the door").out
