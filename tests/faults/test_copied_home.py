"""A home that is copied while processes write: the copy delivers the same journals, and each record is stored once."""

from __future__ import annotations

from faults.battery.copies import copy_and_deliver

from testing.agent import AgentHome
from testing.waiting import wait_until

WRITES = """
import time
agent = provider("marketing", "s" + arguments[0])
for number in range(1, 4001):
    agent.sync_turn(f"{arguments[0]} says {number}", "", session_id="s" + arguments[0])
    if number % 100 == 0:
        agent.on_memory_write("add", "memory", f"fact {arguments[0]}-{number}", {})
        time.sleep(0.02)
say("done")
os._exit(0)
"""


def test_a_home_copied_while_in_use_and_its_copy_store_each_record_once(agent_home: AgentHome) -> None:
    agent_home.settings["bulk_sync_on_init"] = False
    writers = [agent_home.start(WRITES, str(number)) for number in range(2)]
    wait_until(lambda: len(list((agent_home.path / "pgvector" / "journal").glob("*.lock"))) == 2)
    seen = 0
    for _ in range(3):
        seen += copy_and_deliver(agent_home.path, agent_home.configuration, seconds=2.0)
    assert seen >= 2, "the copies had journals of living processes"
    for writer in writers:
        out, _ = writer.communicate(timeout=120)
        assert out.split() == ["done"]
    agent_home.provider("marketing")

    def stored() -> tuple[int, int]:
        agent_home.engine.writer.wake()
        (row,) = agent_home.stored.rows("SELECT count(*), count(DISTINCT content) FROM conversations")
        return row

    wait_until(lambda: stored()[0] >= 8000, seconds=120, every=0.2)
    assert stored() == (8000, 8000)
    assert agent_home.stored.rows("SELECT count(*), count(DISTINCT content) FROM memory_operations") == [(80, 80)]
    assert agent_home.stored.rows("SELECT count(*) FROM dead_letters") == [(0,)]
