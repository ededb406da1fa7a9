"""What becomes of refused writes: stored in the order they were made while the process lives; counted and told when it
ends, and brought back from the host's own store by the command that doctor prints."""

from __future__ import annotations

import errno
import json
import logging
import shlex
import subprocess
import sys
from typing import Any

import pytest

from hermes_memory_pgvector.runtime import recorder, refusals, tasks
from testing.agent import AgentHome
from testing.refusing import Disk, Host
from testing.waiting import wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RECOVER_SECONDS", 0.1)


def texts(home: AgentHome) -> list[str]:
    home.settle()
    return [text for _, _, text in home.stored.turns("marketing")]


def command(home: AgentHome, *arguments: str) -> Any:
    """What a command says of the home, as JSON."""
    program = [sys.executable, "-m", "hermes_memory_pgvector.command", *arguments, "--json"]
    done = subprocess.run(
        [*program, "--hermes-home", str(home.path)], capture_output=True, text=True, check=False, timeout=120
    )
    return json.loads(done.stdout)


def test_refused_turns_are_stored_in_their_order_and_nothing_overtakes_them(home: AgentHome, disk: Disk) -> None:
    agent = home.provider()
    said = [f"turn {number}" for number in range(20)]
    disk.error = errno.ENOSPC
    for text in said[:10]:
        agent.sync_turn(text, "", session_id="s1")
    disk.error = 0
    for text in said[10:]:
        agent.sync_turn(text, "", session_id="s1")
    wait_until(lambda: len(texts(home)) == len(said) or None, seconds=60)
    assert texts(home) == said
    assert home.engine.recorder.waiting == 0


def test_what_finds_no_room_in_memory_is_counted(home: AgentHome, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_CHARS", 20_000)
    home.settings["bulk_sync_on_init"] = False
    agent = home.provider()
    disk.error = errno.ENOSPC
    for number in range(100):
        agent.on_memory_write("add", "memory", f"fact {number} {'x' * 900}", metadata={})
    status = home.engine.recorder
    kept = status.waiting
    assert (status.memories, kept + status.lost) == (100, 100)
    assert status.lost > 0
    disk.error = 0
    wait_until(lambda: not home.engine.recorder.waiting)
    home.settle()
    assert len(home.stored.memories("marketing")) == kept


def test_what_a_changed_configuration_finds_waiting_is_recovered(home: AgentHome, disk: Disk) -> None:
    agent = home.provider()
    disk.error = errno.ENOSPC
    agent.sync_turn("question", "answer", session_id="s1")
    home.settings["journal_max_mb"] = 300
    home.provider()
    disk.error = 0
    wait_until(lambda: len(texts(home)) == 2 or None)
    assert texts(home) == ["question", "answer"]


def test_what_an_ended_process_could_not_write_is_told_and_brought_back_by_the_command_told(
    home: AgentHome, host: Host, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    (home.path / "config.yaml").write_text(f"memory: {{pgvector: {{dsn: '{home.dsn}', turn_min_chars: 1}}}}")
    agent = home.provider("hermes", platform="cli")
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"), ("assistant", "answer"))
    agent.sync_turn("question", "answer", session_id="s1")
    agent.on_memory_write("add", "memory", "fact", metadata={})
    agent.on_delegation("Count the barrels", "There are 44", child_session_id="c1")
    with caplog.at_level(logging.ERROR):
        home.close(1.0)
    disk.error = 0
    told = [record.getMessage() for record in caplog.records if "were not stored" in record.getMessage()]
    assert len(told) == 1
    found = [each for each in command(home, "doctor")["checks"] if "were not stored" in each["text"]]
    assert [each["text"] for each in found] == told
    assert "2 turns are in the host's state.db" in told[0]
    assert "finished delegations are lost" in told[0]
    _, *arguments = shlex.split(found[0]["hint"])
    command(home, *arguments)
    assert sorted(text for _, _, text in home.stored.turns("hermes")) == ["answer", "question"]
    assert not [each for each in command(home, "doctor")["checks"] if "were not stored" in each["text"]]


def test_a_process_that_never_was_refused_leaves_nothing_behind(home: AgentHome) -> None:
    home.provider().sync_turn("question", "answer", session_id="s1")
    texts(home)
    home.close(5.0)
    assert refusals.left(home.path / "pgvector") is None
