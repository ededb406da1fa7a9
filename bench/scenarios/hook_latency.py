"""What sync_turn and on_memory_write cost the agent thread: alone, paced, beside busy threads, with Postgres down."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from bench.measure import Metric, Result, percentile
from bench.stage import Seat, Stage
from bench.system import Child, System

HOOKS = {"sync_turn": "turns", "on_memory_write": "memories"}
# Stays below the peer's queue of 256 rows, so that both do their whole work in the hook.
BURST = 100


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Microseconds per call, p50 and p99 of each round."""
    found = stage.each(5 if is_full else 2, partial(_round, stage, 400 if is_full else 150))
    result.metrics += [Metric.of("hooks", name, "µs", "lower", rounds) for name, rounds in found.items()]


def _round(stage: Stage, paced: int, system: System) -> dict[str, float]:
    figures: dict[str, float] = {}
    with stage.seat(system) as seat, seat.child() as child:
        child.ask("start", theme="hooks")
        child.ask("turns", tag="warm", count=5)
        for hook, do in HOOKS.items():
            _drain(seat)
            _note(figures, f"{hook}, burst", child, do, tag=f"burst-{do}", count=BURST)
            _drain(seat)
            _note(figures, f"{hook}, paced", child, do, tag=f"paced-{do}", count=paced, pace=0.005)
            _drain(seat)
            _note(
                figures, f"{hook}, beside 2 busy threads", child, do, tag=f"busy-{do}", count=paced, pace=0.005, busy=2
            )
        _drain(seat)
        stage.stop_server()
        for hook, do in HOOKS.items():
            _note(figures, f"{hook}, Postgres down", child, do, tag=f"down-{do}", count=50, pace=0.005)
    return figures


def _note(figures: dict[str, float], name: str, child: Child, do: str, **arguments: Any) -> None:
    times = child.ask(do, **arguments)["micros"]
    figures[f"{name}, p50"] = percentile(times, 0.50)
    figures[f"{name}, p99"] = percentile(times, 0.99)


def _drain(seat: Seat) -> None:
    """Wait until nothing arrives any more: the next measurement starts from rest."""
    with seat.connect() as connection:
        last, end = -1, time.monotonic() + 15
        while time.monotonic() < end:
            now = seat.with_vector(connection)
            if now == last:
                return
            last = now
            time.sleep(0.3)
