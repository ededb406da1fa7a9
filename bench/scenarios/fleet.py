"""A provider per request and no shutdown, as the API server does it: threads, connections, memory, time per request."""

from __future__ import annotations

import time

from bench.measure import Metric, Result, Target, percentile
from bench.stage import Stage
from bench.system import ChildError, System

STEP = 10
THEMES = 10
QUERIES = [f"which release did team {number} talk about last week?" for number in range(50)]


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """What has piled up after the last request, and the way there."""
    requests = 300 if is_full else 60
    curves = {system.name: _run(stage, system, requests, result) for system in stage.systems}
    for name, label, unit, target in (
        ("threads", "threads, most", "threads", Target("at most", 7)),
        ("connections", "Postgres connections, most", "connections", Target("at most", 4)),
        ("rss_mb", "memory, most", "MB", None),
    ):
        most = {key: [max(point[name] for point in curve)] for key, curve in curves.items()}
        label = f"{label} during {requests} requests"
        result.metrics.append(Metric.of("fleet", label, unit, "lower", most, target=target))
    for name, label, unit in (
        ("p50", "hooks of one request, p50", "ms"),
        ("p95", "hooks of one request, p95", "ms"),
        ("lost", f"rows lost of {requests} requests", "rows"),
    ):
        last = {key: [curve[-1][name]] for key, curve in curves.items()}
        target = Target("at most", 0) if name == "lost" else None
        result.metrics.append(Metric.of("fleet", label, unit, "lower", last, target=target))


def _run(stage: Stage, system: System, requests: int, result: Result) -> list[dict[str, float]]:
    points: list[dict[str, float]] = []
    times: list[float] = []
    with stage.seat(system) as seat, seat.child() as child, seat.connect() as connection:
        stage.embedder.set(latency=0.005)
        child.ask("load")
        done = 0
        while done < requests:
            try:
                answer = child.ask("requests", seconds=300, count=STEP, first=done, themes=THEMES, queries=QUERIES)
            except ChildError as error:
                result.problems.append(f"fleet, {system.name}: {error} after {done} requests")
                break
            done += STEP
            times += [micros / 1000 for micros in answer["micros"]]
            points.append({"requests": done, "threads": answer["threads"], "rss_mb": answer["rss_mb"],
                           "connections": seat.backends(connection)})  # fmt: skip
        end = time.monotonic() + 20
        while (stored := seat.stored(connection, "fleet-")) < 2 * done and time.monotonic() < end:
            time.sleep(0.1)
    points[-1] |= {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95), "lost": 2 * done - stored}
    return points
