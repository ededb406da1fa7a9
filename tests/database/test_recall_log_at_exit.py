"""What recall answered is in the log when a process ends, however short it lived and however it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_memory_pgvector.deadline import Deadline
from testing.agent import AgentHome

ASKS = """
agent = provider("market", "s2")
agent.handle_tool_call("recall_memory", {"query": "harbour permit", "scope": "all"})
"""
ENDINGS = {
    "by itself": "",
    "after its agents were shut down, without a further word": "agent.shutdown(); os._exit(0)",
}
LOGGED = "SELECT session_id, caller, scope FROM recall_log"


@pytest.fixture
def asked(agent_home: AgentHome) -> AgentHome:
    agent_home.provider("market").on_memory_write("add", "memory", "The harbour master signs every permit", {})
    agent_home.settle()
    return agent_home


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=list(ENDINGS))
def test_a_process_that_only_asks_leaves_its_answers_in_the_log(asked: AgentHome, ending: str) -> None:
    code, _ = asked.run(ASKS + ending)
    assert code == 0
    assert asked.stored.rows(LOGGED) == [("s2", "tool", "all")]


def test_other_settings_lose_no_answer(asked: AgentHome) -> None:
    agent = asked.provider("market", "s2")
    engine = asked.engine
    engine.tasks.stop(Deadline.after(10))
    agent.handle_tool_call("recall_memory", {"query": "harbour permit", "scope": "all"})
    engine.adopt(replace(engine.settings, prefetch_limit=9))
    engine.flush(Deadline.after(10))
    assert asked.stored.rows(LOGGED) == [("s2", "tool", "all")]


def test_a_database_out_of_reach_holds_nobody_up(asked: AgentHome) -> None:
    agent = asked.provider("market", "s2")
    agent.handle_tool_call("recall_memory", {"query": "harbour permit", "scope": "all"})
    engine = asked.engine
    engine.tasks.stop(Deadline.after(10))
    engine.pool.close()
    engine.close(Deadline.after(1))
