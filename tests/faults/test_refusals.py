"""A full disk or a full journal: writes are refused, counted and told, and recovered from the host's own copies."""

from __future__ import annotations

import errno
import logging
import sqlite3
import time
from pathlib import Path

import pytest

from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.runtime import tasks
from testing.agent import AgentHome
from testing.faulty import FaultyServer, expect, outage, say
from testing.refusing import Disk
from testing.waiting import wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RECOVER_SECONDS", 0.1)
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)


def remember(home: AgentHome, *numbers: int) -> None:
    """What the host itself keeps: its session store and MEMORY.md."""
    with sqlite3.connect(home.path / "state.db") as store:
        store.execute(
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
            " tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1)"
        )
        for number in numbers:
            for role, text in (("user", f"question {number}"), ("assistant", f"answer {number}")):
                store.execute(
                    "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', ?, ?, ?)",
                    (role, text, time.time()),
                )
    store.close()
    path = home.path / "memories" / "MEMORY.md"
    known = path.read_text(encoding="utf-8").split("\n§\n") if path.exists() else []
    home.write_memories(*known, *(f"fact {number}" for number in numbers))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EIO], ids=errno.errorcode.get)
def test_what_a_full_disk_refused_is_recovered(
    home: AgentHome, disk: Disk, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    agent = home.provider(warning_callback=told.append)
    remember(home, 1)
    say(home, 1)
    expect(home, 1)
    disk.error = code
    with caplog.at_level(logging.WARNING):
        for number in (2, 3):
            remember(home, number)
            say(home, number)
        refusals = home.engine.recorder
        assert (refusals.turns, refusals.memories) == (4, 2)
        assert len(told) == 1
        assert "refused" in told[0]
        # While the disk stays full, trying again is nothing to talk about.
        wait_until(lambda: home.engine.tasks.is_running)
        threads_ran = time.monotonic() + 0.5
        wait_until(lambda: time.monotonic() > threads_ran)
        assert sum("refused" in record.getMessage() for record in caplog.records) == 1
        disk.error = 0
        expect(home, 1, 2, 3)
    assert any("has room again" in record.getMessage() for record in caplog.records)
    remember(home, 4)
    agent.sync_turn("question 4", "answer 4", session_id="s1")
    agent.on_memory_write("add", "memory", "fact 4", metadata={})
    expect(home, 1, 2, 3, 4)
    assert home.stored.themes() == {"marketing"}


def test_what_a_full_journal_refused_is_recovered(home: AgentHome, server: FaultyServer, tmp_path: Path) -> None:
    home.settings["journal_max_mb"] = 1
    remember(home, 1)
    say(home, 1)
    expect(home, 1)
    server.stop()
    agent = home.provider()
    number = 0
    for size in (2000, 100, 1):
        refused = home.engine.recorder.turns
        while home.engine.recorder.turns == refused:
            number += 1
            agent.sync_turn(f"{number} {'filler ' * size}", "", session_id=f"fill {size}")
    # Turns are refused before memories.
    remember(home, 2)
    say(home, 2)
    assert home.engine.recorder.turns == 5
    assert home.engine.recorder.memories == 0
    outage(home)
    server.start()
    wait_until(lambda: home.stored.turns("marketing", "question 2"))
    wait_until(lambda: ("memory", "fact 2") in home.stored.memories("marketing"))
    assert len(home.stored.turns("marketing", "question 2")) == 1
    wait_until(lambda: not home.engine.recorder.waiting)
    home.settle()
    fillers = [text for _, _, text in home.stored.turns("marketing", "filler")]
    assert len(fillers) == len(set(fillers)) == number
