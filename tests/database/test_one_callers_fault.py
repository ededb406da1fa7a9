"""What one caller asks for, however wrong, is that caller's affair: everybody else is answered as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseRejected, DeadlineExceeded
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.values import Kind, Question
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database
from testing.waiting import wait_until

LONG = "a" * 3000
WIDE = "\U0001f9e0" * 3000
HOSTILE: list[dict[str, Any]] = [
    {"scope": LONG},
    {"scope": WIDE},
    {"scope": "x\x00y" * 900},
    {"scope": "\ud800" * 900},
    {"scope": "'; DROP TABLE conversations; --" * 99},
    {"query": WIDE, "scope": LONG, "limit": 10**30},
    {"query": "'" * 5000 + "\\" * 5000, "since": "0001-01-01", "until": "9999-12-31T23:59:59+14:00"},
    {"since": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59-14:00"},
]


@pytest.fixture
def victim(agent_home: AgentHome) -> PgvectorMemoryProvider:
    """An agent that has something to recall."""
    made = agent_home.provider("victim")
    made.sync_turn("where is the spare key", "the spare key hangs behind the clock")
    agent_home.settle()
    return made


def answers(agent: PgvectorMemoryProvider, **arguments: Any) -> Any:
    return json.loads(agent.handle_tool_call("recall_conversation", {"query": "spare key", **arguments}))


@pytest.mark.parametrize("arguments", HOSTILE)
def test_a_bad_argument_leaves_everybody_else_their_recall(
    agent_home: AgentHome, victim: PgvectorMemoryProvider, arguments: dict[str, Any]
) -> None:
    stranger = agent_home.provider("stranger")
    for tool in ("recall_conversation", "recall_memory"):
        for _ in range(3):
            answer = json.loads(stranger.handle_tool_call(tool, {"query": "spare key", **arguments}))
            assert "results" in answer or "error" in answer
            assert answers(victim)["count"] == 2
    assert agent_home.engine.read_breaker.status().state == "closed"


@pytest.mark.parametrize("key", [LONG, WIDE, "x/" * 2000, "\u202e" * 3000])
def test_a_theme_of_any_length_writes_and_recalls(agent_home: AgentHome, key: str) -> None:
    agent = agent_home.provider(key)
    agent.sync_turn("where is the spare key", "the spare key hangs behind the clock")
    agent_home.settle()
    assert answers(agent)["count"] == 2
    assert answers(agent, scope=key)["count"] == 2
    assert answers(agent_home.provider(key + "b"))["count"] == 0


def test_what_the_database_refuses_one_caller_it_need_not_refuse_the_next(
    agent_home: AgentHome, victim: PgvectorMemoryProvider
) -> None:
    """Below the tools, which bound what they are given: the breaker knows a refusal from an outage by itself."""
    engine = agent_home.engine
    refused = Question("spare key", Kind.TURN, LONG)
    with pytest.raises(DatabaseRejected):
        engine.search([refused], Deadline.after(10))
    with pytest.raises(DeadlineExceeded):
        engine.search([Question("spare key", Kind.TURN, "victim")], Deadline.after(0))
    assert engine.read_breaker.status().state == "closed"
    assert answers(victim)["count"] == 2


def test_what_concerns_everybody_opens_the_breaker_and_is_told(
    agent_home: AgentHome, database: Database, victim: PgvectorMemoryProvider
) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("REVOKE SELECT ON conversations FROM hermes")
        with pytest.raises(DatabaseDenied):
            agent_home.engine.search([Question("spare key", Kind.TURN, "victim")], Deadline.after(10))
        assert agent_home.engine.read_breaker.is_open
        assert "error" in answers(victim)
        owner.execute("GRANT SELECT ON conversations TO hermes")
    assert wait_until(lambda: answers(victim).get("count")) == 2


def test_a_long_theme_is_named_on_the_command_line_too(
    agent_home: AgentHome, database: Database, tmp_path: Path
) -> None:
    commands = Commands(tmp_path)
    commands.configure(dsn=with_password(database.runtime_dsn)[0])
    for key in (LONG, WIDE):
        agent_home.provider(key).sync_turn("where is the spare key", "behind the clock")
    agent_home.settle()
    for arguments in (["--theme", LONG], ["--scope", LONG], ["--theme", WIDE, "--scope", WIDE]):
        done = commands.run("recall", "spare key", "--json", *arguments)
        assert done.code == 0, done
        assert done.json["count"] >= 1
    missing = commands.run("recall", "spare key", "--json", "--theme", LONG[1:])
    assert (missing.code, "there is no theme" in missing.json["error"]) == (1, True)
    assert commands.run("export", "--theme", LONG).code in (0, 1)


@pytest.mark.parametrize(("key", "claimed"), [("marketing", "work/marketing"), (None, "work")])
def test_no_key_of_the_default_profile_reads_what_another_profile_stored(
    database: Database, tmp_path: Path, key: str | None, claimed: str
) -> None:
    home = AgentHome.create(tmp_path / "home", database, profile_scope="separate")
    (home.path / "profiles" / "work").mkdir(parents=True)
    try:
        home.provider(key, agent_identity="work").sync_turn("where is the spare key", "behind the clock")
        home.settle()
        assert answers(home.provider(key, "s2", agent_identity="work"))["count"] >= 1
        assert answers(home.provider(claimed, "s3"))["count"] == 0
    finally:
        home.close()
