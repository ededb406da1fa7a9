"""A provider per request and no shutdown, as the API server does it: threads, connections, memory, time per request."""

from __future__ import annotations

import time

from bench.measure import Figure, Line, Metric, Plot, Result, Target, percentile
from bench.stage import Stage
from bench.system import ChildError, System

STEP = 10
THEMES = 10
QUERIES = [f"which release did team {number} talk about last week?" for number in range(50)]


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """What has piled up after the last request, and the way there."""
    requests = 300 if is_full else 60
    curves: dict[str, list[dict[str, float]]] = {}
    for system in stage.systems:
        curves[system.name] = _run(stage, system, requests, result)
    ours, peer = curves["ours"], curves["peer"]
    for name, unit, target in (
        ("threads", "threads", Target("at most", 7, "house §2: 6 of ours and the main thread")),
        ("connections", "connections", Target("at most", 4, "house §2")),
        ("rss_mb", "MB", None),
    ):
        figures = [Figure.of([max(point[name] for point in curve)]) for curve in (ours, peer)]
        label = {"threads": "threads, most", "connections": "Postgres connections, most", "rss_mb": "memory, most"}[name]
        result.metrics.append(
            Metric("fleet", f"{label} during {requests} requests", unit, "lower", *figures, target=target,
                   is_portable=name != "rss_mb")
        )  # fmt: skip
        result.plots.append(
            Plot(f"fleet-{name}", label.split(",")[0].capitalize() + " against requests", "requests", unit,
                 tuple(Line("this package" if key == "ours" else "peer", key,
                            tuple((point["requests"], point[name]) for point in curves[key]))
                       for key in ("ours", "peer")))
        )  # fmt: skip
    for share in ("p50", "p95"):
        figures = [Figure.of([curve[-1][share]]) for curve in (ours, peer)]
        result.metrics.append(Metric("fleet", f"hooks of one request, {share}", "ms", "lower", *figures))
    figures = [Figure.of([curve[-1]["lost"]]) for curve in (ours, peer)]
    result.metrics.append(
        Metric("fleet", f"rows lost of {requests} requests", "rows", "lower", *figures,
               target=Target("at most", 0, "issue 2"), is_portable=True)
    )  # fmt: skip


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
