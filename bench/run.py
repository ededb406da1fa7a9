"""Runs the scenarios and keeps what they found, with the machine and the versions they ran on."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Result
from bench.scenarios import fleet, hook_latency, ingest, loss, recall, start
from bench.stage import Stage
from bench.system import our_system, peer_system

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-memory-pgvector-bench"


SCENARIOS = {
    "hooks": ("what a hook costs the agent", hook_latency.run),
    "ingest": ("how fast rows arrive in Postgres, with and without their vector", ingest.run),
    "loss": ("what is acknowledged and never stored", loss.run),
    "start": ("how long initialize() keeps a request waiting", start.run),
    "fleet": ("what a provider per request costs a process", fleet.run),
    "recall": ("what recall finds, how fast, and how that grows", recall.run),
}
"""What each answers, and the code that does."""


def run(size: str, only: Sequence[str], out: Path) -> Result:
    """Run the scenarios; one that fails is reported and the others go on."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with Stage(Path(folder), (our_system(), peer_system(CACHE))) as stage:
            result = Result(about={
                "size": size,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": machine(),
                "load_at_start": round(os.getloadavg()[0], 2),
                "python": platform.python_version(),
                "server": stage.server_version(),
                "commit": commit(),
                "versions": {system.name: system.versions for system in stage.systems},
            })  # fmt: skip
            result.about["seconds"] = 0
            result.save(out)
            for name in only or SCENARIOS:
                about, scenario = SCENARIOS[name]
                print(f"== {name}: {about}", flush=True)
                before = time.monotonic()
                try:
                    scenario(stage, result, size == "full")
                except Exception as error:
                    traceback.print_exc()
                    result.problems.append(f"{name}: {type(error).__name__}: {error}")
                print(f"   {time.monotonic() - before:.0f} s", flush=True)
                result.about["seconds"] = round(time.monotonic() - began)
                result.save(out)
    return result


def machine() -> str:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} × {model}, {gigabytes:.0f} GB"


def commit() -> str:
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return shown.stdout.strip() or "unknown"
