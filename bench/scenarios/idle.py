"""What processes cost that have nothing to do: CPU time and memory of several, a while after each stored one turn."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

from bench.measure import Metric, Result, percentile
from bench.stage import Stage
from bench.system import System


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """All processes share a home and a database, as those of one agent do."""
    count, settle, seconds = (20, 120.0, 180.0) if is_full else (4, 15.0, 30.0)
    found = stage.each(1, partial(_round, stage, count, settle, seconds))
    for name, rounds in found.items():
        unit = "MB" if name.startswith("memory") else "% of a core"
        result.metrics.append(Metric.of("idle", f"{name}, {count} processes at rest", unit, "lower", rounds))


def _round(stage: Stage, count: int, settle: float, seconds: float, system: System) -> dict[str, float]:
    with stage.seat(system) as seat, ExitStack() as running:
        children = [running.enter_context(seat.child(f"process-{number}")) for number in range(count)]
        for number, child in enumerate(children):
            child.ask("start", theme=f"idle-{number}")
            child.ask("turns", tag=f"idle-{number}", count=1)
        time.sleep(settle)
        before = [child.ask("stats") for child in children]
        time.sleep(seconds)
        after = [child.ask("stats") for child in children]
    used = sum(late["cpu_seconds"] - early["cpu_seconds"] for early, late in zip(before, after, strict=True))
    return {
        "CPU together": 100 * used / seconds,
        "memory of one": percentile([each["rss_mb"] for each in after], 0.5),
    }
