"""What the provider adds to a request of the real gateway: the same host with and without it, in turns.

    python -m bench.gateway [--requests 1000] [--at-once 16] [--themes 50]

Two gateways of hermes-agent run side by side over a scripted language model, one with the provider and one without any.
They get portions of the same requests in turns, so that whatever else the machine does concerns both.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import certifi

from bench.measure import percentile
from bench.processes import cpu_seconds, resident_mb
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres
from hermes_memory_pgvector.setup.database import wanted_model
from testing.hermes_home import HermesHome, model_section
from testing.hermes_servers import Gateway
from testing.llm_server import ScriptedLLM
from testing.postgres import new_database
from testing.waiting import wait_until

PORTION = 32
WARM_UP = 16
SETTLED = 200
"""From this request on the process should not grow."""
MANY_AT_ONCE = {"gateway": {"api_server": {"max_concurrent_runs": 0}}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print both distributions and the rows that were stored."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--themes", type=int, default=50)
    args = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-gateway-")))
        llm = stack.enter_context(ScriptedLLM())
        server = EmbeddedPostgres(folder / "postgres")
        info = server.ensure_running(Deadline.after(120))
        stack.callback(lambda: server.stop(Deadline.after(60)))
        database = stack.enter_context(new_database(info))
        homes = [
            HermesHome.prepare(
                folder / name, llm, database, settings={}, sections=MANY_AT_ONCE,
                # Tests spare the host the reading of all authorities; here it does what it does everywhere.
                environment={"SSL_CERT_FILE": certifi.where()},
            )
            for name in ("with", "without")
        ]  # fmt: skip
        # The local model, as everybody has it who configures nothing.
        model = wanted_model(homes[0].path, load(homes[0].path).settings).spec
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=model)
        homes[1].configure(model=model_section(llm), **MANY_AT_ONCE)
        gateways = [stack.enter_context(home.gateway()) for home in homes]
        pids = [each.process.pid for each in gateways]
        times: list[list[float]] = [[], []]
        for each in gateways:
            _ask(each, range(WARM_UP), args.themes, args.at_once)
        spent, sizes = [-cpu_seconds(pid) for pid in pids], [0.0, 0.0]
        for start in range(WARM_UP, WARM_UP + args.requests, PORTION):
            numbers = range(start, min(start + PORTION, WARM_UP + args.requests))
            # Whoever comes second in one turn is first in the next.
            order = (0, 1) if start // PORTION % 2 else (1, 0)
            for place in order:
                times[place] += _ask(gateways[place], numbers, args.themes, args.at_once)
                if len(times[place]) <= SETTLED:
                    sizes[place] = resident_mb(pids[place])
        spent = [before + cpu_seconds(pid) for before, pid in zip(spent, pids, strict=True)]
        grown = [resident_mb(pid) - before for before, pid in zip(sizes, pids, strict=True)]
        wanted = 2 * (args.requests + WARM_UP)
        wait_until(lambda: homes[0].stored.count("conversations") >= wanted, seconds=60)
        stored = homes[0].stored.count("conversations")
    sys.stdout.write(f"{args.requests} requests each, {args.at_once} at once, {args.themes} themes\n")
    names = ("with the provider", "without a provider")
    for name, taken, cpu, more in zip(names, times, spent, grown, strict=True):
        p50, p95 = (1000 * percentile(taken, share) for share in (0.5, 0.95))
        sys.stdout.write(
            f"{name:<20} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   CPU {1000 * cpu / args.requests:5.1f} ms a request   "
            f"{more:+.1f} MB since request {SETTLED}\n"
        )
    added = percentile(times[0], 0.5) / percentile(times[1], 0.5) - 1
    sys.stdout.write(f"added at p50: {100 * added:+.1f} %; rows stored: {stored} of {wanted}\n")
    return 0 if stored == wanted else 1


def _ask(gateway: Gateway, numbers: range, themes: int, at_once: int) -> list[float]:
    def ask(number: int) -> float:
        started = time.perf_counter()
        gateway.chat(
            f"Request {number} asks about the stock of shelf {number}, hall {number * 7}.",
            theme=f"team-{number % themes}",
        )
        return time.perf_counter() - started

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(ask, numbers))


if __name__ == "__main__":
    sys.exit(main())
