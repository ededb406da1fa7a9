"""The walk through the rooms: a turn, a question and a MEMORY.md edit, traced in the real provider.

Import-linter sees who imports whom; a call can still go upward through an injected function. Here every call from one
room into another is recorded, thread by thread.
"""

from __future__ import annotations

import sys
import threading
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.waiting import wait_until

PACKAGE = str(resources.files("hermes_memory_pgvector"))
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
QUESTION = "What is the budget of the spring campaign?"
ANSWER = "The spring campaign has a budget of forty thousand euros."
GROUND = {
    "errors", "deadline", "values", "process", "breaker", "service", "clock", "files", "fork", "hook_guard", "config",
    "text", "meters",
}  # fmt: skip
"""What every room may use, at any time."""
EVENTS = {
    ("hook_guard", "provider"): "the guard runs the hook that it guards",
    ("service", "journal"): "a thread runs its service",
    ("service", "writer"): "a thread runs its service",
    ("service", "runtime"): "a thread runs its service",
    ("files", "clock"): "the owner of a file says what is written into it",
    ("files", "config"): "the owner of a file says what is written into it",
    ("capture", "mirror"): "the file says what the words of a hook do not",
    ("store", "capture"): "the host's own store is asked what was taken back",
    ("breaker", "runtime"): "a breaker has opened or closed",
    ("breaker", "meters"): "a breaker has opened",
    ("recall", "runtime"): "a question was asked",
    ("journal", "writer"): "a record was appended",
    ("writer", "runtime"): "a batch was stored",
    ("postgres", "runtime"): "the pool needs an address; the engine may have to start the server",
    ("postgres", "store"): "a new connection is admitted if it leads to the database of this home",
    ("postgres", "writer"): "each bucket is asked what the writer wants to know",
    ("store", "writer"): "there is time to read ahead while the server works",
    ("mirror", "runtime"): "the mirror waits until the writer has stored everything",
    ("text", "config"): "a masker asks for the operator's own kinds of secrets",
}
"""The calls that go upward, and why each has to."""


class Tracer:
    """Which rooms each thread enters, and which room calls which."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], str] = {}
        """The first call for each pair of calling and called room."""
        self._first: dict[str, list[str]] = {}
        self._rooms: list[str] = []
        self._pairs: set[tuple[str, str, str]] = set()
        self._home = threading.current_thread().name

    def start_journey(self) -> None:
        """From now on `rooms` and `journey` are about what happens next."""
        self._rooms = []
        self._pairs = set()

    def rooms(self) -> list[str]:
        """The rooms above the ground that this thread has entered on the journey, in the order of first entry."""
        return [room for room in self._rooms if room not in GROUND]

    def journey(self, thread: str) -> set[tuple[str, str]]:
        """(calling room, called room) of a thread on the journey."""
        return {(caller, called) for name, caller, called in list(self._pairs) if name == thread}

    def first_entries(self, thread: str, *rooms: str) -> list[str]:
        """In which order a thread first entered these rooms in its life."""
        return [room for room in self._first.get(thread, ()) if room in rooms]

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        room = room_of(frame) if event == "call" else None
        if room is None or frame.f_code.co_name == "__del__":
            # Nobody calls a finalizer: it runs wherever the interpreter happens to collect.
            return
        thread = threading.current_thread().name
        first = self._first.setdefault(thread, [])
        if room not in first:
            first.append(room)
        if thread == self._home and room not in self._rooms:
            self._rooms.append(room)
        caller = frame.f_back
        while caller is not None and room_of(caller) is None:
            caller = caller.f_back
        above = None if caller is None else room_of(caller)
        if caller is not None and above is not None and above != room:
            self._pairs.add((thread, above, room))
            self.calls.setdefault((above, room), f"{name_of(caller)} calls {name_of(frame)}")


def room_of(frame: FrameType) -> str | None:
    """The room a frame's code lies in; None for code of others."""
    path = frame.f_code.co_filename
    return path[len(PACKAGE) + 1 :].partition("/")[0].removesuffix(".py") if path.startswith(PACKAGE) else None


def name_of(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename[len(PACKAGE) + 1 :]}:{frame.f_code.co_name}"


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    """Traces this thread and those started from now on."""
    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    yield tracer
    sys.setprofile(None)
    threading.setprofile(None)


