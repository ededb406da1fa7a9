"""`migrate` as an administrator runs it, alone and all at once."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.command import Commands, with_password
from testing.embed_server import EmbedServer
from testing.postgres import DIM, Database, new_database
from testing.stored import Stored


@pytest.fixture
def commands(empty_database: Database, tmp_path: Path) -> Commands:
    """A home that connects as the runtime role to a database without a schema."""
    runtime, password = with_password(empty_database.runtime_dsn)
    made = Commands(tmp_path, [password, with_password(empty_database.owner_dsn)[1]])
    made.configure(dsn=runtime, embed_url="http://127.0.0.1:9/v1", embed_model="some-model", embed_dim=DIM)
    return made


def admin_of(database: Database) -> str:
    return with_password(database.owner_dsn)[0]


def test_ten_at_once_on_an_empty_database_all_succeed(commands: Commands, empty_database: Database) -> None:
    running = [commands.start("migrate", "--json", "--admin-dsn", admin_of(empty_database)) for _ in range(10)]
    finished = [commands.finish(process) for process in running]
    assert [done.code for done in finished] == [0] * 10
    applied = [done.json["applied"] for done in finished]
    assert sorted(map(len, applied)) == [0] * 9 + [1]
    assert Stored(empty_database.owner_dsn).count("embedding_models") == 1


def test_the_role_of_the_configured_dsn_gets_the_rights(commands: Commands, empty_database: Database) -> None:
    done = commands.run("migrate", variables={"HERMES_PGVECTOR_ADMIN_DSN": admin_of(empty_database)})
    assert done.code == 0, done
    assert "the tables were made" in done.out
    assert commands.run("status", "--json").json["stored"]["server"]["role"] == "hermes"


def test_the_runtime_role_itself_may_not_migrate(commands: Commands) -> None:
    done = commands.run("migrate")
    assert done.code == 1
    assert "may not change the schema" in done.err
    assert "--admin-dsn" in done.err


def test_themes_are_dealt_to_buckets_once(commands: Commands, empty_database: Database) -> None:
    admin = admin_of(empty_database)
    assert commands.run("migrate", "--admin-dsn", admin).code == 0
    done = commands.run("migrate", "--admin-dsn", admin, "--buckets", "3")
    assert (done.code, "themes are dealt to 3 buckets" in done.out) == (0, True), done
    again = commands.run("migrate", "--admin-dsn", admin, "--buckets", "5")
    assert (again.code, "keeps them" in again.err) == (1, True), again


def test_an_unreachable_server_is_exit_code_2(commands: Commands) -> None:
    done = commands.run("migrate", "--admin-dsn", "postgresql://me@127.0.0.1:9/x", "--json")
    assert done.code == 2
    assert "Postgres" in done.json["error"]


def test_vectors_wait_for_an_endpoint_that_is_down_and_come_with_it(
    commands: Commands, empty_database: Database
) -> None:
    admin = admin_of(empty_database)
    runtime = commands.config["memory"]["pgvector"]["dsn"]
    commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/v1", embed_model="some-model")
    done = commands.run("migrate", "--admin-dsn", admin)
    assert done.code == 3, done
    assert "vectors have to wait" in done.out
    assert "run: hermes-pgvector migrate" in " ".join(done.out.split())
    stored = Stored(empty_database.owner_dsn)
    assert stored.count("embedding_models") == 0
    assert commands.run("status").code == 0
    with EmbedServer(dim=48) as server:
        commands.configure(dsn=runtime, embed_url=server.url, embed_model="some-model")
        done = commands.run("migrate", "--admin-dsn", admin)
        assert done.code == 0, done
        assert "some-model, 48 dimensions" in done.out
        assert commands.run("doctor", "--json").json["exit_code"] == 1  # no plugin folder in this home
    assert stored.rows("SELECT name, dim FROM embedding_models") == [("some-model", 48)]


def test_an_older_server_without_contrib_is_enough(postgres_without_contrib: ConnectionInfo, tmp_path: Path) -> None:
    with new_database(postgres_without_contrib) as database, EmbedServer(dim=DIM) as server:
        runtime, password = with_password(database.runtime_dsn)
        commands = Commands(tmp_path, [password])
        commands.configure(dsn=runtime, embed_url=server.url, embed_model="some-model")
        assert commands.call("migrate", "--admin-dsn", admin_of(database)).code == 0
        with psycopg.connect(database.owner_dsn) as owner:
            owner.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'a lighthouse keeper')")
        assert commands.call("backfill").code == 0
        assert commands.call("recall", "lighthouse", "--theme", "default", "--json").json["count"] == 1
        checks = {check["name"]: check for check in commands.call("doctor", "--json").json["checks"]}
        assert {name for name, check in checks.items() if check["level"] == "problem"} == {"plugin folder"}


def test_the_index_over_all_themes_is_made_and_dropped_beside_the_schema(
    commands: Commands, empty_database: Database
) -> None:
    admin = ("--admin-dsn", admin_of(empty_database))
    assert commands.call("migrate", *admin).code == 0
    assert "turn_vectors_1_all" in commands.call("migrate", "--index", "all", *admin).out
    made = "SELECT count(*) FROM pg_class WHERE relname IN ('turn_vectors_1_all', 'memory_vectors_1_all')"
    assert Stored(empty_database.owner_dsn).rows(made) == [(2,)]
    assert "dropped: turn_vectors_1_all" in commands.call("index", "--drop", *admin).out
    assert Stored(empty_database.owner_dsn).rows(made) == [(0,)]
    assert commands.call("migrate", "--drop").code == 2
