"""A worker goes away and comes back: other themes go on, its own wait in the database and arrive in order, once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.admin import migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import ModelInfo
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.journal import Journal, codec
from hermes_memory_pgvector.recall.recall import GuardedRecall, Recall
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.setup.checks.cluster import check
from hermes_memory_pgvector.store import dead_letters, vectors
from hermes_memory_pgvector.store.current_model import CurrentModel, current_model
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import OVERVIEW, UPKEEP
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    ForgetTurns,
    Kind,
    Moment,
    Question,
    ReplaceMemory,
    Scope,
    WriteItem,
)
from hermes_memory_pgvector.writer.embed_pending import Backlog
from hermes_memory_pgvector.writer.writer import Writer
from testing.citus import Node
from testing.command import Commands, with_password
from testing.postgres import DIM, MODEL, Database, cluster_of, new_database
from testing.stored import Stored
from testing.waiting import wait_until

MIB = 1024 * 1024
START = 1_767_000_000_000_000


class Process:
    """A journal, a pool and a writer, as an agent's process has them."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.journal = Journal(
            folder, max_bytes=64 * MIB, segment_bytes=64 * 1024, keep_bytes=64 * MIB, keep_seconds=900.0
        )
        self.pool = Pool(lambda _: dsn, maximum=3, connect_seconds=5)
        settings = Settings(write_queue_maxsize=64, conversation_embed_policy="all")
        self.writer = Writer(self.journal, self.pool, CurrentModel(), settings, home_id="home", on_stored=lambda: None)
        self.journal.on_append = self.writer.nudge
        self.journal.open()
        self.writer.start()

    def says(self, *items: WriteItem) -> None:
        """One record."""
        self.journal.append(codec.encode(list(items)))

    def flush(self) -> None:
        """Everything is in the database."""
        wait_until(lambda: self.writer.flush(Deadline.after(1)), seconds=60)

    def end(self) -> None:
        """Come to an end."""
        self.writer.stop(Deadline.after(10))
        self.journal.close(Deadline.after(5))
        self.pool.close()


