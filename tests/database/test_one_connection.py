"""With one connection everything works that a process does: nothing needs a second connection beside the first."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.runtime import heartbeat
from testing.agent import AgentHome
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database
from testing.waiting import wait_until

LEAVES_A_JOURNAL = """
engine = provider("market", "left")._current()
engine.writer.stop(Deadline.after(5))
agent = provider("market", "left")
agent.sync_turn("Who oils the crane of the harbour this week, and when?", "The crane driver, on Friday morning.")
os._exit(0)
"""


def test_one_connection_is_enough_for_reads_writes_and_upkeep(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(Settings, "pool_max", 1)
    monkeypatch.setattr(Settings, "tool_budget", 20.0)
    with EmbedServer(dim=DIM) as embedder:
        settings = {
            "embed_url": embedder.url, "embed_model": MODEL, "embed_protocol": "openai",
            "ttl_days": {"turns": 30, "history": 30}, "prefetch_budget": 7,
        }  # fmt: skip
        home = AgentHome.create(tmp_path / "agent", database, **settings)
        home.write_memories("The harbour master signs every permit in blue ink")
        try:
            agents = [home.provider(f"theme {number}", session=f"s{number}") for number in range(6)]
            answers: list[str] = []

            def work(number: int) -> None:
                for turn in range(8):
                    agents[number].sync_turn(
                        f"Where do we moor the harbour pilot boat number {turn} of {number}?",
                        f"At the northern quay of the harbour, berth {turn} of {number}.",
                        session_id=f"s{number}",
                    )
                    agents[number].prefetch("where is the harbour pilot boat moored?", session_id="another")
                    asked = {"query": "harbour pilot boat", "scope": "all", "context": 1}
                    answers.append(agents[number].handle_tool_call("recall_conversation", asked))

            threads = [threading.Thread(target=work, args=(number,)) for number in range(len(agents))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
            home.settle(60)
            home.mirror(60)
            assert [each for each in answers if "error" in json.loads(each)] == []
            assert home.stored.count("conversations") == 6 * 8 * 2
            assert home.run(LEAVES_A_JOURNAL)[0] == 0
            home.engine.writer._visited_at = 0.0
            home.engine.writer.wake()
            wait_until(lambda: home.stored.count("conversations") == 6 * 8 * 2 + 2, seconds=60)
            wait_until(lambda: home.stored.count("pending_vectors") == 0, seconds=60)
            # Everything that upkeep does, as if it were due.
            home.engine.tasks.stop(Deadline.after(20))
            home.engine.tasks._is_stopping = False
            for task in home.engine.tasks._tasks.values():
                owner = getattr(task, "__self__", None)
                for name in ("_due_at", "_looked_at", "_reads_due_at"):
                    if hasattr(owner, name):
                        setattr(owner, name, 0.0)
            home.engine.tasks._is_woken = True
            home.engine.tasks.run_once()
            assert home.engine.tasks.problems == {}
            assert home.stored.count("processes") == 1
            with psycopg.connect(database.owner_dsn) as owner_connection:
                used = owner_connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND application_name = 'hermes-pgvector'"
                ).fetchone()
            assert used is not None
            assert used[0] <= 1
        finally:
            home.close()
