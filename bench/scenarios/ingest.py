"""How fast turns become rows: text alone, and with their vector, at several latencies of the embedder; and a burst."""

from __future__ import annotations

import time
from functools import partial

from bench.measure import Metric, Result, Target
from bench.stage import Stage, wait_for
from bench.system import System

# Rows per round at each latency: enough for a rate, few enough to wait for the peer.
SMALL = {0: 600, 20: 300, 200: 40}
FULL = {0: 2000, 20: 1000, 200: 100}
BURST_TURNS = 1000


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Rows per second from the first hook call to the last row seen in Postgres."""
    for latency, rows in (FULL if is_full else SMALL).items():
        found = stage.each(3 if is_full else 2, partial(_rate, stage, latency, rows))
        for name, rounds in found.items():
            target = Target("ratio at least", 20) if latency == 20 and name == "with vector" else None
            label = f"{name}, embedder at {latency} ms"
            result.metrics.append(Metric.of("ingest", label, "rows/s", "higher", rounds, target=target))
    lost = stage.each(1, partial(_burst, stage))["lost"]
    label = f"rows lost of a burst of {BURST_TURNS} turns, default settings"
    target = Target("at most", 0)
    result.metrics.append(Metric.of("ingest", label, "rows", "lower", lost, target=target))


def _rate(stage: Stage, latency: int, rows: int, system: System) -> dict[str, float]:
    # The peer's queue is made large enough for the whole load, or it would drop most of it (see the burst).
    settings = {"write_queue_maxsize": 100_000} if system.name == "peer" else {}
    with stage.seat(system, **settings) as seat, seat.child() as child, seat.connect() as connection:
        stage.embedder.set(latency=latency / 1000)
        child.ask("start", theme="ingest")
        # The first row opens connections and finds out the endpoint's protocol.
        child.ask("turns", tag="warm", count=1)
        wait_for(lambda: seat.with_vector(connection), 2, seconds=30, idle_seconds=30)
        begin = time.perf_counter()
        child.tell("turns", tag="load", count=rows // 2)
        text_at = vector_at = 0.0
        end = time.monotonic() + 300
        while not vector_at and time.monotonic() < end:
            if not text_at and seat.stored(connection, "load-") >= rows:
                text_at = time.perf_counter() - begin
            if seat.with_vector(connection) >= rows + 2:
                vector_at = time.perf_counter() - begin
                # The last row may have arrived between the two looks.
                text_at = text_at or vector_at
            time.sleep(0.005)
        child.answer()
        if not text_at or not vector_at:
            raise RuntimeError(f"{system.name}: {seat.stored(connection, 'load-')} of {rows} rows after 300 s")
    return {"text durable": rows / text_at, "with vector": rows / vector_at}


def _burst(stage: Stage, system: System) -> dict[str, float]:
    wanted = 2 * BURST_TURNS
    with stage.seat(system) as seat, seat.child() as child, seat.connect() as connection:
        stage.embedder.set(latency=0.02)
        child.ask("start", theme="ingest")
        child.ask("turns", tag="burst", count=BURST_TURNS)
        stored = wait_for(lambda: seat.stored(connection, "burst-"), wanted, seconds=120, idle_seconds=5)
    return {"lost": float(wanted - stored)}
