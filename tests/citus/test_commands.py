"""Commands on a cluster as an operator runs them: `up` offers one, some are refused, doctor looks at the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.admin import citus
from hermes_memory_pgvector.admin.moving import open_side
from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from testing.command import PROGRAM, Commands, Finished, with_password
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database, cluster_of, new_database
from testing.stored import Stored
from testing.terminal import on_terminal

LETTER = "INSERT INTO dead_letters (writer, seq, payload, reason, waits_for) VALUES ('w', 1, 'x', 'waits', '{a}')"


def home(folder: Path, database: Database) -> Commands:
    """A home whose agents use this database."""
    made = Commands(folder)
    made.configure(
        dsn=with_password(database.runtime_dsn)[0], embed_url="http://127.0.0.1:9/v1", embed_model=MODEL, embed_dim=DIM
    )
    return made


@pytest.fixture(scope="module")
def spread(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """A distributed database."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        yield database


@pytest.fixture
def commands(spread: Database, tmp_path: Path) -> Commands:
    """A home on it."""
    return home(tmp_path, spread)


def found(done: Finished, check: str) -> list[tuple[str, str]]:
    """What doctor has found in one of its checks."""
    return [(each["level"], each["text"]) for each in done.json["checks"] if each["name"] == check]


def is_spread(database: Database) -> bool:
    """Whether the tables are distributed."""
    with psycopg.connect(database.owner_dsn) as owner:
        return citus.is_distributed(owner)


def test_up_on_a_coordinator_asks_whether_to_spread_the_themes(postgres_server: ConnectionInfo, tmp_path: Path) -> None:
    with new_database(postgres_server) as database:
        commands = Commands(tmp_path)
        commands.home.mkdir(parents=True)
        wanted = ["up", "--dsn", with_password(database.owner_dsn)[0], "--runtime-role", RUNTIME_ROLE]
        # Nobody is asked who cannot answer, and --yes does not mean it.
        done = commands.run(*wanted, "--yes")
        assert "hermes-pgvector migrate --citus" in done.out, done
        assert not is_spread(database)
        question = "Spread the themes over its workers?"
        shown = on_terminal(
            [PROGRAM, *wanted], environment=commands.environment, folder=tmp_path, answers={question: "y\n"}
        ).shown
        assert question in shown
        assert "spread over 8 shards" in shown
        assert is_spread(database)
        again = commands.run(*wanted, "--yes")
        assert "migrate --citus" not in again.out, again


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (["reembed", "--url", "URL", "--model", "other"], "migrate --switch-model"),
        (["index", "create", "--all"], "every shard is searched exactly"),
        (["grant", "minion", "--themes", "a"], "cannot keep a login to its themes"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_what_a_cluster_cannot_do_is_refused_in_words(
    commands: Commands, spread: Database, wanted: list[str], told: str
) -> None:
    admin = with_password(spread.owner_dsn)[0]
    with EmbedServer(dim=DIM) as server:
        arguments = [server.url if each == "URL" else each for each in wanted]
        done = commands.run(*arguments, variables={"HERMES_PGVECTOR_ADMIN_DSN": admin})
    assert done.code == 1, done
    assert told in done.everything


def test_nothing_is_moved_from_or_to_a_cluster(spread: Database) -> None:
    with pytest.raises(SchemaError, match="no place to move from or to"), open_side(spread.owner_dsn):
        pass


def test_doctor_looks_at_every_node(commands: Commands, spread: Database, postgres_server: ConnectionInfo) -> None:
    done = commands.run("doctor", "--json")
    assert found(done, "cluster") == [("ok", "3 nodes, themes on 2 of them, all reachable")]
    assert found(done, "shards") == [("ok", "8 shards; every node has every function")]
    assert found(done, "routing") == [("ok", "a statement about one theme goes to one shard")]
    worker = cluster_of(postgres_server).workers[0]
    with psycopg.connect(worker.dsn(spread.name), autocommit=True) as node:
        node.execute("SET citus.enable_ddl_propagation = off")
        node.execute("ALTER FUNCTION hermes_turns_before_in_shard RENAME TO hermes_gone_in_shard")
        ((level, text),) = found(commands.run("doctor", "--json"), "shards")
        assert level == "problem"
        assert f"127.0.0.1:{worker.port} has not every function" in text
        node.execute("ALTER FUNCTION hermes_gone_in_shard RENAME TO hermes_turns_before_in_shard")
    Stored(spread.owner_dsn).rows(f"{LETTER} RETURNING id")
    (level, text), _ = found(commands.run("doctor", "--json"), "cluster")
    assert level == "warning"
    assert "1 record that came while one was away" in text
    status = commands.run("status", "--json").json["stored"]
    assert (status["set_aside"], status["dead_letters"]) == (1, 0)
    assert "1 record kept in the database for a node that was away" in commands.run("status").out
    assert commands.run("journal", "dead", "list", "--json").json == []
    worker.stop()
    try:
        away = commands.run("doctor", "--json")
        ((level, text),) = found(away, "cluster")
        assert level == "problem"
        assert f"127.0.0.1:{worker.port} cannot be reached" in text
        assert "1 record now" in text
        assert found(away, "database")[-1] == ("warning", "what lies on that node could not be checked")
        assert commands.run("doctor", "--check").code != 0
        assert "a worker of its Citus cluster" in commands.run("status").everything
    finally:
        worker.start()
        Stored(spread.owner_dsn).rows("DELETE FROM dead_letters RETURNING id")
