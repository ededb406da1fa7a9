"""No hook and no tool waits beyond its budget, whatever Postgres and the embedder do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import psycopg
import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.embed_server import EmbedServer, Mode
from testing.faulty import FaultyServer, expect, say
from testing.postgres import DIM, MODEL, Database
from testing.proxy import Mode as ProxyMode
from testing.proxy import Proxy
from testing.waiting import HOOK_SECONDS, promptly

BUDGET = 1.0
SLACK = 4.0
MESSAGES = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": "an answer"}]

Hook = Callable[[PgvectorMemoryProvider], object]

# What the host calls on the turn's own thread without a limit: these never wait for anybody.
PROMPT: dict[str, Hook] = {
    "is_available": lambda agent: agent.is_available(),
    "system_prompt_block": lambda agent: agent.system_prompt_block(),
    "on_turn_start": lambda agent: agent.on_turn_start(1, "a question"),
    "sync_turn": lambda agent: agent.sync_turn("a question", "an answer", session_id="s1", messages=MESSAGES),
    "on_memory_write": lambda agent: agent.on_memory_write("add", "memory", "a fact", {}),
    "on_session_end": lambda agent: agent.on_session_end(MESSAGES),
    "on_pre_compress": lambda agent: agent.on_pre_compress(MESSAGES),
    "on_session_switch": lambda agent: agent.on_session_switch("s2", parent_session_id="s1", reason="compression"),
    "on_delegation": lambda agent: agent.on_delegation("task", "result", child_session_id="c1"),
    "queue_prefetch": lambda agent: agent.queue_prefetch("a question"),
    "get_tool_schemas": lambda agent: agent.get_tool_schemas(),
}
# What asks the database, within a budget.
ASKING: dict[str, Hook] = {
    "prefetch": lambda agent: agent.prefetch("question 1 about fact 1"),
    "recall_memory": lambda agent: agent.handle_tool_call("recall_memory", {"query": "fact 1"}),
    "recall_conversation": lambda agent: agent.handle_tool_call("recall_conversation", {"query": "question 1"}),
}


@pytest.fixture(autouse=True)
def short_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "tool_budget", BUDGET)
    monkeypatch.setattr(Settings, "batch_embed_seconds", 2.0)
    monkeypatch.setattr(Settings, "drain_seconds", 0.5)


@pytest.fixture
def slow_home(far_home: AgentHome) -> Iterator[AgentHome]:
    with EmbedServer(DIM) as embedder:
        far_home.settings |= {
            "embed_url": embedder.url, "embed_model": MODEL, "embed_protocol": "openai", "embed_on_write": True,
            "prefetch_budget": BUDGET,
        }  # fmt: skip
        say(far_home, 1)
        expect(far_home, 1)
        yield far_home


def check(home: AgentHome) -> None:
    """Every hook, on a provider that is new and on one that has been there before."""
    with promptly(HOOK_SECONDS, "initialize"):
        agent = home.provider()
    for _ in range(2):
        for name, hook in PROMPT.items():
            with promptly(HOOK_SECONDS, name):
                hook(agent)
        for name, hook in ASKING.items():
            with promptly(BUDGET + SLACK, name):
                answer = hook(agent)
            if name != "prefetch":
                assert set(json.loads(str(answer))) - {"note"} in ({"error"}, {"results", "count"}), answer
    with promptly(BUDGET + SLACK, "shutdown"):
        agent.shutdown()


@pytest.mark.parametrize("mode", ["blackhole", "drip", "refuse", "reset"])
def test_nothing_waits_for_a_broken_network(slow_home: AgentHome, proxy: Proxy, mode: ProxyMode) -> None:
    proxy.drip_seconds = 0.1
    proxy.mode = mode
    check(slow_home)


def test_nothing_waits_for_a_frozen_server(slow_home: AgentHome, server: FaultyServer) -> None:
    pids = server.freeze()
    try:
        check(slow_home)
    finally:
        server.thaw(pids)


def test_nothing_waits_for_a_lock(slow_home: AgentHome, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as holder:
        holder.execute("LOCK TABLE conversations, memory_entries, journal_writers IN ACCESS EXCLUSIVE MODE")
        check(slow_home)


@pytest.mark.parametrize("mode", ["hang", "drip", "drip-head", "500", "huge"])
def test_nothing_waits_for_an_embedder(far_home: AgentHome, mode: Mode) -> None:
    with EmbedServer(DIM) as embedder:
        far_home.settings |= {
            "embed_url": embedder.url, "embed_model": MODEL, "embed_protocol": "openai", "embed_on_write": True,
            "prefetch_budget": BUDGET,
        }  # fmt: skip
        say(far_home, 1)
        expect(far_home, 1)
        embedder.mode = mode
        check(far_home)
        # Words answer while meaning cannot.
        found = far_home.provider().handle_tool_call("recall_memory", {"query": "fact 1"})
        assert "fact 1" in found
        far_home.close()
