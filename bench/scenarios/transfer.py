"""How fast a past moves in and everything moves out, and in how much memory, ours alone.

The commands as an operator runs them: `import state` of a state.db, `export` of what that stored, and `import jsonl`
into an empty database. No vectors: they follow in the background, as fast as the embedder is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import yaml

from bench.measure import Figure, Metric, Result, Target
from bench.stage import Seat, Stage
from testing.host_state import fill

EXCHANGES = 250
LEAST_MESSAGES = 3000
MEBIBYTE = 1024 * 1024


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Each command once: what it reads is large, and it runs for seconds."""
    sessions = 200 if is_full else 40
    file = stage.folder / "memory.jsonl"
    with stage.seat(stage.systems[0]) as seat, stage.seat(stage.systems[0]) as other:
        messages = fill(seat.home, sessions, EXCHANGES)
        took = {
            "import state": _command(seat, "import", "state"),
            "import state, everything known": _command(seat, "import", "state"),
            "export": _command(seat, "export", "--output", str(file)),
            "import jsonl": _command(other, "import", "jsonl", str(file)),
        }
        for place in (seat, other):
            with place.connect() as connection:
                stored = place.count(connection, "SELECT count(*) FROM conversations")
            if stored != messages:
                raise RuntimeError(f"{stored} of {messages} messages arrived")
    for name, (seconds, peak) in took.items():
        target = Target("at least", LEAST_MESSAGES) if name == "import state" else None
        label = f"{name}, {messages:,} turns"
        rate = Figure.of([messages / seconds])
        result.metrics.append(Metric("transfer", label, "turns/s", "higher", rate, target=target))
        result.metrics.append(
            Metric("transfer", f"{label}: most memory", "MB", "lower", Figure.of([peak]), is_portable=True)
        )


def _command(seat: Seat, *arguments: str) -> tuple[float, float]:
    """How long a command takes, and the most memory it has."""
    config = {"memory": {"pgvector": {"dsn": seat.dsn}}}
    (seat.home / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "hermes_memory_pgvector.cli",
        *arguments,
        "--hermes-home",
        str(seat.home),
        "--json",
    ]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "HOME": str(seat.home)}) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with code {process.returncode}")
    # Linux counts in kilobytes, macOS in bytes.
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / MEBIBYTE
