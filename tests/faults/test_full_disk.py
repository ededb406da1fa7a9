"""A home on a disk that is really full: what is refused is counted and told, what is accepted arrives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from testing.agent import PREAMBLE, AgentHome

MOUNTED = ["unshare", "--mount"]
ON_A_SMALL_DISK = """
import logging, subprocess, time
from pathlib import Path
logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", home], check=True)
filler = Path(home, "filler")
def fill():
    with filler.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
def write(agent, first, last):
    for number in range(first, last):
        agent.sync_turn(f"question {number} " + "x" * 3000, f"answer {number}", session_id="s1")
def finish(agent):
    engine = engine_for(agent._home, settings)[0]
    end = time.monotonic() + 120
    while (engine.recorder.waiting or not engine.writer.flush(Deadline.after(1))) and time.monotonic() < end:
        engine.tasks.wake()
        time.sleep(0.1)
    say(json.dumps({"refused": engine.recorder.turns, "last": engine.journal.appended}))
    os._exit(0)
"""


def on_a_small_disk(home: AgentHome, source: str) -> tuple[dict[str, Any], str]:
    """What a process on this home says, whose disk holds one mebibyte and is gone with the process."""
    command = MOUNTED if os.geteuid() == 0 else [*MOUNTED, "--user", "--map-root-user"]
    command = [*command, sys.executable, "-c", PREAMBLE + ON_A_SMALL_DISK + source, str(home.path)]
    done = subprocess.run(
        [*command, json.dumps(home.configuration)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told, done.stderr


def numbers(home: AgentHome) -> list[int]:
    return sorted(int(text.split()[1]) for role, _, text in home.stored.turns("marketing") if role == "user")


@pytest.mark.parametrize("begin", ["agent = provider('marketing')\nfill()", "fill()\nagent = provider('marketing')"])
def test_a_full_disk_refuses_loudly_and_takes_again_when_there_is_room(home: AgentHome, begin: str) -> None:
    source = begin + "\nwrite(agent, 1, 6)\nfiller.unlink()\nwrite(agent, 6, 11)\nfinish(agent)\n"
    told, log = on_a_small_disk(home, source)
    assert numbers(home) == list(range(1, 11)), log
    assert told["refused"] > 0
    assert log.count("memory writes are being refused") == 1


def test_a_disk_that_the_journal_fills_takes_again_when_what_it_held_has_arrived(home: AgentHome) -> None:
    """Drained files are kept for a quarter of an hour, but not on a disk that has no room for what comes."""
    source = """
from hermes_memory_pgvector.writer import writer
run, writer.RECHECK_SECONDS, writer.IDLE_SECONDS = writer.Writer.run_once, 0.2, 0.1
writer.Writer.run_once = lambda self: 0.05
agent = provider("marketing")
engine = engine_for(agent._home, settings)[0]
engine.journal._retention._least_seconds = 0.2
write(agent, 0, 400)
assert engine.recorder.turns
writer.Writer.run_once = run
finish(agent)
"""
    told, log = on_a_small_disk(home, source)
    assert numbers(home) == list(range(400)), log
    assert 0 < told["refused"] < 800
