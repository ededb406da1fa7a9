"""Recall from a read replica: only what it must have seen is answered there, and its loss costs no answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.registry import close_all
from hermes_memory_pgvector.recall.replica import ReplicaStatus
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.agent import AgentHome
from testing.cases import some_of
from testing.command import Commands
from testing.replication import DATABASE, Replicated
from testing.steady_load import SteadyLoad
from testing.waiting import promptly, wait_until


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    with Replicated(tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def home(pair: Replicated, tmp_path: Path) -> Iterator[AgentHome]:
    """A home that reads from the standby."""
    made = AgentHome.create(tmp_path / "hermes", pair.database, read_dsn=pair.read_dsn)
    made.dsn = make_conninfo(pair.dsn, host="127.0.0.1", port=pair.primary.port)
    yield made
    made.close()
    pair.mend()


def ask(home: AgentHome, query: str, theme: str = "marketing", **more: Any) -> list[str]:
    answer = json.loads(home.provider(theme).handle_tool_call("recall_conversation", {"query": query, **more}))
    assert "error" not in answer, answer
    return [hit["content"] for hit in answer["results"]]


def status(home: AgentHome) -> ReplicaStatus:
    assert home.engine.replica is not None
    return home.engine.replica.status()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "read replica" in each.getMessage()]


def rest(home: AgentHome) -> None:
    """As if nobody had asked for a while: a replica that was behind is asked again."""
    assert home.engine.replica is not None
    home.engine.replica._not_before = 0.0


def test_a_replica_answers_once_it_has_what_the_question_needs(pair: Replicated, home: AgentHome) -> None:
    """Own writes, and what operators have taken out of recall; everything in the order of one home's life."""
    keys, ladder = "The spare keys hang behind the grey clock", "The long ladder lies in the cellar"
    home.provider().sync_turn(keys, "")
    home.settle()
    pair.wait_for_standby()
    assert ask(home, "where are the spare keys") == [keys]
    assert status(home).answered == 1
    with pair.apart():
        # A write of another theme does not matter here, one's own does.
        home.provider("kitchen").sync_turn("The oven is cleaned on Sunday evenings", "")
        home.settle()
        assert ask(home, "where are the spare keys") == [keys]
        assert status(home) == ReplicaStatus(2, 0, status(home).lag_seconds)
        home.provider().sync_turn(ladder, "")
        home.settle()
        assert ask(home, "where is the long ladder") == [ladder]
        assert (status(home).answered, status(home).behind) == (2, 1)
        rest(home)
        assert ask(home, "where is the long ladder", scope="all") == [ladder]
        assert (status(home).answered, status(home).behind) == (2, 2)
    rest(home)
    assert ask(home, "where is the long ladder") == [ladder]
    assert status(home).answered == 3
    # The log of answers is written to the primary.
    wait_until(
        lambda: pair.primary.rows("SELECT count(*) > 0 FROM recall_log WHERE agent_identity = 'marketing'") == [(True,)]
    )


@pytest.mark.parametrize("command", some_of({each: each for each in ("forget", "quarantine", "mute")}, "forget"))
def test_what_an_operator_took_out_of_recall_is_not_recalled_from_a_replica_that_is_behind(
    pair: Replicated, home: AgentHome, command: str
) -> None:
    theme = f"theme-{command}"
    secret = "The code of the garden gate is four two four two"
    home.provider(theme, "poisoned").sync_turn(secret, "", session_id="poisoned")
    home.settle()
    pair.wait_for_standby()
    assert ask(home, "code of the garden gate", theme) == [secret]
    assert status(home).answered == 1
    ((number,),) = pair.primary.rows("SELECT id FROM conversations WHERE agent_identity = %s", theme)
    arguments = {
        "forget": ("forget", "--theme", theme, "--session", "poisoned", "--execute"),
        "quarantine": ("quarantine", "--theme", theme, "--session", "poisoned", "--execute"),
        "mute": ("mute", f"t{number}", "--execute"),
    }[command]
    commands = Commands(home.path.parent)
    commands.configure(dsn=home.dsn, embed_url="http://127.0.0.1:9/")
    with pair.apart():
        done = commands.call(*arguments)
        assert done.code in (0, 3), done
        # The replica still has it.
        assert pair.standby.rows("SELECT content FROM conversations WHERE agent_identity = %s", theme) == [(secret,)]
        assert ask(home, "code of the garden gate", theme) == []
        assert (status(home).answered, status(home).behind) == (1, 1)
    rest(home)
    assert ask(home, "code of the garden gate", theme) == []
    assert status(home).answered == 2


def test_a_lost_replica_costs_no_answer_and_is_used_again_when_it_is_back(
    pair: Replicated, home: AgentHome, caplog: pytest.LogCaptureFixture
) -> None:
    with SteadyLoad(home, writes=20, questions=20) as load:
        wait_until(lambda: status(home).answered >= 5)
        pair.standby.stop()
        asked = len(load.answers)
        wait_until(lambda: len(load.answers) >= asked + 10)
        pair.standby.start()
        answered = status(home).answered
        wait_until(lambda: status(home).answered > answered)
    assert load.failures == []
    assert home.engine.life.meters.totals()["breaker_openings|read replica"] == 1
    lost, back = told(caplog)
    assert "the primary answers" in lost
    assert "answers again" in back


