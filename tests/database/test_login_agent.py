"""An agent under a login of single themes: it works as a whole, and what it may not write waits for a grant."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.admin import logins
from hermes_memory_pgvector.admin.logins import Wanted
from hermes_memory_pgvector.config.settings import parse
from hermes_memory_pgvector.engine import granted, sweep
from hermes_memory_pgvector.engine.sweep import Sweep
from hermes_memory_pgvector.writer import writer
from testing.agent import AgentHome
from testing.postgres import Database
from testing.waiting import wait_until

PAGE = [{"id": "w1", "type": "function", "function": {"name": "web_search", "arguments": "{}"}}]
NOTE = [{"id": "m1", "type": "function", "function": {"name": "memory", "arguments": "{}"}}]


@pytest.fixture
def laptop(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentHome]:
    """A home under a login that was granted launch and team-*."""
    monkeypatch.setattr(granted, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(writer, "HOLD_SECONDS", 0.2)
    login = f"agent_{database.name}"
    give(database, "launch", "team-*")
    home = AgentHome.create(tmp_path / "laptop", database)
    home.dsn = make_conninfo(database.runtime_dsn, user=login, password="x", passfile="")
    yield home
    home.close()
    logins.revoke(database.owner_dsn, login, actor="test", home_id="")


def give(database: Database, *themes: str, **more: Any) -> None:
    wanted = Wanted(f"agent_{database.name}", themes, **more)
    logins.grant(database.owner_dsn, wanted, password="x", actor="test", home_id="")


def recalled(home: AgentHome, theme: str, tool: str, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = json.loads(home.provider(theme, "asking").handle_tool_call(tool, {"query": query, "limit": 20, **more}))
    return list(answer["results"])


def test_what_a_login_may_not_write_is_kept_and_goes_through_once_it_may(
    laptop: AgentHome, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    agent = laptop.provider("kitchen", "s1")
    agent.sync_turn("How long does the zebra stew cook?", "It cooks for three hours.", session_id="s1")
    page: list[dict[str, Any]] = [
        {"role": "user", "content": "And what does the web say?"},
        {"role": "assistant", "content": "", "tool_calls": PAGE},
        {"role": "tool", "name": "web_search", "tool_call_id": "w1", "content": "page"},
        {"role": "assistant", "content": "", "tool_calls": NOTE},
        {"role": "tool", "name": "memory", "tool_call_id": "m1", "content": "done"},
        {"role": "assistant", "content": "It says four hours at least."},
    ]
    agent.on_memory_write("add", "memory", "Zebra stew: four hours.", {"session_id": "s1", "tool_call_id": "m1"})
    agent.sync_turn(page[0]["content"], page[-1]["content"], session_id="s1", messages=page)
    agent.sync_turn("Forget this zebra question, please.", "It is forgotten already.", session_id="s1")
    agent.on_session_switch("s1", parent_session_id="", reset=False, rewound=True)
    sauce = [
        {"role": "user", "content": "And the zebra sauce, how long?"},
        {"role": "assistant", "content": "Ten minutes."},
    ]
    agent.sync_turn(sauce[0]["content"], sauce[1]["content"], session_id="s1", messages=[*page, *sauce])
    laptop.provider("launch", "s2").sync_turn(
        "The launch goes on beside it.", "So it does, on Friday.", session_id="s2"
    )
    laptop.settle()
    assert [said for _, _, said in laptop.stored.turns("launch")] == [
        "The launch goes on beside it.", "So it does, on Friday.",
    ]  # fmt: skip
    assert laptop.stored.themes() == {"launch"}
    # The agent is told nothing but that there is nothing; the operator is told once, and sees what waits.
    assert recalled(laptop, "kitchen", "recall_memory", "zebra stew") == []
    reasons = {reason for (reason,) in laptop.stored.rows("SELECT reason FROM dead_letters")}
    assert [f"agent_{database.name}" in each and "'kitchen'" in each for each in reasons] == [True]
    told = [record.getMessage() for record in caplog.records if "was not granted" in record.getMessage()]
    assert len(told) == 1
    assert laptop.engine.writer.status().waiting == 0
    give(database, "launch", "team-*", "kitchen")
    laptop.engine.tasks.wake()
    wait_until(lambda: laptop.stored.count("dead_letters") == 0)
    assert [said for _, _, said in laptop.stored.turns("kitchen")] == [
        "How long does the zebra stew cook?", "It cooks for three hours.", page[0]["content"], page[-1]["content"],
        "And the zebra sauce, how long?", "Ten minutes.",
    ]  # fmt: skip
    # What the turn had read is known of what it wrote, too.
    ((trust,),) = laptop.stored.rows("SELECT trust FROM memory_entries WHERE agent_identity = 'kitchen'")
    assert trust == "untrusted"
    assert [row["content"] for row in recalled(laptop, "kitchen", "recall_memory", "zebra stew")] == [
        "Zebra stew: four hours."
    ]
    assert "are stored" in caplog.text


def test_a_login_that_only_reads_leaves_its_traces_and_its_writes_wait(laptop: AgentHome, database: Database) -> None:
    with psycopg.connect(database.operator_dsn) as connection:
        connection.execute(
            "INSERT INTO memory_entries (agent_identity, target, content) VALUES"
            " ('launch', 'memory', 'The rocket is blue.'), ('team-a', 'memory', 'The rocket is red.'),"
            " ('kitchen', 'memory', 'The rocket salad is green.')"
        )
    give(database, "launch", "team-*", may_write=False)
    assert [row["content"] for row in recalled(laptop, "launch", "recall_memory", "rocket")] == ["The rocket is blue."]
    everywhere = recalled(laptop, "launch", "recall_memory", "rocket", scope="all")
    assert {row["agent_identity"] for row in everywhere} == {"launch", "team-a"}
    assert recalled(laptop, "kitchen", "recall_memory", "rocket") == []
    laptop.provider("launch").sync_turn("This waits in the journal.", "It waits until it may.", session_id="s1")
    laptop.engine.tasks.wake()
    wait_until(lambda: laptop.stored.count("recall_log") == 2)
    assert {theme for (theme,) in laptop.stored.rows("SELECT agent_identity FROM recall_log")} == {"launch"}
    assert laptop.stored.turns("launch") == []
    assert laptop.engine.writer.status().waiting > 0
    give(database, "launch", "team-*")
    laptop.engine.writer.breaker.released()
    laptop.settle()
    assert len(laptop.stored.turns("launch")) == 2


def test_a_quarantine_holds_what_a_login_brings_and_tells_it_nothing_of_others(
    laptop: AgentHome, database: Database
) -> None:
    with psycopg.connect(database.operator_dsn) as connection:
        connection.execute(
            "INSERT INTO quarantines (actor, theme, session_id) VALUES"
            " ('op', NULL, 'bad'), ('op', 'team-a', 'worse'), ('op', 'kitchen', 'a cook'), ('op', NULL, 'a stranger')"
        )
    for theme, session in (("launch", "bad"), ("team-a", "worse"), ("launch", "good")):
        agent = laptop.provider(theme, session)
        agent.sync_turn(f"The zebra of {session} is paid first.", "It is paid.", session_id=session)
        agent.on_memory_write("add", "memory", f"Zebra of {session}.", {"session_id": session, "tool_call_id": session})
    laptop.settle()
    held = "SELECT agent_identity, quarantine_id, count(*) FROM {} GROUP BY 1, 2 ORDER BY 1"
    assert laptop.stored.rows(held.format("quarantined_turns")) == [("launch", 1, 2), ("team-a", 2, 2)]
    assert laptop.stored.rows(held.format("quarantined_memories")) == [("launch", 1, 1), ("team-a", 2, 1)]
    found = recalled(laptop, "launch", "recall_conversation", "zebra") + recalled(
        laptop, "team-a", "recall_memory", "zebra"
    )
    assert {row["session_id"] for row in found} == {"good"}
    with psycopg.connect(laptop.dsn) as connection:
        # It sees those that concern it, and ends none of them.
        rows = connection.execute("SELECT session_id FROM quarantines ORDER BY id").fetchall()
        assert rows == [("bad",), ("worse",)]
        connection.execute("SELECT set_config('hermes.purpose', 'operator', true)")
        for change in (
            "DELETE FROM quarantined_turns",
            "UPDATE quarantines SET undone_at = now()",
            "INSERT INTO quarantined_turns SELECT agent_identity, id, 1 FROM conversations",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(change.encode())


def test_a_login_deletes_old_turns_of_its_own_home_alone(
    laptop: AgentHome, agent_home: AgentHome, database: Database
) -> None:
    """It cannot see which homes there are: turns of no known home may be anybody's."""
    for home in (laptop, agent_home):
        agent = home.provider("launch", "s1")
        agent.sync_turn(f"Said long ago in {home.path.name}.", f"So it was in {home.path.name}.", session_id="s1")
        home.settle()
    with psycopg.connect(database.operator_dsn) as connection:
        connection.execute("UPDATE conversations SET ts = now() - interval '20 days'")
        connection.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content, ts)"
            " VALUES ('launch', 's', 'user', 'Of no known home.', now() - interval '400 days')"
        )
    assert laptop.engine.home_id != agent_home.engine.home_id
    sweep_all(laptop, ttl_days=30)
    assert len(laptop.stored.turns("launch")) == 5
    # Two homes with one theme and rules of their own: each lets its own turns go.
    sweep_all(laptop, ttl_days=7)
    kept = [said for _, _, said in laptop.stored.turns("launch")]
    name = agent_home.path.name
    assert kept == ["Of no known home.", f"Said long ago in {name}.", f"So it was in {name}."]
    sweep_all(agent_home, ttl_days=30)
    assert len(laptop.stored.turns("launch")) == 3
    sweep_all(agent_home, ttl_days=7)
    assert [said for _, _, said in laptop.stored.turns("launch")] == ["Of no known home."]


def sweep_all(home: AgentHome, **settings: Any) -> None:
    task = Sweep(home.engine.pool, home.engine.writer, parse({"file": settings}).settings, home.engine.home_id)
    for _ in range(9):
        task._due_at = 0.0
        if task.run() == sweep.IDLE_SECONDS:
            break
