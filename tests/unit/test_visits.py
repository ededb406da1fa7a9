"""How often processes look for journals that others have left."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.writer.writer import VISIT_SECONDS, visit_seconds


@pytest.mark.parametrize("processes", [2, 10, 50, 1000])
def test_a_journal_is_found_soon_and_the_visits_of_many_cost_each_no_more_than_those_of_few(processes: int) -> None:
    others = processes - 1
    pause = visit_seconds(others)
    assert pause >= VISIT_SECONDS
    # Somebody comes by in that time on average, and each tries so many journals in a second.
    assert pause / processes <= VISIT_SECONDS
    assert others / pause <= 1.0
