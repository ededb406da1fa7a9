"""How fast the entries of MEMORY.md arrive in Postgres, from initialize() to the last vector."""

from __future__ import annotations

import os
import time
from functools import partial

from bench.measure import Metric, Result
from bench.stage import Stage, wait_for
from bench.system import System


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Entries per second, the embedder answering after 20 ms."""
    count = 1000 if is_full else 200
    rates = stage.each(3 if is_full else 2, partial(_round, stage, count))["rate"]
    label = f"{count} MEMORY.md entries with vectors, embedder at 20 ms"
    result.metrics.append(Metric.of("import", label, "entries/s", "higher", rates))


def _round(stage: Stage, count: int, system: System) -> dict[str, float]:
    with stage.seat(system) as seat, seat.child() as child, seat.connect() as connection:
        stage.embedder.set(latency=0.02)
        folder = seat.home / "memories"
        folder.mkdir()
        entries = [
            f"Entry {number:05d}: service {number % 37} is owned by team {number % 11}." for number in range(count)
        ]
        path = folder / "MEMORY.md"
        path.write_text("\n§\n".join(entries), encoding="utf-8")
        # Written long ago: ours lets a file that is just being written settle for a second.
        os.utime(path, (time.time() - 3600,) * 2)
        child.ask("load")
        begin = time.perf_counter()
        child.tell("start", theme="import")
        stored = wait_for(
            lambda: seat.memories_with_vector(connection), count, seconds=180, idle_seconds=60, poll=0.005
        )
        seconds = time.perf_counter() - begin
        child.answer(180)
    if stored < count:
        raise RuntimeError(f"{system.name}: {stored} of {count} entries were imported")
    return {"rate": count / seconds}
