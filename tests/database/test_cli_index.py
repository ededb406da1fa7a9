"""`index` as an administrator runs it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.schema import vector_indexes
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database

ROWS = """
INSERT INTO conversations (agent_identity, session_id, role, content)
SELECT CASE WHEN n <= 40 THEN 'big' ELSE 'small' END, 's', 'user', 'saying ' || n FROM generate_series(1, 45) AS n;
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
SELECT agent_identity, id, ts, id, l2_normalize(array_fill(id, ARRAY[64])::real[]::halfvec(64)) FROM conversations
"""


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    """A home of the runtime role, whose administrator's login is in the environment of its commands."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password, with_password(database.owner_dsn)[1]])
    made.configure(dsn=runtime)
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(ROWS)
    return made


@pytest.fixture
def admin(database: Database) -> tuple[str, str]:
    return ("--admin-dsn", with_password(database.owner_dsn)[0])


def test_small_tables_need_none(commands: Commands, admin: tuple[str, str]) -> None:
    done = commands.call("index", *admin)
    assert done.code == 0
    assert f"45 vectors of shared themes, by {MODEL}" in done.out
    assert "There is none; it pays off from some 150,000 on" in done.out
    found = commands.call("index", "list", *admin, "--json").json
    assert (found["shared_vectors"], found["indexes"], found["large"]) == (45, [], 150_000)


def test_large_tables_are_advised_to_have_an_index(
    commands: Commands, admin: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_indexes, "LARGE", 30)
    assert "hermes-pgvector index create" in commands.call("index", *admin).out


def test_an_index_is_made_listed_and_dropped(commands: Commands, admin: tuple[str, str]) -> None:
    created = commands.call("index", "create", *admin, "--memory", "80", "--json").json
    assert [(each["name"], each["is_new"]) for each in created] == [
        ("turn_vectors_1_all", True), ("memory_vectors_1_all", True),
    ]  # fmt: skip
    assert "turn_vectors_1_all: ready" in commands.call("index", *admin).out
    assert "is there already" in commands.call("index", "create", *admin).out
    assert commands.call("index", "drop", *admin).out.count("dropped") == 2
    assert "There is no such index" in commands.call("index", "drop", *admin).out


def test_migrate_makes_it_too(commands: Commands, admin: tuple[str, str]) -> None:
    assert commands.call("migrate", "--index", "all", *admin).code in (0, 3)
    assert len(commands.call("index", *admin, "--json").json["indexes"]) == 2


def test_the_login_may_come_from_the_environment(commands: Commands, admin: tuple[str, str]) -> None:
    done = commands.call("index", "create", variables={"HERMES_PGVECTOR_ADMIN_DSN": admin[1]})
    assert done.code == 0, done


def test_the_runtime_role_may_look_but_not_build(commands: Commands) -> None:
    assert commands.call("index").code == 0
    done = commands.call("index", "create")
    assert done.code == 1
    assert "--admin-dsn OWNER_DSN" in done.err


def test_out_of_reach_or_not_made_yet_is_exit_code_2(commands: Commands, tmp_path: Path) -> None:
    assert commands.call("index", "--admin-dsn", "postgresql://me@127.0.0.1:9/x").code == 2
    new = Commands(tmp_path / "new")
    new.configure()
    done = new.call("index")
    assert done.code == 2
    assert "there is no database yet; run: hermes-pgvector up" in done.err
    assert not (new.home / "pgvector").exists()


def test_a_database_without_our_schema_says_what_to_run(commands: Commands, empty_database: Database) -> None:
    done = commands.call("index", "--admin-dsn", with_password(empty_database.owner_dsn)[0])
    assert done.code == 1
    assert "hermes-pgvector migrate" in done.err