@pytest.mark.large
def test_a_silent_replica_takes_half_of_one_budget(pair: Replicated, home: AgentHome) -> None:
    fact = "The weather station reports the wind from the north tower"
    home.provider().sync_turn(fact, "")
    home.settle()
    pair.wait_for_standby()
    assert ask(home, "wind from the north tower") == [fact]
    pair.standby.freeze()
    try:
        with promptly(home.engine.settings.tool_budget):
            assert ask(home, "wind from the north tower") == [fact]
        assert home.engine.replica is not None
        assert home.engine.replica.breaker.is_open
    finally:
        pair.standby.thaw()
    wait_until(lambda: home.engine.replica is not None and not home.engine.replica.breaker.is_open)


@pytest.mark.large
def test_a_replica_of_another_database_is_not_read(
    pair: Replicated, home: AgentHome, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection string in the wrong place must not show another fleet's memories."""
    from hermes_memory_pgvector.admin import migrate

    pair.primary.rows("CREATE DATABASE others", database="postgres")
    try:
        migrate.apply(pair.primary.dsn(database="others"), runtime_role=RUNTIME_ROLE)
        pair.wait_for_standby()
        home.settings["read_dsn"] = f"{pair.read_dsn} dbname=others"
        fact = "The harbour master keeps the tide tables in a drawer"
        home.provider().sync_turn(fact, "")
        home.settle()
        assert ask(home, "tide tables") == [fact]
        assert status(home).answered == 0
        assert ["another database" in each for each in told(caplog)] == [True]
    finally:
        close_all(Deadline.after(10))
        pair.primary.rows("DROP DATABASE others WITH (FORCE)", database="postgres")


SAY_IN_MARKETING = """
import pathlib
provider("marketing").sync_turn(arguments[0], "")
assert engine_for(pathlib.Path(home), settings)[0].writer.flush(Deadline.after(30))
"""


@pytest.mark.large
def test_a_copy_that_nobody_keeps_up_to_date_is_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy of the database has its id and its rows; so has a standby that was promoted while the primary lives on."""
    with Replicated(tmp_path / "servers") as pair:
        pair.primary.rows(f"CREATE DATABASE copied TEMPLATE {DATABASE}", database="postgres")
        pair.wait_for_standby()
        home = AgentHome.create(tmp_path / "hermes", pair.database)
        home.dsn = make_conninfo(pair.dsn, host="127.0.0.1", port=pair.primary.port)
        commands = Commands(tmp_path)
        facts: list[str] = []

        def tell_and_ask(read_dsn: str) -> int:
            """How many questions the replica answers, right after somebody else has written."""
            facts.append(f"The harbour master keeps {len(facts) + 1} tide tables in a drawer")
            assert home.run(SAY_IN_MARKETING, facts[-1])[0] == 0
            home.settings["read_dsn"] = read_dsn
            home.provider("kitchen").sync_turn(f"Turn {len(facts)} of another theme: the home knows its database", "")
            home.settle()
            assert sorted(ask(home, "tide tables")) == facts
            return status(home).answered

        def problem(read_dsn: str) -> str:
            commands.configure(dsn=home.dsn, read_dsn=read_dsn, embed_url="http://127.0.0.1:9/")
            return str(commands.call("status", "--json").json["replica"]["problem"])

        try:
            assert tell_and_ask(f"host=127.0.0.1 port={pair.primary.port}") == 1, "the primary itself may stand there"
            for server in (pair.standby, pair.primary):
                copied = f"host=127.0.0.1 port={server.port} dbname=copied"
                assert tell_and_ask(copied) == 0
                assert "another database" in problem(copied)
            pair.wait_for_standby()
            pair.standby.promote()
            assert tell_and_ask(pair.read_dsn) == 0
            assert "nobody keeps it up to date" in problem(pair.read_dsn)
            assert "nobody keeps it up to date" in told(caplog)[-1]
        finally:
            home.close()


def test_status_and_doctor_show_how_far_a_replica_is_behind(pair: Replicated, home: AgentHome) -> None:
    commands = Commands(home.path.parent)
    commands.configure(dsn=home.dsn, read_dsn=pair.read_dsn, embed_url="http://127.0.0.1:9/")

    def checks() -> list[dict[str, str]]:
        return [each for each in commands.call("doctor", "--json").json["checks"] if each["name"] == "replica"]

    home.provider().sync_turn("A first turn, so that the home knows its database", "")
    home.settle()
    pair.wait_for_standby()
    where = f"{DATABASE} on 127.0.0.1:{pair.standby.port} as {RUNTIME_ROLE}"
    assert f"{where}: up to date" in " ".join(commands.call("status").out.split())
    with pair.apart():
        pair.primary.rows("CREATE TABLE something AS SELECT generate_series(1, 1000)")
        shown = commands.call("status", "--json").json["replica"]
        assert shown["bytes_behind"] > 0
        assert shown["problem"] == ""
        (check,) = checks()
        assert (check["level"], "behind" in check["text"]) == ("ok", True)
    commands.configure(dsn=home.dsn, read_dsn="host=127.0.0.1 port=1", embed_url="http://127.0.0.1:9/")
    (check,) = checks()
    assert check["level"] == "warning"
    assert "the primary answers" in check["text"]
    pair.primary.rows("DROP TABLE something")


def test_a_replica_without_a_database_of_ones_own_is_ignored(tmp_path: Path) -> None:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.setup.checks import replica

    (found,) = replica.check(tmp_path, Settings(read_dsn="host=replica.example"))
    assert found.level == "warning"
    assert "ignored" in found.text


@pytest.fixture(autouse=True)
def _warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
