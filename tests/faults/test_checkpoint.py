"""A checkpoint before compression: returned means journaled and synced, otherwise it raised."""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import suppress
from typing import Any

import pytest

from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.journal import segment
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.refusing import Disk
from testing.waiting import wait_until

KILLED = """
messages = json.loads(arguments[0])
agent = provider("marketing")
agent.on_pre_compress(messages, require_checkpoint=True)
os.kill(os.getpid(), 9)
"""


def messages(*numbers: int) -> list[dict[str, Any]]:
    said = [(("user", f"question {n} about barrels"), ("assistant", f"answer {n} about barrels")) for n in numbers]
    return [{"role": role, "content": text} for pair in said for role, text in pair]


def words(*numbers: int) -> list[str]:
    return sorted(message["content"] for message in messages(*numbers))


def is_taken(agent: PgvectorMemoryProvider) -> bool:
    with suppress(MemoryPluginError):
        return agent.on_pre_compress(messages(1), require_checkpoint=True) == ""
    return False


def stored(home: AgentHome) -> list[str]:
    home.settle()
    return sorted(text for _, _, text in home.stored.turns("marketing"))


@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=[pytest.mark.large, pytest.mark.timeout(1800)])])
def test_a_process_killed_right_after_a_checkpoint_has_kept_it(home: AgentHome, rounds: int) -> None:
    for number in range(rounds):
        code, _ = home.run(KILLED, json.dumps(messages(number)))
        assert code == -9
    home.provider(session="other").on_memory_write("add", "memory", "A living process takes over.")
    wait_until(lambda: home.stored.count("conversations") >= 2 * rounds, seconds=60)
    assert stored(home) == words(*range(rounds))


def test_overlapping_checkpoints_store_nothing_twice(home: AgentHome) -> None:
    agent = home.provider()
    together = threading.Barrier(5)

    def check(first: int) -> None:
        together.wait()
        for _ in range(20):
            agent.on_pre_compress(messages(*range(first, first + 10)), require_checkpoint=True)

    threads = [threading.Thread(target=check, args=(first,)) for first in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(home) == words(*range(14))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS], ids=["full disk", "read-only home"])
def test_a_checkpoint_that_the_disk_does_not_take_is_an_error_until_it_is_taken(
    home: AgentHome, disk: Disk, error: int
) -> None:
    agent = home.provider()
    disk.error = error
    for _ in range(2):
        with pytest.raises(MemoryPluginError):
            agent.on_pre_compress(messages(1), require_checkpoint=True)
    assert agent.on_pre_compress(messages(1)) == ""
    disk.error = 0
    wait_until(lambda: is_taken(agent))
    assert stored(home) == words(1)


def test_a_checkpoint_that_cannot_be_synced_is_an_error(home: AgentHome, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = home.provider()
    agent.on_pre_compress(messages(1), require_checkpoint=True)

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(segment, "sync_file", refuse)
        with pytest.raises(MemoryPluginError):
            agent.on_pre_compress(messages(1, 2), require_checkpoint=True)
    assert stored(home) == words(1, 2)


@pytest.mark.parametrize(
    ("settings", "context"), [({"sync_turns": False}, "primary"), ({"write_contexts": "primary"}, "cron")]
)
def test_a_session_that_stores_nothing_gives_no_checkpoint(
    home: AgentHome, settings: dict[str, Any], context: str
) -> None:
    home.settings |= settings
    agent = home.provider(agent_context=context)
    with pytest.raises(MemoryPluginError):
        agent.on_pre_compress(messages(1), require_checkpoint=True)
    assert agent.on_pre_compress(messages(1)) == ""


def test_the_host_is_told_that_a_checkpoint_is_kept(home: AgentHome) -> None:
    assert home.provider().pre_compress_checkpoint_api_version == 2
