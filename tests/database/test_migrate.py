"""Migrations: once, together, recorded; a runtime role that can do no more than it needs."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql

from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.store import schema
from testing.postgres import Database

MODEL = NewModel("test-model", 64)


def test_an_empty_database_gets_the_whole_schema_once(empty_database: Database) -> None:
    first = migrate.apply(empty_database.owner_dsn, model=MODEL)
    second = migrate.apply(empty_database.owner_dsn, model=MODEL)
    assert (first.applied, second.applied) == (["base"], [])
    assert first.model_id == second.model_id
    with psycopg.connect(empty_database.runtime_dsn) as connection:
        assert schema.verify(connection).version == schema.SCHEMA_VERSION


def test_ten_migrations_at_once_all_succeed(empty_database: Database) -> None:
    with ThreadPoolExecutor(10) as threads:
        outcomes = list(threads.map(lambda _: migrate.apply(empty_database.owner_dsn, model=MODEL), range(10)))
    assert sum(len(outcome.applied) for outcome in outcomes) == 1
    assert len({outcome.model_id for outcome in outcomes}) == 1


def test_a_server_without_contrib_will_do(postgres_16_database: Database) -> None:
    migrate.apply(postgres_16_database.owner_dsn, model=MODEL)
    with psycopg.connect(postgres_16_database.runtime_dsn) as connection:
        schema.verify(connection)


def test_tables_made_from_another_text_are_refused(empty_database: Database) -> None:
    migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as connection:
        connection.execute("UPDATE hermes_pgvector_migrations SET sha256 = 'x' WHERE version = 1")
    with pytest.raises(SchemaError, match="made from another text"):
        migrate.apply(empty_database.owner_dsn)


def test_a_database_from_the_future_is_left_alone(empty_database: Database) -> None:
    migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO hermes_pgvector_migrations VALUES (9999, 'future', 'x')")
    with pytest.raises(SchemaError, match="upgrade this package"):
        migrate.apply(empty_database.owner_dsn)


def test_an_old_pgvector_is_refused_with_its_version_and_the_reason(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "MINIMUM_PGVECTOR", (99, 0, 0))
    with pytest.raises(SchemaError, match=r"pgvector 0\.8\.\d+ is too old: 99\.0\.0"):
        migrate.apply(empty_database.owner_dsn)


def test_a_failing_migration_leaves_nothing_behind(empty_database: Database) -> None:
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE audit_log (of text)")
        with pytest.raises(Exception, match="42P07"):
            migrate.apply(empty_database.owner_dsn)
        row = connection.execute("SELECT to_regclass('memory_entries'), to_regclass('hermes_pgvector_migrations')")
        assert row.fetchone() == (None, None)


def test_a_database_of_another_encoding_is_refused_with_what_to_do(empty_database: Database) -> None:
    """Half of the world's texts do not fit into it, and each would be a rejected record."""
    name = f"{empty_database.name}_latin"
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0").format(
                sql.Identifier(name)
            )
        )
        try:
            latin = psycopg.conninfo.make_conninfo(empty_database.owner_dsn, dbname=name)
            with pytest.raises(SchemaError, match=r"encoding is LATIN1.*CREATE DATABASE hermes ENCODING 'UTF8'"):
                migrate.apply(latin)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_a_changed_function_is_made_anew(empty_database: Database) -> None:
    migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as connection:
        connection.execute("CREATE OR REPLACE FUNCTION hermes_content_hash(content text) RETURNS bigint RETURN 1")
        migrate.apply(empty_database.owner_dsn)
        assert connection.execute("SELECT hermes_content_hash('tea')").fetchone() != (1,)


def test_an_unreachable_server_is_said_to_be_so() -> None:
    with pytest.raises(DatabaseUnavailable):
        migrate.apply("host=127.0.0.1 port=1 dbname=x user=x")


