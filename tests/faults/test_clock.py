"""The wall clock may jump: nothing is lost, doubled or put in the wrong order."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testing.agent import AgentHome
from testing.faulty import heard
from testing.postgres import Database

HOUR = 3600


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the wall clock; the monotonic clock goes on as if nothing had happened."""
    real, real_ns = time.time, time.time_ns
    moved = [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + moved[0])
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(moved[0] * 1e9))

    def by(seconds: float) -> None:
        moved[0] += seconds

    return by


@pytest.mark.parametrize("seconds", [-HOUR, HOUR, -24 * 365 * HOUR, 24 * 365 * HOUR])
def test_memory_operations_keep_their_order_across_a_step(
    home: AgentHome, step: Callable[[float], None], seconds: float
) -> None:
    home.settings["bulk_sync_on_init"] = False
    agent = home.provider()
    agent.on_memory_write("add", "memory", "fact 1", metadata={})
    step(seconds)
    agent.on_memory_write("replace", "memory", "fact 2", metadata={"old_text": "fact 1"})
    agent.on_memory_write("add", "memory", "fact 3", metadata={})
    home.provider().on_memory_write("remove", "memory", "", metadata={"old_text": "fact 3"})
    home.settle()
    assert heard(home)[1] == [2]


@pytest.mark.parametrize("seconds", [-HOUR, HOUR])
def test_turns_are_stored_once_across_a_step(home: AgentHome, step: Callable[[float], None], seconds: float) -> None:
    agent = home.provider()
    messages = []
    for number in range(1, 5):
        messages += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number}"},
        ]
        agent.sync_turn(f"question {number}", f"answer {number}", session_id="s1", messages=list(messages))
        if number == 2:
            step(seconds)
    agent.on_session_end(messages)
    home.settle()
    assert heard(home)[0] == [1, 2, 3, 4]


@pytest.mark.parametrize("seconds", [-HOUR, HOUR])
def test_an_undo_after_a_step_takes_back_the_last_turn(
    home: AgentHome, step: Callable[[float], None], seconds: float
) -> None:
    agent = home.provider()
    agent.sync_turn("question 1", "answer 1", session_id="s1")
    agent.sync_turn("question 2", "answer 2", session_id="s1")
    step(seconds)
    agent.on_session_switch("s1", rewound=True)
    home.settle()
    assert heard(home)[0] == [1]


def test_what_is_said_after_the_machine_has_slept_comes_after_what_other_homes_said_meanwhile(
    home: AgentHome, database: Database, step: Callable[[float], None], tmp_path: Path
) -> None:
    """While a machine sleeps its monotonic clock stands still; the wall clock does not."""
    home.settings["bulk_sync_on_init"] = False
    laptop = home.provider()
    laptop.on_memory_write("add", "memory", "said before the night", metadata={})
    step(8 * HOUR)
    elsewhere = AgentHome.create(tmp_path / "elsewhere", database, **home.settings)
    elsewhere.provider().on_memory_write("add", "memory", "said in the night", metadata={})
    laptop.on_memory_write("add", "memory", "said after the night", metadata={})
    home.settle()
    elsewhere.settle()
    order = [content for (content,) in home.stored.rows("SELECT content FROM memory_operations ORDER BY order_us")]
    assert order == ["said before the night", "said in the night", "said after the night"]
