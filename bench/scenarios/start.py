"""How long initialize() keeps a request waiting: warm, and when Postgres, the embedder or MEMORY.md make trouble."""

from __future__ import annotations

from functools import partial

from bench.measure import Metric, Result, Target, percentile
from bench.stage import Seat, Stage
from bench.system import System

ENTRIES = 60


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Milliseconds; the worst round counts where a bound is promised."""
    found = stage.each(3 if is_full else 2, partial(_warm, stage, 100 if is_full else 30))
    for name, rounds in found.items():
        target = Target("at most", 10) if name == "warm, p95" else None
        result.metrics.append(Metric.of("start", name, "ms", "lower", rounds, target=target))
    for name, measure in (
        ("Postgres down", _database_down),
        ("the embedder hangs, 3 new memories", _embedder_hangs),
        (f"{ENTRIES} new MEMORY.md entries", _new_entries),
    ):
        worst = stage.each(3 if is_full else 1, partial(measure, stage))["worst"]
        highest = {system: [max(rounds)] for system, rounds in worst.items()}
        target = Target("at most", 50)
        result.metrics.append(Metric.of("start", f"{name}, worst", "ms", "lower", highest, target=target))


def _warm(stage: Stage, count: int, system: System) -> dict[str, float]:
    with stage.seat(system) as seat, seat.child() as child:
        child.ask("load")
        first = child.ask("start", theme="start")["micros"] / 1000
        times = [micros / 1000 for micros in child.ask("starts", count=count, theme="start")["micros"]]
    return {
        "first in a process": first,
        "warm, p50": percentile(times, 0.50),
        "warm, p95": percentile(times, 0.95),
    }


def _database_down(stage: Stage, system: System) -> dict[str, float]:
    with stage.seat(system) as seat:
        stage.stop_server()
        return _worst(seat)


def _embedder_hangs(stage: Stage, system: System) -> dict[str, float]:
    with stage.seat(system) as seat:
        _write_memories(seat, 3)
        stage.embedder.set(mode="hang")
        return _worst(seat)


def _new_entries(stage: Stage, system: System) -> dict[str, float]:
    with stage.seat(system) as seat:
        _write_memories(seat, ENTRIES)
        stage.embedder.set(latency=0.02)
        return _worst(seat)


def _worst(seat: Seat) -> dict[str, float]:
    with seat.child() as child:
        child.ask("load")
        # One theme each: every API request may come with a new session key.
        times = [child.ask("start", seconds=180, theme=f"start-{number}")["micros"] / 1000 for number in range(2)]
    return {"worst": max(times)}


def _write_memories(seat: Seat, count: int) -> None:
    folder = seat.home / "memories"
    folder.mkdir()
    entries = [
        f"Entry {number:03d}: the release checklist lives in docs/release-{number}.md." for number in range(count)
    ]
    (folder / "MEMORY.md").write_text("\n§\n".join(entries), encoding="utf-8")
