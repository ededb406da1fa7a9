"""A process that stands still holds nobody else up, and loses nothing when it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from testing.agent import AgentHome
from testing.faulty import expect
from testing.proxy import Proxy
from testing.waiting import wait_until

IMPATIENT = """
from hermes_memory_pgvector.postgres import pool
pool.PAUSE_SECONDS = 1.0
"""
KEEPS = """
from hermes_memory_pgvector.writer.writer import Writer
drain = Writer.run_once
Writer.run_once = lambda self: drain(self) if os.path.exists(home + "/go") else 0.05
"""
WAITS = """
agent = provider("marketing")
for number in arguments:
    agent.sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    agent.on_memory_write("add", "memory", f"fact {number}", {})
    say(number)
import threading
threading.Event().wait()
"""


@contextmanager
def killed(child: subprocess.Popen[str]) -> Iterator[None]:
    """A process that ends with the block, whatever becomes of the test."""
    try:
        yield
    finally:
        child.kill()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A process that does nothing while the block runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_process_frozen_inside_a_transaction_lets_other_homes_go_on(
    far_home: AgentHome, home: AgentHome, proxy: Proxy
) -> None:
    """The server ends the frozen process's transaction; when it thaws, it stores again what was undone."""
    proxy.hold_answer_to = b"'hermes-memory:'"
    with far_home.start(IMPATIENT + WAITS, "1", "2") as child, killed(child):
        assert child.stdout is not None
        assert [child.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
        assert proxy.held.wait(30)
        with frozen(child.pid):
            proxy.hold_answer_to = None
            agent = home.provider("marketing")
            agent.sync_turn("question 3", "answer 3", session_id="s1")
            agent.on_memory_write("add", "memory", "fact 3", metadata={})
            home.settle(60)
        expect(home, 1, 2, 3)


def test_the_journal_of_a_frozen_process_is_not_adopted(home: AgentHome) -> None:
    """Its lock is held for as long as it lives, however long it stands still; then it delivers by itself."""
    with home.start(KEEPS + WAITS, "1", "2") as child, killed(child):
        assert child.stdout is not None
        assert [child.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
        with frozen(child.pid):
            agent = home.provider("marketing")
            agent.sync_turn("question 3", "answer 3", session_id="s1")
            agent.on_memory_write("add", "memory", "fact 3", metadata={})
            home.settle()
            writer = home.engine.writer
            for _ in range(3):
                # However often it looks, a journal whose process lives is not its own.
                writer._visited_at = writer._checked_at = 0.0
                writer.wake()
                wait_until(lambda: writer._visited_at and writer._checked_at)
            assert [text for _, text in home.stored.memories("marketing")] == ["fact 3"]
        (home.path / "go").touch()
        expect(home, 1, 2, 3)
    agent.sync_turn("question 4", "answer 4", session_id="s1")
    agent.on_memory_write("add", "memory", "fact 4", metadata={})
    expect(home, 1, 2, 3, 4)
