"""The end of a process, and moments in which no thread can be started: what a hook returned for is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from testing.agent import PREAMBLE, AgentHome
from testing.cases import some_of
from testing.faulty import expect, heard
from testing.interpreters import interpreters, other_environment
from testing.waiting import wait_until

# Registered before the plugin is imported, as a host does: it runs after the plugin's own exit handler.
LATE = """
import atexit
def late():
    agent = made[0]
    agent.sync_turn("question 2", "answer 2", session_id="s1")
    agent.on_memory_write("add", "memory", "fact 2", {})
    agent.shutdown()
atexit.register(late)
"""
WRITES_AND_LEAVES = """
made = [provider("marketing")]
for number in arguments:
    made[0].sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    made[0].on_memory_write("add", "memory", f"fact {number}", {})
"""
NO_THREADS = "import threading\nthreading.stack_size(1 << 46)\n"
THREADS_AGAIN = "threading.stack_size(0)\n"


def run(home: AgentHome, source: str, *arguments: str, python: str = sys.executable) -> str:
    """What a process on this home says on its standard error, where the log's warnings go."""
    command = [python, "-c", source, str(home.path), json.dumps(home.configuration), *arguments]
    environment = {**os.environ, **other_environment(python)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)
@pytest.mark.parametrize(
    "before", some_of({"after earlier writes": ["1"], "as the first write": []}, "as the first write")
)
def test_a_hook_that_runs_after_our_exit_handler_is_kept(home: AgentHome, before: list[str], python: str) -> None:
    said = run(home, LATE + PREAMBLE + WRITES_AND_LEAVES, *before, python=python)
    assert "refused" not in said
    home.provider()
    expect(home, *map(int, before), 2)


def test_what_is_said_after_our_exit_handler_arrives_by_itself(home: AgentHome) -> None:
    run(home, LATE + PREAMBLE + WRITES_AND_LEAVES, "1")
    assert heard(home) == ([1, 2], [1, 2])


def test_nobody_waits_for_vectors_that_nobody_makes_any_more(home: AgentHome) -> None:
    """A host that ends its agents after our exit handler would wait for as long as an exit may take."""
    home.settings["embed_on_write"] = True
    agent = home.provider()
    agent.sync_turn("question 1", "answer 1", session_id="s1")
    engine = home.engine
    engine.rest(Deadline.after(0.5))
    agent.sync_turn("question 2", "answer 2", session_id="s1")
    assert not engine.flush(Deadline.after(3600))
    assert [text for role, _, text in home.stored.turns("marketing") if role == "user"] == ["question 1", "question 2"]


def test_a_process_that_said_nothing_leaves_no_journal(home: AgentHome) -> None:
    run(home, PREAMBLE + WRITES_AND_LEAVES)
    assert list((home.path / "pgvector" / "journal").iterdir()) == []


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)
def test_writes_made_while_no_thread_can_be_started_are_kept(home: AgentHome, python: str) -> None:
    source = NO_THREADS + PREAMBLE + WRITES_AND_LEAVES + "os._exit(0)"
    said = run(home, source, *map(str, range(1, 6)), python=python)
    assert said.count("no thread can be started") == 1
    home.provider()
    expect(home, *range(1, 6))


def test_writes_arrive_by_themselves_once_threads_can_be_started_again(home: AgentHome) -> None:
    source = (
        NO_THREADS
        + PREAMBLE
        + WRITES_AND_LEAVES
        + THREADS_AGAIN
        + """
made[0].sync_turn("question 9", "answer 9", session_id="s1")
made[0].on_memory_write("add", "memory", "fact 9", {})
import time
while not engine_for(made[0]._home, settings)[0].writer.flush(Deadline.after(1)):
    pass
os._exit(0)
"""
    )
    said = run(home, source, "1", "2")
    assert "threads can be started again" in said
    assert heard(home) == ([1, 2, 9], [1, 2, 9])


def test_connections_are_made_again_once_threads_can_be_started(home: AgentHome) -> None:
    """The threads of the process run, but none can be started to connect in: the pool must not wait for it for ever."""
    source = (
        PREAMBLE
        + NO_THREADS
        + THREADS_AGAIN
        + """
made = [provider("marketing")]
engine = engine_for(made[0]._home, settings)[0]
threading.stack_size(1 << 46)
for attempt in range(20):
    made[0].prefetch("where does the money go?")
made[0].sync_turn("question 1", "answer 1", session_id="s1")
made[0].on_memory_write("add", "memory", "fact 1", {})
threading.stack_size(0)
while not engine.writer.flush(Deadline.after(1)):
    pass
os._exit(0)
"""
    )
    run(home, source)
    assert heard(home) == ([1], [1])


def test_a_changed_configuration_while_no_thread_can_be_started_costs_no_write(home: AgentHome) -> None:
    source = (
        PREAMBLE
        + """
import threading
made = [provider("marketing")]
def write(number):
    made[0].sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    made[0].on_memory_write("add", "memory", f"fact {number}", {})
write(1)
threading.stack_size(1 << 46)
settings["prefetch_limit"] = 7
made[0] = provider("marketing")
write(2)
threading.stack_size(0)
write(3)
os._exit(0)
"""
    )
    run(home, source)
    home.provider()
    wait_until(lambda: heard(home) == ([1, 2, 3], [1, 2, 3]))
