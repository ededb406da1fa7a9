"""Old history goes without changing what is remembered; the plans are tested in tests/property/test_flatten.py."""

from __future__ import annotations

from hermes_memory_pgvector.runtime import tasks
from testing.agent import AgentHome


def test_the_texts_of_old_versions_go_and_the_sweep_is_audited(agent_home: AgentHome) -> None:
    agent = agent_home.provider("market")
    agent.on_memory_write("add", "memory", "The secret is 1234", {})
    agent.on_memory_write("replace", "memory", "The secret is gone", {"old_text": "1234"})
    agent.on_memory_write("add", "memory", "Left over", {})
    agent.on_memory_write("remove", "memory", "", {"old_text": "Left over"})
    agent_home.settle()
    stored = agent_home.stored
    stored.rows("UPDATE memory_operations SET at = now() - interval '400 days' RETURNING 1")
    engine = agent_home.engine
    sweep = tasks.ShortenHistory(engine.pool, engine.writer, engine.home_id, 365)
    sweep._due_at = 0.0
    sweep.run()
    assert stored.rows("SELECT action, content, old_text, previous FROM memory_operations") == [
        ("add", "The secret is gone", "", None)
    ]
    assert stored.memories("market") == [("memory", "The secret is gone")]
    assert stored.rows("SELECT actor, action, theme, counts FROM audit_log") == [
        ("sweep", "expire history", "market", {"events": 3})
    ]
    sweep._due_at = 0.0
    sweep.run()
    assert stored.count("audit_log") == 1
