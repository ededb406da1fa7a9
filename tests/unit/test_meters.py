"""Counting: nothing is lost, and what is told can be added up."""

from __future__ import annotations

import os
import threading

from hermes_memory_pgvector.meters import BATCHES, RECALLS, Meters


def test_threads_lose_no_count() -> None:
    meters = Meters()

    def count() -> None:
        for _ in range(10_000):
            meters.count(RECALLS, of="tool")

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    seen = [meters.totals().get("recalls|tool", 0) for _ in range(50)]
    for thread in threads:
        thread.join()
    assert meters.totals() == {"recalls|tool": 6 * 10_000}
    assert seen == sorted(seen)


def test_a_forked_child_counts_from_zero() -> None:
    meters = Meters()
    meters.count(BATCHES)
    with meters._lock:
        pid = os.fork()
        if not pid:
            meters.count(BATCHES, 3)
            os._exit(0 if meters.totals() == {"batches": 3} else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert meters.totals() == {"batches": 1}
