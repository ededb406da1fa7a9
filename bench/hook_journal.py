"""What an append costs the hook, beside a plain in-memory queue in the same run.

    python bench/hook_journal.py [--records 20000] [--directory PATH]

Three situations: one thread on its own, sixteen threads that each append every few milliseconds, and one paced thread
beside two threads that only compute. Times are microseconds per call of a 1 kB payload.
"""

from __future__ import annotations

import argparse
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, SyncMode

PAYLOAD = b"x" * 1024
Put = Callable[[bytes], object]


def timed(put: Put, count: int, pause: float, into: list[int]) -> None:
    clock = time.perf_counter_ns
    times: list[int] = []
    for _ in range(count):
        if pause:
            time.sleep(pause)
        begin = clock()
        put(PAYLOAD)
        times.append(clock() - begin)
    into.extend(times)


def alone(put: Put, count: int) -> list[int]:
    times: list[int] = []
    timed(put, count, 0.0, times)
    return times


def sixteen_paced(put: Put, count: int) -> list[int]:
    times: list[int] = []
    threads = [threading.Thread(target=timed, args=(put, count // 16, 0.004, times)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def beside_two_busy(put: Put, count: int) -> list[int]:
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            sum(n * n for n in range(200))

    busy = [threading.Thread(target=compute, daemon=True) for _ in range(2)]
    for thread in busy:
        thread.start()
    times: list[int] = []
    try:
        timed(put, min(count, 1500), 0.001, times)
    finally:
        over.set()
        for thread in busy:
            thread.join()
    return times


SITUATIONS: dict[str, Callable[[Put, int], list[int]]] = {
    "1 thread": alone,
    "16 threads, paced": sixteen_paced,
    "beside 2 CPU-bound threads": beside_two_busy,
}


def percentile(times: list[int], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1000


def row(name: str, put: Put, count: int) -> str:
    cells = []
    for situation in SITUATIONS.values():
        alone(put, 500)
        times = situation(put, count)
        cells.append(f"{percentile(times, 0.5):7.1f} / {percentile(times, 0.99):8.1f}")
    return f"| {name:<26} | " + " | ".join(f"{cell:>26}" for cell in cells) + " |"


def journal_row(mode: SyncMode, root: Path, count: int) -> str:
    journal = Journal(root / mode, sync=mode, max_bytes=1 << 32)
    journal.open()
    try:
        return row(f"journal, {mode}", journal.append, count)
    finally:
        journal.close(Deadline.after(5))


def main() -> int:
    parser = argparse.ArgumentParser(description="What an append costs the hook.")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--directory", type=Path, help="a directory on the file system to measure")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="hook-journal-", dir=options.directory))
    try:
        heads = " | ".join(f"{name:>26}" for name in SITUATIONS)
        print(f"| {'p50 / p99, µs, 1 kB':<26} | {heads} |")
        print("|" + "|".join("-" * 28 for _ in range(4)) + "|")
        plain: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        print(row("in-memory queue", plain.put, options.records))
        for mode in ("process", "batch"):
            print(journal_row(mode, root, options.records))
        print(journal_row("always", root, min(options.records, 480)))
    finally:
        shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
