"""What one provider remembers of its agent's conversation."""

from __future__ import annotations

import tracemalloc

from hermes_memory_pgvector.capture.exchanges import Exchanges
from hermes_memory_pgvector.capture.transcript import Turn


def test_turns_that_nobody_ever_reports_are_not_remembered_without_end() -> None:
    exchanges = Exchanges("session", is_new=True)
    tracemalloc.start()
    try:
        for number in range(5000):
            exchanges.begin(Turn("user", f"question {number} " + 4000 * "x"))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8_000_000
    (last,) = exchanges.undo()
    assert last.turns[0].content.startswith("question 4999 ")
