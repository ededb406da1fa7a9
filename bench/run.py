"""Runs the scenarios and keeps what they found, with the machine and the versions they ran on."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Result
from bench.scenarios import (
    care,
    fleet,
    gateway,
    hook_latency,
    imports,
    ingest,
    loss,
    recall,
    reembed,
    start,
    store_rate,
    transfer,
)
from bench.stage import Stage
from bench.system import our_system, peer_system

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-memory-pgvector-bench"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One question and the code that answers it."""

    name: str
    about: str
    run: Callable[[Stage, Result, bool], None]


SCENARIOS = (
    Scenario("hooks", "what a hook costs the agent", hook_latency.run),
    Scenario("ingest", "how fast rows arrive in Postgres, with and without their vector", ingest.run),
    Scenario("loss", "what is acknowledged and never stored", loss.run),
    Scenario("start", "how long initialize() keeps a request waiting", start.run),
    Scenario("fleet", "what a provider per request costs a process", fleet.run),
    Scenario("gateway", "the same inside the real hermes-agent", gateway.run),
    Scenario("import", "how fast MEMORY.md is taken over", imports.run),
    Scenario("transfer", "how fast a past moves in and everything moves out", transfer.run),
    Scenario("store", "what storing turns costs Postgres", store_rate.run),
    Scenario("care", "how long an operator waits for list, show, themes and history", care.run),
    Scenario("reembed", "how fast reembed makes new vectors, and how long the switch takes", reembed.run),
    Scenario("recall", "what recall finds, how fast, and how that grows", recall.run),
)


def run(
    size: str, only: Sequence[str], out: Path, cells: Sequence[tuple[int, int]] = (), *, is_alone: bool = False
) -> Result:
    """Run the scenarios; one that fails is reported and the others go on."""
    chosen = [scenario for scenario in SCENARIOS if not only or scenario.name in only]
    systems = (our_system(),) if is_alone else (our_system(), peer_system(CACHE))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with Stage(Path(folder), systems) as stage:
            result = Result(about={
                "size": size,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": _machine(),
                "load_at_start": round(os.getloadavg()[0], 2),
                "python": platform.python_version(),
                "server": stage.server_version(),
                "commit": commit(),
                "versions": {system.name: system.versions for system in systems},
            })  # fmt: skip
            result.about["seconds"] = 0
            result.save(out)
            for scenario in chosen:
                print(f"== {scenario.name}: {scenario.about}", flush=True)
                before = time.monotonic()
                try:
                    if scenario.name == "recall":
                        recall.run(stage, result, size == "full", cells)
                    else:
                        scenario.run(stage, result, size == "full")
                except Exception as error:
                    traceback.print_exc()
                    result.problems.append(f"{scenario.name}: {type(error).__name__}: {error}")
                print(f"   {time.monotonic() - before:.0f} s", flush=True)
                result.about["seconds"] = round(time.monotonic() - began)
                result.save(out)
    return result


def _machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} × {model}, {gigabytes:.0f} GB"


def commit() -> str:
    # A copy of the repository cannot be asked.
    if "BENCH_COMMIT" in os.environ:
        return os.environ["BENCH_COMMIT"]
    shown = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return shown.stdout.strip() or "unknown"
