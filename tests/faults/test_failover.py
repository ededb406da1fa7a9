"""A primary and its standby under one connection string: killed, promoted, cut apart, and a primary that returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testing.agent import AgentHome
from testing.replication import Replicated
from testing.steady_load import SteadyLoad
from testing.stored import Stored
from testing.waiting import wait_until

WRITES, QUESTIONS = 200.0, 20.0
ANSWERED_SECONDS = 5.0
"""So long after a promotion questions are answered again at the latest; a second or two on a busy machine."""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Replicated]:
    with Replicated(tmp_path / "servers") as made:
        yield made


@pytest.fixture
def home(pair: Replicated, tmp_path: Path) -> Iterator[AgentHome]:
    made = AgentHome.create(tmp_path / "home", pair.database)
    yield made
    made.close()


Figure = Callable[[str, object], None]


def wait_for(load: SteadyLoad, turns: int) -> None:
    """Until so many more turns have been said."""
    goal = load.count + turns
    wait_until(lambda: load.count >= goal, seconds=60)


def fail_over(pair: Replicated, load: SteadyLoad, record_property: Figure) -> None:
    """Kill the primary, promote the standby, and wait until questions are answered again."""
    pair.primary.kill()
    wait_for(load, 200)
    pair.standby.promote()
    promoted = time.monotonic()
    took = (wait_until(lambda: load.first_answer_after(promoted)) or promoted) - promoted
    record_property("seconds from promotion to an answer", round(took, 2))
    record_property("slowest hook in ms", round(1000 * load.slowest_hook, 1))
    assert took <= ANSWERED_SECONDS


def settle_on(pair: Replicated, home: AgentHome, load: SteadyLoad, record_property: Figure) -> None:
    """All that was acknowledged is on the server that was promoted, once."""
    home.settle(60)
    home.stored = Stored(pair.standby.dsn())
    wait_until(lambda: not load.lost(), seconds=60)
    assert load.doubled() == []
    record_property("turns acknowledged and stored", load.count)


@pytest.mark.large
def test_a_killed_primary_loses_nothing_that_was_acknowledged(
    pair: Replicated, home: AgentHome, record_property: Figure
) -> None:
    with SteadyLoad(home, WRITES, QUESTIONS) as load:
        wait_for(load, 600)
        fail_over(pair, load, record_property)
        wait_for(load, 400)
    settle_on(pair, home, load, record_property)


@pytest.mark.large
def test_what_the_standby_had_not_received_is_sent_again_and_told(
    pair: Replicated, home: AgentHome, record_property: Figure, caplog: pytest.LogCaptureFixture
) -> None:
    with SteadyLoad(home, WRITES, QUESTIONS) as load:
        wait_for(load, 400)
        pair.cut()
        wait_for(load, 600)
        (((stored,),), ((left,),)) = (
            each.rows("SELECT count(*) FROM conversations") for each in (pair.primary, pair.standby)
        )
        fail_over(pair, load, record_property)
        wait_for(load, 400)
    assert left < stored
    settle_on(pair, home, load, record_property)
    record_property("committed turns the standby never had", stored - left)
    (sentence,) = [each.getMessage() for each in caplog.records if "has gone back" in each.getMessage()]
    assert "are gone" not in sentence
    assert home.engine.writer.progress.again > 0
