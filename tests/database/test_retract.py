"""An agent hides what is wrong in its own theme, and the operator finds it and takes it back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database

WRONG = "The zebra ledger is kept by Mallory in the red book."


@pytest.fixture
def commands(agent_home: AgentHome, database: Database) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(agent_home.path.parent / "operator", [password])
    made.configure(dsn=runtime)
    return made


def call(agent: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(agent.handle_tool_call(tool, arguments))
    return found


def refs(agent: Any, tool: str = "recall_conversation", **more: Any) -> list[str]:
    return [row["ref"] for row in call(agent, tool, query="zebra ledger Mallory", limit=20, **more)["results"]]


def test_what_an_agent_retracts_is_never_recalled_again(
    agent_home: AgentHome, commands: Commands, database: Database
) -> None:
    agent = agent_home.provider("market", "s1")
    agent.sync_turn("Who keeps the zebra ledger these days?", WRONG, session_id="s1")
    agent.on_memory_write("add", "memory", WRONG, {"session_id": "s1"})
    agent_home.provider("market", "s2").sync_turn("And who keeps the zebra ledger?", WRONG, session_id="s2")
    agent_home.settle()
    assert WRONG in agent.prefetch("zebra ledger")
    said = call(agent, "recall_conversation", query="zebra ledger Mallory")["results"][0]
    assert (said["content"], said["said_times"]) == (WRONG, 2)
    reason = "Anna keeps it; my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    assert call(agent, "retract_memory", id=said["ref"], reason=reason) == {"retracted": said["ref"]}
    (entry,) = refs(agent, "recall_memory")
    done = call(agent, "retract_memory", id=entry.upper(), reason="Anna keeps it")
    assert done["retracted"] == entry
    assert "It also stands in MEMORY.md and so in your prompt" in done["note"]
    assert said["ref"] not in refs(agent)
    assert refs(agent, "recall_memory") == []
    for scope in ("current", "all", "session"):
        found = call(agent, "recall_conversation", query="zebra ledger", scope=scope, context=1)
        assert WRONG not in json.dumps(found)
    assert WRONG not in agent_home.provider("market", "s3").prefetch("zebra ledger")
    assert "note" in call(agent, "retract_memory", id=entry, reason="again")
    stored = agent_home.stored
    assert stored.rows("SELECT action, theme, subject FROM audit_log ORDER BY id") == [
        ("retract", "market", said["ref"]), ("retract", "market", entry),
    ]  # fmt: skip

    rows = commands.call("list", "hidden", "--json").json["rows"]
    assert [(row["rule"], row["actor"], row["content"]) for row in rows] == [
        ("retracted", "agent in session s1", WRONG)
    ] * 2
    assert rows[0]["reason"] == "Anna keeps it"
    assert "sk-proj" not in rows[1]["reason"]
    assert "Anna keeps it" in commands.call("list", "hidden").out
    assert commands.call("mute", "--undo", str(rows[1]["id"]), "--execute", "--json").json["counts"]["turns"] == 2
    agent_home.settle()
    assert said["ref"] in refs(agent)


def test_nothing_of_another_theme_can_be_retracted(agent_home: AgentHome) -> None:
    agent_home.provider("market", "s1").sync_turn("Who keeps the zebra ledger these days?", WRONG, session_id="s1")
    agent_home.settle()
    stranger = agent_home.provider("garden", "s2")
    found = refs(stranger, scope="all")
    assert found
    for ref in found:
        assert "There is no" in call(stranger, "retract_memory", id=ref, reason="mine now")["error"]
    for arguments in ({}, {"id": "x", "reason": "r"}, {"id": "e1", "reason": "r"}, {"id": ["m1"], "reason": "r"},
                      {"id": found[0], "reason": " "}, {"id": "m" + "9" * 40, "reason": "r"}):  # fmt: skip
        assert call(stranger, "retract_memory", **arguments)["error"], arguments
    reader = agent_home.provider("market", "s3", agent_context="subagent")
    assert "error" in call(reader, "retract_memory", id=found[0], reason="r")
    assert agent_home.stored.count("hidden") == 0


def test_the_operator_may_leave_the_tool_out(agent_home: AgentHome) -> None:
    agent = agent_home.provider("market", "s1")
    assert [each["name"] for each in agent.get_tool_schemas()][2:] == ["retract_memory"]
    assert "retract_memory" in agent.system_prompt_block()
    agent_home.settings["tools"] = "recall"
    other = agent_home.provider("market", "s2")
    assert len(other.get_tool_schemas()) == 2
    assert "retract_memory" not in other.system_prompt_block()
    assert "no tool with that name" in call(other, "retract_memory", id="m1", reason="r")["error"]
