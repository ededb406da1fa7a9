"""What the provider adds to a request of the real gateway: the same host with and without it, in turns."""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import certifi

from bench import report
from bench.measure import percentile
from bench.run import commit, machine
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.ops.migration import wanted_model
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres
from testing.hermes_home import HermesHome, model_section
from testing.hermes_servers import Gateway
from testing.llm_server import ScriptedLLM
from testing.postgres import new_database
from testing.waiting import wait_until

AT_ONCE, THEMES = 16, 50
MODEL_SECONDS = 0.5
"""How long the scripted language model thinks."""
MOST_ADDED = 0.05
MANY_AT_ONCE = {"gateway": {"api_server": {"max_concurrent_runs": 0}}}
BEGIN, END = "<!-- gateway: begin (written by python -m bench gateway) -->", "<!-- gateway: end -->"


@dataclass(slots=True)
class Rounds:
    """The median and the 95th percentile of each round, in milliseconds, with the provider and without."""

    requests: int
    stored: int = 0
    p50: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    p95: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    @property
    def added(self) -> float:
        """What the provider adds to a request: the median of the rounds' shares."""
        return statistics.median(ours / bare - 1 for ours, bare in zip(*self.p50, strict=True))

    @property
    def is_noise(self) -> bool:
        """Whether rounds without the provider differ as much from one another."""
        return statistics.median(self.p50[0]) <= max(self.p50[1])

    @property
    def is_met(self) -> bool:
        """Whether the provider adds little enough, and nothing was lost."""
        return self.stored == self.wanted and (self.added <= MOST_ADDED or self.is_noise)

    @property
    def wanted(self) -> int:
        """The rows of all requests, with those of the warm-up."""
        return 2 * (AT_ONCE + self.requests * len(self.p50[0]))

    def table(self) -> str:
        """All rounds, and the verdict."""
        lines = [
            "| round | p50 with | p50 without | added | p95 with | p95 without |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for number, (ours, bare, ours95, bare95) in enumerate(zip(*self.p50, *self.p95, strict=True), start=1):
            lines.append(
                f"| {number} | {ours:.0f} ms | {bare:.0f} ms | {100 * (ours / bare - 1):+.1f} % "
                f"| {ours95:.0f} ms | {bare95:.0f} ms |"
            )
        low, high = min(self.p50[1]), max(self.p50[1])
        verdict = (
            f"The provider adds {100 * self.added:+.1f} % to the p50 (median of {len(self.p50[0])} rounds); rounds "
            f"without it spread over {100 * (high / low - 1):.1f} %. The target, at most {100 * MOST_ADDED:.0f} % or "
            f"within that spread, is {'met' if self.is_met else '**missed**'}. Rows stored: {self.stored:,} of "
            f"{self.wanted:,}."
        )
        return "\n".join([*lines, "", verdict])


def measure(rounds: int, requests: int, page: Path | None) -> int:
    """Measure and print; 1 when the target is missed."""
    began, load_before = time.monotonic(), os.getloadavg()[0]
    found = Rounds(requests)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-gateway-")))
        llm = stack.enter_context(ScriptedLLM(delay_seconds=MODEL_SECONDS))
        server = EmbeddedPostgres(folder / "postgres")
        stack.callback(lambda: server.stop(Deadline.after(60)))
        database = stack.enter_context(new_database(server.ensure_running(Deadline.after(120))))
        ours, bare = (
            HermesHome.prepare(
                folder / name, llm, database, settings={}, sections=MANY_AT_ONCE,
                # Tests spare the host the reading of all authorities; here it does what it does everywhere.
                environment={"SSL_CERT_FILE": certifi.where()},
            )
            for name in ("with", "without")
        )  # fmt: skip
        # The local model, as everybody has it who configures nothing.
        model = wanted_model(ours.path, load(ours.path).settings).spec
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=model)
        bare.configure(model=model_section(llm), **MANY_AT_ONCE)
        gateways = [stack.enter_context(home.gateway()) for home in (ours, bare)]
        for gateway in gateways:
            _ask(gateway, range(AT_ONCE))
        for number in range(rounds):
            numbers = range(AT_ONCE + number * requests, AT_ONCE + (number + 1) * requests)
            # Whoever comes second in one round is first in the next.
            for place in ((0, 1), (1, 0))[number % 2]:
                times = _ask(gateways[place], numbers)
                found.p50[place].append(1000 * percentile(times, 0.5))
                found.p95[place].append(1000 * percentile(times, 0.95))
            said = f"{found.p50[0][-1]:.0f} ms with, {found.p50[1][-1]:.0f} ms without"
            print(f"round {number + 1} of {rounds}: {said}", flush=True)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: ours.stored.count("conversations") >= found.wanted, seconds=60)
        found.stored = ours.stored.count("conversations")
    about = (
        f"Run of {datetime.now(UTC).isoformat(timespec='seconds')}, commit `{commit()}`, "
        f"{time.monotonic() - began:.0f} s, load {load_before:.1f} at the start; "
        f"{machine()}; hermes-agent {metadata.version('hermes-agent')}; {requests} requests a round, {AT_ONCE} at once."
    )
    shown = f"{about}\n\n{found.table()}"
    print(f"\n{shown}")
    if page is not None:
        report.write_between(page, BEGIN, END, shown)
    return int(not found.is_met)


def _ask(gateway: Gateway, numbers: range) -> list[float]:
    def ask(number: int) -> float:
        started = time.perf_counter()
        question = f"Request {number} asks about the stock of shelf {number}, hall {number * 7}."
        gateway.chat(question, theme=f"team-{number % THEMES}")
        return time.perf_counter() - started

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(ask, numbers))