def test_the_runtime_role_can_write_rows_and_nothing_else(database: Database) -> None:
    forbidden = [
        "CREATE TABLE mine (x int)",
        "DROP TABLE conversations",
        "ALTER TABLE conversations ADD COLUMN x int",
        "TRUNCATE conversations",
        "CREATE INDEX ON conversations (ts)",
        "CREATE EXTENSION hstore",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "UPDATE hermes_pgvector_migrations SET version = 0",
        "DELETE FROM embedding_models",
        "UPDATE embedding_models SET is_current = false",
        "CREATE ROLE other",
        "COPY conversations TO PROGRAM 'true'",
    ]
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'hello')")
        connection.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'fact')")
        for statement in forbidden:
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ProgrammingError)):
                connection.execute(statement)
        owned = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)"
        ).fetchone()
        assert owned == (0,)


def test_a_missing_role_is_created_and_another_role_can_be_chosen(empty_database: Database) -> None:
    role = f"minion_{empty_database.name}"[:60]
    try:
        outcome = migrate.apply(empty_database.owner_dsn, runtime_role=role, runtime_password="x'y")
        assert outcome.applied
        dsn = psycopg.conninfo.make_conninfo(empty_database.runtime_dsn, user=role, password="x'y")
        dsn = " ".join(part for part in dsn.split() if not part.startswith("passfile"))
        with psycopg.connect(dsn) as connection:
            assert schema.verify(connection).role == role
    finally:
        with psycopg.connect(empty_database.owner_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_a_new_model_asks_for_vectors_of_every_row(database: Database) -> None:
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'hello')")
        connection.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'fact')")
    outcome = migrate.apply(database.owner_dsn, model=NewModel("other-model", 1024))
    assert outcome.vectors_wanted == 2
    with psycopg.connect(database.runtime_dsn) as connection:
        models = connection.execute("SELECT name, dim FROM embedding_models WHERE is_current").fetchall()
    assert models == [("other-model", 1024)]


INDEXES = "SELECT tablename, indexdef FROM pg_indexes WHERE tablename ~ '^(turn|memory)_vectors_' ORDER BY indexname"
COLUMNS = (
    "SELECT attrelid::regclass::text, attname FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid"
    " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND attnum > 0 ORDER BY 1, attnum"
)


def test_the_views_show_text_and_current_vector_side_by_side(database: Database) -> None:
    vector = "[" + ",".join(["0.5"] * 64) + "]"
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'hello')")
        connection.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'fact')")
        connection.execute(
            "INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
            " SELECT agent_identity, id, ts, 0, %(v)s FROM conversations",
            {"v": vector},
        )
        turns = connection.execute("SELECT content, embedding IS NULL FROM conversations_embedded").fetchall()
        memories = connection.execute("SELECT content, embedding IS NULL FROM memory_entries_embedded").fetchall()
    assert turns == [("hello", False)]
    assert memories == [("fact", True)]


@pytest.mark.parametrize("dim", [1, 64, 384, 385, 768, 1536, 3072, 4000])
def test_any_dimension_up_to_the_limit_of_the_type(database: Database, dim: int) -> None:
    assert migrate.apply(database.owner_dsn, model=NewModel(f"model-{dim}", dim)).model_id is not None


def test_printing_the_sql_needs_no_server() -> None:
    text = "\n".join(migrate.script(MODEL, "someone"))
    assert "CREATE TABLE conversations" in text
    assert "halfvec(64)" in text
    assert 'TO "someone"' in text
    assert not re.search(r"(?<!')\{[a-z_]+\}", text), "a name that nobody has filled in"


def test_the_printed_sql_makes_the_database_it_says(empty_database: Database, database: Database) -> None:
    names = "SELECT oid::regprocedure::text FROM pg_proc WHERE starts_with(proname, 'hermes_') ORDER BY 1"
    with (
        psycopg.connect(empty_database.owner_dsn, autocommit=True) as printed,
        psycopg.connect(database.owner_dsn) as migrated,
    ):
        for part in migrate.script(MODEL, "hermes"):
            printed.execute(part.encode())
        for listed in (names, INDEXES, COLUMNS):
            assert printed.execute(listed).fetchall() == migrated.execute(listed).fetchall()
