"""What processes cost that have nothing to do: the CPU time of many on one home, some minutes after their last write.

    python -m bench.idle [--processes 50] [--settle 120] [--seconds 60] [--windows 3]

Each is made as the host makes it, stores one turn and is silent from then on. They are forked from one that has loaded
everything, so that starting them takes no minutes; what they do afterwards is what any process does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.measure import percentile
from bench.processes import cpu_seconds
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import engine  # noqa: F401 - loaded before the processes are forked
from hermes_memory_pgvector.engine.self_migration import SelfMigration
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from testing.stored import Stored
from testing.waiting import wait_until

THEMES = 4
SPREAD_SECONDS = 0.5
"""Between two starts: the processes of a fleet do not all wake at the same moment."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print every window and the middle one."""
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--settle", type=float, default=120, help="seconds between the last write and the first window")
    parser.add_argument("--seconds", type=float, default=60, help="length of a window")
    parser.add_argument("--windows", type=int, default=3)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-idle-") as folder, _server(Path(folder)) as stored:
        shares = []
        with _processes(Path(folder), args.processes, stored) as pids:
            time.sleep(args.settle)
            for _ in range(args.windows):
                before, began = sum(map(cpu_seconds, pids)), time.monotonic()
                time.sleep(args.seconds)
                shares.append((sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began))
                sys.stdout.write(f"{100 * shares[-1]:.2f} % of a core, {stored.connections()} connections\n")
                sys.stdout.flush()
    sys.stdout.write(
        f"{args.processes} processes, {args.settle:.0f} s after their last write: "
        f"{100 * percentile(shares, 0.5):.2f} % of a core together, "
        f"the middle of {args.windows} windows of {args.seconds:.0f} s\n"
    )
    return 0


@contextlib.contextmanager
def _server(home: Path) -> Iterator[Stored]:
    """The home's own database, as the first process would make it."""
    server = EmbeddedPostgres(data_folder(home))
    info = server.ensure_running(Deadline.after(120))
    try:
        assert SelfMigration(home, is_ours=True).run()
        yield Stored(info.owner_dsn)
    finally:
        server.stop(Deadline.after(60))


@contextlib.contextmanager
def _processes(home: Path, count: int, stored: Stored) -> Iterator[list[int]]:
    pids: list[int] = []
    try:
        for number in range(count):
            pid = os.fork()
            if not pid:
                _say_one_thing(home, number)
            pids.append(pid)
            time.sleep(SPREAD_SECONDS)
        wait_until(lambda: stored.count("conversations") == 2 * count, seconds=120)
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _say_one_thing(home: Path, number: int) -> None:
    """A process of its own from here on: one turn, then silence."""
    agent = PgvectorMemoryProvider()
    session = f"session-{number}"
    agent.initialize(
        session, hermes_home=str(home), platform="api_server", agent_context="primary",
        gateway_session_key=f"team-{number % THEMES}", agent_identity="default", agent_workspace="hermes",
    )  # fmt: skip
    agent.sync_turn(
        f"Process {number} asks where the pilot boat is moored tonight.",
        f"Process {number} is told that it is moored at the northern quay.",
        session_id=session,
    )
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
