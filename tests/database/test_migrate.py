"""Migrations: once, together, recorded; a runtime role that can do no more than it needs."""

from __future__ import annotations

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import psycopg
import pytest
from fixtures.postgres import Database
from psycopg import sql

from hermes_memory_pgvector import migrate
from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.model_tables import ModelSpec
from hermes_memory_pgvector.store import schema

MODEL = ModelSpec("test-model", 64)


def test_an_empty_database_gets_the_whole_schema_once(empty_database: Database) -> None:
    first = migrate.apply(empty_database.owner_dsn, model=MODEL)
    second = migrate.apply(empty_database.owner_dsn, model=MODEL)
    assert [int(name.partition("_")[0]) for name in first.applied] == list(range(1, len(migrate.migrations()) + 1))
    assert second.applied == []
    assert first.model_id == second.model_id
    with psycopg.connect(empty_database.runtime_dsn) as connection:
        assert schema.verify(connection).version == schema.wanted_version()


def test_ten_migrations_at_once_all_succeed(empty_database: Database) -> None:
    with ThreadPoolExecutor(10) as threads:
        outcomes = list(threads.map(lambda _: migrate.apply(empty_database.owner_dsn, model=MODEL), range(10)))
    assert sum(len(outcome.applied) for outcome in outcomes) == len(migrate.migrations())
    assert len({outcome.model_id for outcome in outcomes}) == 1


def test_a_server_without_contrib_will_do(postgres_16_database: Database) -> None:
    migrate.apply(postgres_16_database.owner_dsn, model=MODEL)
    with psycopg.connect(postgres_16_database.runtime_dsn) as connection:
        schema.verify(connection)


def test_a_migration_with_other_text_than_was_applied_is_refused(empty_database: Database) -> None:
    migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as connection:
        connection.execute("UPDATE hermes_pgvector_migrations SET sha256 = 'x' WHERE version = 1")
    with pytest.raises(SchemaError, match="0001 was applied with other text"):
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


def test_a_failing_migration_leaves_nothing_behind(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    real = migrate.migrations()
    broken = migrate.Migration(9000, "broken", "CREATE TABLE half_done (); SELECT 1 / 0")
    monkeypatch.setattr(migrate, "migrations", lambda: [*real, broken])
    with pytest.raises(Exception, match="22012"):
        migrate.apply(empty_database.owner_dsn)
    with psycopg.connect(empty_database.owner_dsn) as connection:
        row = connection.execute("SELECT to_regclass('half_done'), to_regclass('memory_entries')").fetchone()
    assert row == (None, None)


def test_an_unreachable_server_is_said_to_be_so() -> None:
    with pytest.raises(DatabaseUnavailable):
        migrate.apply("host=127.0.0.1 port=1 dbname=x user=x", connect_seconds=2)


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
    outcome = migrate.apply(database.owner_dsn, model=ModelSpec("other-model", 1024))
    assert outcome.vectors_wanted == 2
    with psycopg.connect(database.runtime_dsn) as connection:
        models = connection.execute("SELECT name, dim FROM embedding_models WHERE is_current").fetchall()
    assert models == [("other-model", 1024)]


def test_every_model_gets_the_search_of_this_package_in_place_of_an_older_one(database: Database) -> None:
    migrate.apply(database.owner_dsn, model=ModelSpec("other-model", 32))
    listed = (
        "SELECT p.oid::regprocedure::text, md5(p.prosrc) FROM pg_proc AS p"
        " WHERE p.proname ~ '^hermes_(search|nearest)_' ORDER BY 1"
    )
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        fresh = connection.execute(listed).fetchall()
        connection.execute("ALTER FUNCTION hermes_nearest_turns(turn_vectors_1, text, boolean, text[], timestamptz,"
                           " timestamptz, halfvec, integer, real, integer) RENAME TO hermes_removed")  # fmt: skip
        for signature, _ in fresh:
            if "hermes_search_turns(turn_vectors_1" in str(signature):
                connection.execute(f"DROP FUNCTION {signature}".encode())
        connection.execute("CREATE FUNCTION hermes_search_turns(model turn_vectors_1) RETURNS integer"
                           " LANGUAGE sql AS 'SELECT 1'")  # fmt: skip
        migrate.apply(database.owner_dsn, model=ModelSpec("other-model", 32))
        assert connection.execute(listed).fetchall() == fresh
    assert len(fresh) == 8


def test_tables_whose_key_carries_the_codes_get_an_index_for_them(database: Database) -> None:
    listed = (
        "SELECT indexdef FROM pg_indexes WHERE tablename IN ('turn_vectors_1', 'memory_vectors_1') ORDER BY indexname"
    )
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        fresh = connection.execute(listed).fetchall()
        connection.execute(
            "DROP INDEX turn_vectors_1_codes, memory_vectors_1_codes;"
            "ALTER TABLE turn_vectors_1 DROP CONSTRAINT turn_vectors_1_pkey,"
            " ADD PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, code)"
        )
        migrate.apply(database.owner_dsn, model=MODEL)
        assert connection.execute(listed).fetchall() == fresh
    assert [str(row[0]).partition(" USING ")[2].partition(" WITH")[0] for row in fresh] == [
        "btree (agent_identity) INCLUDE (id, ts, target, code)",
        "btree (agent_identity, id, chunk)",
        "btree (agent_identity) INCLUDE (id, ts, code)",
        "btree (agent_identity, id, chunk)",
    ]


def test_the_views_show_text_and_current_vector_side_by_side(database: Database) -> None:
    vector = "[" + ",".join(["0.5"] * 64) + "]"
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'hello')")
        connection.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'fact')")
        connection.execute(
            "INSERT INTO turn_vectors_1 (agent_identity, id, ts, twin, embedding)"
            " SELECT agent_identity, id, ts, 0, %(v)s FROM conversations",
            {"v": vector},
        )
        turns = connection.execute("SELECT content, embedding IS NULL FROM conversations_embedded").fetchall()
        memories = connection.execute("SELECT content, embedding IS NULL FROM memory_entries_embedded").fetchall()
    assert turns == [("hello", False)]
    assert memories == [("fact", True)]


@pytest.mark.parametrize("dim", [1, 64, 384, 385, 768, 1536, 3072, 4000])
def test_any_dimension_up_to_the_limit_of_the_type(database: Database, dim: int) -> None:
    assert migrate.apply(database.owner_dsn, model=ModelSpec(f"model-{dim}", dim)).model_id is not None


def test_printing_the_sql_needs_no_server() -> None:
    text = "\n".join(migrate.script(MODEL, "someone"))
    assert "CREATE TABLE conversations" in text
    assert "halfvec(64)" in text
    assert 'TO "someone"' in text
    assert not re.search(r"\{(role|dim|memory_vectors|turn_vectors)", text)


def test_released_migrations_never_change() -> None:
    folder = resources.files("hermes_memory_pgvector") / "sql"
    for line in folder.joinpath("frozen.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            digest, name = line.split()
            found = hashlib.sha256(folder.joinpath("migrations", name).read_bytes()).hexdigest()
            assert found == digest, f"{name} is released: add a migration instead of changing it"