@pytest.fixture(scope="module")
def spread(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """One database for all tests: each has themes of its own."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        yield database


@pytest.fixture
def start(spread: Database, tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """Starts processes of one home."""
    started: list[Process] = []

    def one_more() -> Process:
        started.append(Process(tmp_path / "journal", spread.runtime_dsn))
        return started[-1]

    yield one_more
    for each in started:
        each.end()


@pytest.fixture
def worker(postgres_server: ConnectionInfo) -> Iterator[Node]:
    """The one that goes away; afterwards it is there."""
    node = cluster_of(postgres_server).workers[1]
    yield node
    if not node.is_running:
        node.start()


def moment(number: int) -> Moment:
    """The n-th microsecond."""
    return Moment(START + number, START + number)


def turn(theme: str, number: int, text: str = "") -> AddTurn:
    """The n-th turn of a theme."""
    return AddTurn(
        theme, "session", "user", text or f"turn {number:04} of {theme}", 1, moment(number), True, home_id="home"
    )


def themes_of(database: Database, node: Node, prefix: str) -> tuple[list[str], list[str]]:
    """Two themes of the other worker, and two of this one."""
    names = [f"{prefix}-{number}" for number in range(40)]
    rows = Stored(database.owner_dsn).rows(
        "SELECT t, (SELECT nodeport FROM citus_shards AS s WHERE s.table_name = 'conversations'::regclass AND"
        " s.shardid = get_shard_id_for_distribution_column('conversations', t)) FROM unnest(%s::text[]) AS t",
        names,
    )
    there = [theme for theme, port in rows if port != node.port][:2]
    away = [theme for theme, port in rows if port == node.port][:2]
    assert len(there) == len(away) == 2
    return there, away


def told(database: Database, theme: str) -> list[str]:
    """What a theme's turns say, in the order in which they were stored."""
    rows = Stored(database.owner_dsn).rows(
        "SELECT content FROM conversations WHERE agent_identity = %s ORDER BY id", theme
    )
    return [str(row[0]) for row in rows]


def waiting(database: Database) -> int:
    """How many records wait."""
    return int(Stored(database.owner_dsn).rows("SELECT count(*) FROM dead_letters WHERE waits_for IS NOT NULL")[0][0])


def test_other_themes_go_on_and_its_own_arrive_in_order_and_once(
    spread: Database, worker: Node, start: Callable[[], Process], caplog: pytest.LogCaptureFixture
) -> None:
    there, away = themes_of(spread, worker, "order")
    caplog.set_level(logging.WARNING)
    first = start()
    for theme in (*there, *away):
        first.says(turn(theme, 0), AddMemory(theme, "memory", "the kettle is old", moment(0), "home"))
    first.flush()
    worker.stop()
    for number in range(1, 120):
        for theme in (*there, *away):
            first.says(turn(theme, number))
    for theme in (*there, *away):
        first.says(ReplaceMemory(theme, "memory", "the kettle is new", "kettle is old", moment(500), "home"))
        undone = turn(theme, 600, "undone")
        first.says(undone)
        first.says(ForgetTurns(theme, "session", ((turn_digest("user", "undone"), 1),), moment(601)))
    first.flush()
    # Everything has left the journal: the other themes' rows are stored, and the rest waits on the coordinator.
    expected = {theme: [turn(theme, number).content for number in range(120)] for theme in (*there, *away)}
    for theme in there:
        assert told(spread, theme) == expected[theme]
        assert Stored(spread.owner_dsn).memories(theme) == [("memory", "the kettle is new")]
    assert waiting(spread) == 2 * 122
    status = first.writer.status()
    assert (status.set_aside, status.dead) == (244, 0)
    assert status.away == (f"127.0.0.1:{worker.port}",)
    assert not first.writer.breaker.is_open
    with first.pool.transaction(Deadline.after(30), reach=OVERVIEW) as connection:
        assert dead_letters.newest(connection, 10) == []
        (problem,) = check(connection)
        assert problem.level == "problem"
        assert f"127.0.0.1:{worker.port}" in problem.text
        assert "244 records" in problem.text
    first.end()
    # The process has ended; another one says more before the worker is back, and finds what waits.
    second = start()
    for number in range(120, 130):
        for theme in (*there, *away):
            second.says(turn(theme, number))
            expected[theme].append(turn(theme, number).content)
    second.flush()
    assert waiting(spread) == 244 + 20
    worker.start()
    wait_until(lambda: waiting(spread) == 0, seconds=60)
    third = start()
    third.says(*[turn(theme, 130) for theme in (*there, *away)])
    third.flush()
    for theme in (*there, *away):
        assert told(spread, theme) == [*expected[theme], turn(theme, 130).content]
        assert Stored(spread.owner_dsn).memories(theme) == [("memory", "the kettle is new")]
    assert Stored(spread.owner_dsn).count("dead_letters") == 0
    wait_until(lambda: second.writer.status().away == (), seconds=30)
    lines = [record.getMessage() for record in caplog.records if "cluster" in record.getMessage()]
    # One line of each process that met it at the start, and one of the process that saw the end.
    assert [("cannot be reached" in line, "answer again" in line) for line in lines] == [(1, 0), (1, 0), (0, 1)]
    assert "264 waiting records were stored" in lines[-1]


def test_what_needs_a_look_at_every_node_waits_too(
    spread: Database, worker: Node, start: Callable[[], Process]
) -> None:
    """Where the home's file has just changed, the mirror may have put the entry into a theme that cannot be asked."""
    (theme, other), _ = themes_of(spread, worker, "look")
    process = start()
    process.says(turn(theme, 1))
    process.flush()
    with psycopg.connect(spread.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO memory_files (home_id, target, entries) VALUES ('other', 'memory', '[]')")
    worker.stop()
    process.says(AddMemory(theme, "memory", "the ladder is long", moment(2), "other"))
    process.says(turn(theme, 3))
    process.says(turn(other, 4))
    process.flush()
    assert waiting(spread) == 2
    assert told(spread, other) == [turn(other, 4).content]
    assert told(spread, theme) == [turn(theme, 1).content]
    worker.start()
    wait_until(lambda: waiting(spread) == 0, seconds=60)
    assert told(spread, theme) == [turn(theme, 1).content, turn(theme, 3).content]
    assert Stored(spread.owner_dsn).memories(theme) == [("memory", "the ladder is long")]


def test_what_is_rejected_after_the_wait_is_a_dead_letter_then(
    spread: Database, worker: Node, start: Callable[[], Process]
) -> None:
    _, (theme, _) = themes_of(spread, worker, "bad")
    worker.stop()
    process = start()
    process.says(turn(theme, 1))
    process.says(turn(theme, 2), turn(theme, 3, "bad\x00"), turn(theme, 4))
    process.says(turn(theme, 5))
    process.flush()
    assert waiting(spread) == 3
    worker.start()
    wait_until(lambda: waiting(spread) == 0, seconds=60)
    assert told(spread, theme) == [turn(theme, number).content for number in (1, 2, 4, 5)]
    assert len(Stored(spread.owner_dsn).rows("DELETE FROM dead_letters RETURNING id")) == 1


def test_what_is_forgotten_while_it_waits_is_not_stored(
    spread: Database, worker: Node, start: Callable[[], Process], tmp_path: Path
) -> None:
    (there, _), (away, _) = themes_of(spread, worker, "forgotten")
    commands = Commands(tmp_path)
    commands.configure(dsn=with_password(spread.runtime_dsn)[0], embed_url="http://127.0.0.1:9/v1")
    process = start()
    worker.stop()
    for theme in (there, away):
        process.says(turn(theme, 1, "the quokka has a name"))
        process.says(turn(theme, 2))
    process.flush()
    process.end()
    # It says that it cannot, and can be asked again.
    assert "a worker of its Citus cluster" in commands.run("forget", "--match", "quokka", "--execute").everything
    assert len(told(spread, there)) == waiting(spread) == 2
    worker.start()
    done = commands.run("forget", "--match", "quokka", "--execute", "--json")
    assert done.code == 0, done
    letters = Stored(spread.owner_dsn).rows("SELECT payload FROM dead_letters")
    assert len(letters) == 1
    assert b"quokka" not in bytes(letters[0][0])
    start().says(turn(there, 3))
    wait_until(lambda: waiting(spread) == 0, seconds=60)
    assert (told(spread, away), told(spread, there)[:1]) == ([turn(away, 2).content], [turn(there, 2).content])
    found = Stored(spread.owner_dsn).rows("SELECT content FROM conversations WHERE lexemes::text LIKE '%%quokka%%'")
    assert found == []


def test_migrate_is_refused_and_changes_nothing(spread: Database, worker: Node, start: Callable[[], Process]) -> None:
    (there, _), (away, _) = themes_of(spread, worker, "migrate")
    process = start()
    worker.stop()
    with pytest.raises(MemoryPluginError, match="a worker of its Citus cluster"):
        migrate.apply(spread.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
    process.says(turn(there, 1))
    process.says(turn(away, 1))
    process.flush()
    assert (len(told(spread, there)), waiting(spread)) == (1, 1)
    worker.start()
    wait_until(lambda: waiting(spread) == 0, seconds=60)
    assert len(told(spread, away)) == 1
    assert migrate.apply(spread.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM)).shards == 8


def test_a_question_to_its_themes_does_not_keep_others_from_an_answer(
    spread: Database, worker: Node, start: Callable[[], Process]
) -> None:
    there, away = themes_of(spread, worker, "asked")
    process = start()
    process.says(*[turn(theme, 1, "the anchor is rusty") for theme in (*there, *away)])
    process.flush()
    worker.stop()
    breaker = Breaker("reads", threshold=1)
    recall = GuardedRecall(Recall(process.pool.reading, None, Settings()), breaker, hold="")
    for _ in range(3):
        with pytest.raises(MemoryPluginError, match="a worker of its Citus cluster"):
            recall.search([Question("anchor", Kind.TURN, away[0])], Deadline.after(10))
        assert recall.search([Question("anchor", Kind.TURN, there[0])], Deadline.after(10))[0].hits
    # A question to all themes is answered by those that are there, and says so.
    for own in (there[0], away[0]):
        (answer,) = recall.search([Question("anchor", Kind.TURN, own, scope=Scope.ALL, limit=9)], Deadline.after(10))
        assert {hit.theme for hit in answer.hits} == set(there)
        assert "themes on a node of the cluster that cannot be reached were not searched" in str(answer.degraded)
    worker.start()
    (answer,) = recall.search([Question("anchor", Kind.TURN, there[0], scope=Scope.ALL, limit=9)], Deadline.after(10))
    assert {hit.theme for hit in answer.hits} == {*there, *away}
    assert "cluster" not in str(answer.degraded)


class Ones:
    """An embedder with one vector for everything."""

    model = MODEL

    def info(self, deadline: Deadline) -> Any:
        """What it is."""
        return ModelInfo(MODEL, DIM, "test", "", "", 0.0)

    def embed_query(self, text: str, deadline: Deadline) -> list[float]:
        """A vector."""
        return [1.0] * DIM

    def embed_documents(self, texts: list[str], deadline: Deadline) -> list[list[float]]:
        """Vectors."""
        return [[1.0] * DIM for _ in texts]


def test_rows_of_other_themes_get_their_vectors(spread: Database, worker: Node, start: Callable[[], Process]) -> None:
    there, away = themes_of(spread, worker, "vectors")
    process = start()
    # The oldest that wait are those that cannot be read.
    for theme in (*away, *there):
        process.says(*[turn(theme, number) for number in range(100)])
    process.flush()
    worker.stop()
    backlog = Backlog(process.pool, Ones(), CurrentModel(), embed_seconds=10.0)  # type: ignore[arg-type]

    def left() -> set[str]:
        return {theme for (theme,) in Stored(spread.owner_dsn).rows("SELECT agent_identity FROM pending_vectors")}

    while left() & set(there):
        assert backlog.run() < 60
    assert left() >= set(away)
    worker.start()
    with psycopg.connect(spread.owner_dsn, autocommit=True) as owner:
        owner.execute("UPDATE pending_vectors SET due_at = now()")
    while left():
        backlog.request()
        backlog.run()
    with process.pool.transaction(Deadline.after(30), reach=UPKEEP) as connection:
        assert current_model(connection) is not None
        assert vectors.count(connection) == (0, 0)
