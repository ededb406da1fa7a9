"""What lies between us and Postgres: delays, drips, resets and silence. Everything arrives once afterwards."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.writer import writer
from testing.agent import AgentHome
from testing.faulty import expect, outage, say
from testing.proxy import Mode, Proxy
from testing.waiting import HOOK_SECONDS, promptly, wait_until


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is given up after a few seconds instead of a minute."""
    monkeypatch.setattr(writer, "BATCH_SECONDS", 3.0)


@pytest.mark.parametrize("mode", ["delay", "drip", "reset", "reset-answer", "blackhole", "refuse"])
def test_whatever_the_network_does_everything_arrives_once(far_home: AgentHome, proxy: Proxy, mode: Mode) -> None:
    say(far_home, 1)
    expect(far_home, 1)
    proxy.drip_seconds = 0.2
    proxy.mode = mode
    with promptly(HOOK_SECONDS):
        say(far_home, 2, 3)
    if mode != "delay":
        outage(far_home)
    say(far_home, 4)
    proxy.mode = "pass"
    expect(far_home, 1, 2, 3, 4)


@pytest.mark.parametrize("mode", ["reset", "blackhole", "refuse", "drip"])
def test_a_start_on_a_broken_network_heals_by_itself(far_home: AgentHome, proxy: Proxy, mode: Mode) -> None:
    proxy.drip_seconds = 0.2
    proxy.mode = mode
    with promptly(HOOK_SECONDS):
        say(far_home, 1, 2)
    outage(far_home)
    proxy.mode = "pass"
    expect(far_home, 1, 2)


def test_a_commit_whose_answer_is_lost_is_not_stored_twice(far_home: AgentHome, proxy: Proxy) -> None:
    say(far_home, 1)
    expect(far_home, 1)
    proxy.hold_answer_to = b"COMMIT"
    say(far_home, 2, 3)
    assert proxy.held.wait(20)
    proxy.hold_answer_to = None
    # The rows are there, and the writer does not know it.
    wait_until(lambda: far_home.stored.turns("marketing", "question 2"))
    proxy.cut()
    say(far_home, 4)
    expect(far_home, 1, 2, 3, 4)


def test_resets_at_every_moment_lose_and_double_nothing(far_home: AgentHome, proxy: Proxy) -> None:
    for number in range(1, 61):
        say(far_home, number)
        if number % 3 == 0:
            proxy.cut()
    expect(far_home, *range(1, 61))