@pytest.fixture
def agent(tracer: Tracer, agent_home: AgentHome) -> PgvectorMemoryProvider:
    """An agent whose threads have all been at work once."""
    agent = agent_home.provider("marketing")
    agent.sync_turn("Is the office open on Monday?", "Yes, from nine to five.")
    agent_home.settle()
    agent_home.mirror()
    # The embedder is dead: its breaker opens now, not on the journey.
    agent.prefetch(QUESTION)
    tracer.start_journey()
    return agent


def test_a_turn_goes_from_the_provider_through_capture_to_the_journal(
    tracer: Tracer, agent: PgvectorMemoryProvider
) -> None:
    agent.sync_turn(QUESTION, ANSWER, messages=[{"role": "user", "content": QUESTION}])
    assert tracer.rooms() == ["provider", "capture", "runtime", "journal"]


def test_the_writer_takes_it_from_the_journal_to_the_store(
    tracer: Tracer, agent: PgvectorMemoryProvider, agent_home: AgentHome
) -> None:
    agent.sync_turn(QUESTION, ANSWER, messages=[])
    agent_home.settle()
    assert {("writer", "journal"), ("writer", "store")} <= tracer.journey("hermes-pgvector-writer")
    assert not {("writer", "capture"), ("writer", "recall")} & tracer.journey("hermes-pgvector-writer")
    assert tracer.first_entries("hermes-pgvector-writer", "writer", "journal", "store") == [
        "writer",
        "journal",
        "store",
    ]


def test_a_question_goes_from_the_provider_through_recall_to_the_store(
    tracer: Tracer, agent: PgvectorMemoryProvider
) -> None:
    agent.handle_tool_call("recall_conversation", {"query": QUESTION})
    # The engine counts who asks, and the store remembers which model the question has to be embedded with.
    assert [room for room in tracer.rooms() if room not in ("runtime", "postgres", "watchdog")] == [
        "provider",
        "recall",
        "store",
        "embedding",
    ]
    tracer.start_journey()
    agent.prefetch(QUESTION)
    # What the host shows anyway is left out: the engine knows it from the mirror.
    assert [room for room in tracer.rooms() if room not in ("runtime", "mirror", "postgres", "watchdog")] == [
        "provider",
        "recall",
        "store",
        "embedding",
    ]


def test_an_edit_of_a_memory_file_goes_from_the_engine_through_the_mirror_to_the_store(
    tracer: Tracer, agent: PgvectorMemoryProvider, agent_home: AgentHome
) -> None:
    agent_home.write_memories("Launch is 14 March")
    wait_until(lambda: agent_home.engine.mirror.changes_made)
    journey = tracer.journey("hermes-pgvector-tasks")
    assert {("runtime", "mirror"), ("mirror", "store")} <= journey
    assert {called for caller, called in journey if caller == "mirror"} - GROUND <= {"store", "postgres", "runtime"}


def test_no_room_calls_upward_except_for_an_event(
    tracer: Tracer, agent: PgvectorMemoryProvider, agent_home: AgentHome
) -> None:
    agent.on_turn_start(1, QUESTION)
    agent.prefetch(QUESTION)
    agent.sync_turn(QUESTION, ANSWER, messages=[{"role": "user", "content": QUESTION}])
    agent.handle_tool_call("recall_memory", {"query": QUESTION})
    agent.on_memory_write("add", "memory", "Launch is 14 March", {})
    agent.on_session_switch("s1", rewound=True)
    agent.on_session_end([{"role": "user", "content": QUESTION}])
    agent_home.settle()
    agent_home.write_memories("Launch is 21 March")
    wait_until(lambda: agent_home.engine.mirror.changes_made)
    levels = levels_of_rooms()
    upward = {pair: call for pair, call in tracer.calls.items() if levels[pair[0]] >= levels[pair[1]]}
    assert {pair: call for pair, call in upward.items() if pair not in EVENTS} == {}


def levels_of_rooms() -> dict[str, int]:
    """How far down each room lies in the contract of import-linter."""
    contracts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "Rooms")
    return {room.strip(): level for level, line in enumerate(layers) for room in line.split("|")}
