"""Counting: nothing is lost, nobody waits, and what is told can be added up."""

from __future__ import annotations

import os
import threading

from hermes_memory_pgvector.engine.attendance import MAX_SESSIONS, MAX_THEMES, Attendance
from hermes_memory_pgvector.meters import (
    BATCHES,
    METERS,
    MOST_NOTED,
    RECALLS,
    SEPARATOR,
    Meters,
)
from hermes_memory_pgvector.values import AddTurn, Moment, Session


def test_threads_lose_no_count() -> None:
    meters = Meters()

    def count() -> None:
        for _ in range(MOST_NOTED):
            meters.count(RECALLS, of="tool")

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    seen = [meters.totals().get("recalls|tool", 0) for _ in range(50)]
    for thread in threads:
        thread.join()
    assert meters.totals() == {"recalls|tool": 6 * MOST_NOTED}
    assert seen == sorted(seen)


def test_nobody_waits_for_whoever_adds_up() -> None:
    meters = Meters()

    def count() -> None:
        for _ in range(2 * MOST_NOTED):
            meters.count(BATCHES)

    with meters._adding:
        counting = threading.Thread(target=count, daemon=True)
        counting.start()
        counting.join(30)
        assert not counting.is_alive()
    assert meters.totals() == {"batches": 2 * MOST_NOTED}
    # With nobody at it, whoever puts down one too many adds up: what waits stays few.
    for _ in range(3 * MOST_NOTED):
        meters.count(BATCHES)
    assert len(meters._noted) <= MOST_NOTED + 1


def test_a_forked_child_counts_from_zero() -> None:
    meters = Meters()
    meters.count(BATCHES)
    with meters._adding:
        pid = os.fork()
        if not pid:
            meters.count(BATCHES, 3)
            os._exit(0 if meters.totals() == {"batches": 3} else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert meters.totals() == {"batches": 1}


def test_every_meter_can_be_told() -> None:
    assert len({meter.name for meter in METERS}) == len(METERS)
    for meter in METERS:
        assert bool(meter.label) == bool(meter.values), meter.name
        assert SEPARATOR not in "".join((meter.name, *meter.values))
        assert meter.help.endswith(".")


def test_what_an_agent_did_is_told_once_and_only_of_so_many() -> None:
    attendance = Attendance()
    attendance.begin(Session("a|b", "s1", "a|b", platform="cli"))
    attendance.begin(Session("a|b", "s1", "a|b", platform="cli"))
    attendance.write([AddTurn("a|b", "s1", "user", "text", 1, Moment(1, 1), False)])
    attendance.write([AddTurn("never begun", "s1", "user", "text", 1, Moment(1, 1), False)])
    attendance.recall("a|b")
    done, mark = attendance.due()
    assert [(each.theme, each.kind, dict(each.counts)) for each in done] == [
        ("a|b", "cli", {"sessions": 1, "turns": 1, "memories": 0, "recalls": 1})
    ]
    assert attendance.due()[0] == done, "what could not be stored is told again"
    attendance.stored(mark)
    attendance.recall("a|b")
    assert [dict(each.counts) for each in attendance.due()[0]] == [
        {"sessions": 0, "turns": 0, "memories": 0, "recalls": 1}
    ]
    for number in range(2 * MAX_THEMES):
        attendance.begin(Session(f"theme {number}", "s", "theme"))
    assert len(attendance.due()[0]) == MAX_THEMES
    for number in range(MAX_SESSIONS + 10):
        attendance.begin(Session("a|b", f"s{number}", "a|b"))
    assert len(attendance._sessions) == MAX_SESSIONS
