"""Upkeep: each task runs when it is due, all when somebody asks, and an idle process does little."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from hermes_memory_pgvector.errors import DatabaseUnavailable
from hermes_memory_pgvector.runtime import tasks
from hermes_memory_pgvector.runtime.tasks import Tasks, WatchConfiguration


class Time:
    """A clock that goes on when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(tasks, "time", made)
    return made


def test_a_task_runs_when_it_is_due_and_whenever_somebody_asks(clock: Time) -> None:
    ran: Counter[str] = Counter()

    def often() -> float:
        ran["often"] += 1
        return 2.0

    def seldom() -> float:
        ran["seldom"] += 1
        return 300.0

    upkeep = Tasks({"often": often, "seldom": seldom, "a little later": lambda: 2.4})
    assert upkeep.run_once() == 2.0
    for _ in range(5):
        clock.now += 2.0
        assert upkeep.run_once() == 2.0
    assert ran == {"often": 6, "seldom": 1}
    upkeep.wake()
    upkeep.run_once()
    assert ran == {"often": 7, "seldom": 2}
    clock.now += 300.0
    assert upkeep.run_once() == tasks.IDLE_SECONDS, "nobody has asked for a while"
    assert ran == {"often": 8, "seldom": 3}
    clock.now += tasks.IDLE_SECONDS
    at_work = [0.0, 0.0, 300.0]
    upkeep._tasks = {"vectors": lambda: at_work.pop(0)}
    upkeep._due_at.clear()
    assert [upkeep.run_once(), upkeep.run_once()] == [0.0, 0.0], "whoever has work goes on"
    upkeep._tasks = {"often": often}
    upkeep._due_at.clear()
    upkeep.wake()
    assert upkeep.run_once() == 2.0


def test_a_task_that_fails_is_put_off_also_for_those_who_ask(clock: Time) -> None:
    ran: Counter[str] = Counter()
    is_down = True

    def needs_a_database() -> float:
        ran["database"] += 1
        if is_down:
            raise DatabaseUnavailable("out of reach")
        return 60.0

    def other() -> float:
        ran["other"] += 1
        return 60.0

    upkeep = Tasks({"database": needs_a_database, "other": other})
    pause = upkeep.run_once()
    assert 0 < pause <= 30
    assert upkeep.problems == {"database": "out of reach"}
    upkeep.wake()
    upkeep.run_once()
    assert ran == {"database": 1, "other": 2}, "whoever asks does not knock on a closed door"
    for _ in range(12):
        clock.now += 30.0
        upkeep.run_once()
    assert ran["database"] == 13
    is_down = False
    clock.now += 30.0
    assert upkeep.run_once() <= 60.0
    assert upkeep.problems == {}


def test_the_configuration_is_read_when_its_files_change_and_now_and_then(
    clock: Time, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reads: list[float] = []
    task = WatchConfiguration(tmp_path, lambda: reads.append(clock.now))

    def watch(seconds: float) -> int:
        before = len(reads)
        for _ in range(int(seconds / 2)):
            clock.now += 2
            assert task.run() == tasks.CONFIGURATION_SECONDS
        return len(reads) - before

    watch(60)
    assert watch(4 * tasks.REREAD_SECONDS) == 4, "files that stay as they are are not read every time"
    for name in ("config.yaml", ".env"):
        (tmp_path / name).write_text("x", encoding="utf-8")
        assert watch(2) == 1, name
        assert watch(6) == 3, "a file that has just changed may be half written"
        watch(60)
        os.utime(tmp_path / name, ns=(1, 1))
        assert watch(2) == 1, name
        watch(60)
