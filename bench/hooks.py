"""What the hooks cost the agent while the database is down, beside a plain in-memory queue in the same run.

    python -m bench.hooks [--calls 20000]

The real provider, journal on, nobody listening where Postgres should be; turns of 1 kB, memories of 200 characters.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import queue
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.registry import close_all, engine_for
from hermes_memory_pgvector.provider import PgvectorMemoryProvider

WORDS = "the launch of the spring campaign in Berlin is planned for the second week of March and Dana approves "


@dataclass(frozen=True, slots=True)
class Call:
    """A call and what makes its argument, which the agent has just made when it calls and is not timed."""

    make: Callable[[int], Any]
    run: Callable[[Any], object]


Row = tuple[str, str, float, float, float]

# p50 and p99 in microseconds that the hook of a turn has to keep, by situation.
TARGETS = {"idle": (60.0, 300.0), "beside two busy threads": (float("inf"), 300.0)}


def text(number: int, size: int) -> str:
    return f"{number} {WORDS * (size // len(WORDS) + 1)}"[:size]


def timed(call: Call, calls: int, pause: float) -> list[int]:
    clock = time.perf_counter_ns
    times = []
    run = call.run
    for number in range(calls):
        if pause:
            time.sleep(pause)
        argument = call.make(number)
        begin = clock()
        run(argument)
        times.append(clock() - begin)
    return sorted(times)


@contextmanager
def two_busy_threads() -> Iterator[None]:
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            sum(number * number for number in range(2000))

    threads = [threading.Thread(target=compute, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def provider_calls(home: Path) -> dict[str, Call]:
    settings = {
        "dsn": f"host=127.0.0.1 port={free_port()} dbname=none user=none", "embed_url": "http://127.0.0.1:9/",
        "journal_max_mb": 4096,
    }  # fmt: skip
    agent = PgvectorMemoryProvider(settings)
    agent.initialize(
        "s1", hermes_home=str(home), platform="api_server", gateway_session_key="bench theme", agent_identity="default",
        agent_workspace="hermes", agent_context="primary",
    )  # fmt: skip
    engine = engine_for(home, settings)[0]
    end = time.monotonic() + 20
    agent.sync_turn(text(-1, 200), text(-2, 824), session_id="s0")
    while not engine.writer.breaker.is_open and time.monotonic() < end:
        time.sleep(0.01)
    metadata = {
        "write_origin": "assistant_tool", "execution_context": "foreground", "session_id": "s1", "platform": "api",
        "tool_name": "memory", "task_id": "s1", "tool_call_id": "call_6b52d8_0",
    }  # fmt: skip
    numbers = itertools.count()

    def turn(said: tuple[str, str, str]) -> None:
        agent.sync_turn(said[0], said[1], session_id=said[2])

    def next_turn(_: int) -> tuple[str, str, str]:
        number = next(numbers)
        return text(number, 200), text(number, 824), f"s{number // 50}"

    def memory(content: str) -> None:
        agent.on_memory_write("add", "memory", content, metadata=metadata)

    return {
        "sync_turn, 1 kB": Call(next_turn, turn),
        "on_memory_write, 200 B": Call(lambda _: text(next(numbers), 200), memory),
    }


def queue_call() -> Call:
    waiting: queue.Queue[str] = queue.Queue()

    def put(said: tuple[str, str]) -> None:
        waiting.put(json.dumps({"user": said[0], "assistant": said[1]}))

    return Call(lambda number: (text(number, 200), text(number, 824)), put)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("hermes_memory_pgvector").setLevel(logging.CRITICAL)
    home = Path(tempfile.mkdtemp(prefix="bench-hooks-"))
    rows: list[Row] = []
    try:
        calls: dict[str, Call] = {"in-memory queue, 1 kB": queue_call(), **provider_calls(home)}
        for situation in TARGETS:
            for name, call in calls.items():
                if situation == "idle":
                    times = timed(call, arguments.calls, 0.0)
                else:
                    with two_busy_threads():
                        times = timed(call, arguments.calls // 10, 0.002)
                middle, tail, far = (times[int(len(times) * share)] / 1000 for share in (0.5, 0.99, 0.999))
                rows.append((name, situation, middle, tail, far))
    finally:
        close_all(Deadline.after(5))
        shutil.rmtree(home, ignore_errors=True)
    if arguments.json:
        print(json.dumps(rows))
        return
    print(f"{'microseconds':<26}{'':<26}{'p50':>9}{'p99':>9}{'p99.9':>9}")
    for name, situation, middle, tail, far in rows:
        print(f"{name:<26}{situation:<26}{middle:9.1f}{tail:9.1f}{far:9.1f}")
    for name, situation, middle, tail, _ in rows:
        if name.startswith("sync_turn"):
            wanted = TARGETS[situation]
            verdict = "kept" if middle <= wanted[0] and tail <= wanted[1] else "MISSED"
            print(f"target of a turn, {situation}: p50 ≤ {wanted[0]:g} µs, p99 ≤ {wanted[1]:g} µs: {verdict}")


if __name__ == "__main__":
    main()
