"""Containers that share one home: their pids say nothing to each other, and none takes what another one holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from hermes_memory_pgvector.runtime import processes
from testing.agent import PREAMBLE, AgentHome
from testing.faulty import expect
from testing.waiting import wait_until

# Only Linux has namespaces of pids.
pytestmark = pytest.mark.linux

# A namespace of pids without a /proc of its own, as the poorest of containers has it.
ISOLATED = ["unshare", "--pid", "--fork", "--kill-child=KILL"]
WRITES = """
assert os.getpid() == 1
agent = provider("marketing")
for number in arguments:
    agent.sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    agent.on_memory_write("add", "memory", f"fact {number}", {})
say("written")
sys.stdin.readline()
"""
KEEPS = "from hermes_memory_pgvector.writer.writer import Writer\nWriter.run_once = lambda self: 60.0\n"


def start(home: AgentHome, source: str, *arguments: str) -> subprocess.Popen[str]:
    command = ISOLATED if os.geteuid() == 0 else [*ISOLATED, "--user", "--map-root-user"]
    command = [*command, sys.executable, "-c", PREAMBLE + source, str(home.path), json.dumps(home.configuration)]
    return subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait(30)


def test_two_processes_that_are_both_pid_1_share_a_journal_folder(home: AgentHome) -> None:
    """Neither takes the other for dead, also not one that keeps its writes to itself; when it dies, it is adopted."""
    with ExitStack() as stack:
        keeper = stack.enter_context(start(home, KEEPS + WRITES, "1", "2"))
        assert said(keeper) == "written"
        writer = stack.enter_context(start(home, WRITES, "3", "4"))
        assert said(writer) == "written"
        home.provider()
        expect(home, 3, 4)
        home.engine.writer._visited_at = 0.0
        home.engine.writer.wake()
        wait_until(lambda: home.engine.writer._visited_at)
        expect(home, 3, 4)
        folder = home.engine.journal.directory
        pids = wait_until(lambda: [each.pid for each in processes.read_all(folder)].count(1) == 2 or None)
        assert pids
        end(keeper)
        expect(home, 1, 2, 3, 4)
        end(writer)
