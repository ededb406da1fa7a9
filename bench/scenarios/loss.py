"""Acknowledged is stored? Rows whose hook returned and that are in Postgres in the end, under five kinds of trouble."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial

from bench.measure import Metric, Result, Target
from bench.stage import Seat, Stage, wait_for
from bench.system import Child, System

EMBED_SECONDS = 0.02
PACE = 0.01
OUTAGE_SECONDS = 10.0


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Rows lost in each kind of trouble, summed over the rounds."""
    turns = 300 if is_full else 100
    for trouble, cause in TROUBLES.items():
        found = stage.each(3 if is_full else 1, partial(_round, stage, cause, turns))
        sums = {name: {key: sum(rounds) for key, rounds in each.items()} for name, each in found.items()}
        acknowledged = sums["acknowledged"]
        result.metrics.append(
            Metric.of(
                "loss",
                trouble,
                "rows lost",
                "lower",
                {key: [lost] for key, lost in sums["lost"].items()},
                target=Target("at most", 0),
                note=f"of {acknowledged['ours']:.0f} acknowledged by ours, {acknowledged['peer']:.0f} by the peer",
            )
        )
        if sums["doubled"]["ours"]:
            result.problems.append(f"loss, {trouble}: {sums['doubled']['ours']:.0f} rows of ours are stored twice")


Cause = Callable[[Stage, Seat, Child, int], int]


def _round(stage: Stage, cause: Cause, turns: int, system: System) -> dict[str, float]:
    with stage.seat(system) as seat:
        stage.embedder.set(latency=EMBED_SECONDS)
        with seat.child() as child:
            acknowledged = 2 * cause(stage, seat, child, turns)
            if cause in IN_PLACE:
                distinct, stored = _stored(seat, acknowledged)
        if cause not in IN_PLACE:
            # Whoever comes next in this home is given the chance to finish.
            with seat.child() as successor:
                successor.ask("start", theme="loss")
                successor.ask("turns", tag="after", count=1)
                distinct, stored = _stored(seat, acknowledged)
    return {
        "acknowledged": float(acknowledged),
        "lost": float(max(0, acknowledged - distinct)),
        "doubled": float(stored - distinct),
    }


def _stored(seat: Seat, wanted: int) -> tuple[int, int]:
    with seat.connect() as connection:
        wait_for(lambda: seat.stored(connection, "lossy-"), wanted, seconds=90, idle_seconds=12, poll=0.1)
        statement = "SELECT count(DISTINCT content) FROM conversations WHERE strpos(content, 'lossy-') > 0"
        return seat.count(connection, statement), seat.stored(connection, "lossy-")


def _begin(child: Child, turns: int) -> None:
    child.ask("start", theme="loss")
    child.tell("turns", tag="lossy", count=turns, pace=PACE, stream=True)


def _killed(stage: Stage, seat: Seat, child: Child, turns: int, *, by: signal.Signals) -> int:
    _begin(child, turns * 10)
    child.wait_returned(turns, 60)
    child.send(by)
    time.sleep(0.1)
    return child.returned


def _left(stage: Stage, seat: Seat, child: Child, turns: int) -> int:
    _begin(child, turns)
    child.answer()
    child.leave()
    return turns


def _outage(stage: Stage, seat: Seat, child: Child, turns: int) -> int:
    _begin(child, turns)
    child.wait_returned(turns // 4, 60)
    stage.stop_server()
    child.answer(600)
    time.sleep(OUTAGE_SECONDS)
    stage.start_server()
    return turns


def _late(stage: Stage, seat: Seat, child: Child, turns: int) -> int:
    stage.stop_server()
    _begin(child, turns)
    child.answer(600)
    stage.start_server()
    return turns


_kill9: Cause = partial(_killed, by=signal.SIGKILL)
_sigterm: Cause = partial(_killed, by=signal.SIGTERM)
TROUBLES: dict[str, Cause] = {
    "kill -9 while writing": _kill9,
    "SIGTERM while writing": _sigterm,
    "the process ends without shutdown()": _left,
    f"Postgres is away for {OUTAGE_SECONDS:.0f} s while writing": _outage,
    "Postgres comes up after the process": _late,
}
IN_PLACE = (_outage, _late)
"""The process lives on, so nobody else is needed to finish."""
