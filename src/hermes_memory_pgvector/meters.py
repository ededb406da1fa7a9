"""What a process counts: every counter, declared once, and the numbers themselves.

The totals are flat, a number per name, so that those of several processes can be added without knowing what they mean.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from hermes_memory_pgvector.fork import renew_after_fork

SEPARATOR: Final = "|"
"""Between a counter's name and what its numbers are told apart by."""

BATCHES: Final = "batches"
"""Transactions that stored records of the journal."""
RECORDS: Final = "records_stored"
DEAD_LETTERS: Final = "dead_letters"
"""Records that Postgres rejected and that are kept."""
REFUSED: Final = "refused_writes"
"""Writes the journal had no room for, by what they are: a turn or a memory."""
RECOVERED: Final = "refused_writes_recovered"
LOST: Final = "refused_writes_lost"
FAILED_HOOKS: Final = "failed_hooks"
EMBEDDING_FAILURES: Final = "embedding_failures"
"""By what was embedded: a question or rows."""
EMBEDDED_ROWS: Final = "embedded_rows"
RECALLS: Final = "recalls"
"""Questions to the memory, by who asked: prefetch or a tool. So are the next three."""
HITS: Final = "recall_hits"
DEGRADED_RECALLS: Final = "degraded_recalls"
"""Answers that had to do without something, such as vectors."""
FAILED_RECALLS: Final = "failed_recalls"
BREAKS: Final = "breaker_openings"
"""Outages that a breaker has seen begin, by the breaker's name."""

TOLD_APART: Final = (REFUSED, EMBEDDING_FAILURES, RECALLS, HITS, DEGRADED_RECALLS, FAILED_RECALLS, BREAKS)
METERS: Final = (
    BATCHES, RECORDS, DEAD_LETTERS, RECOVERED, LOST, FAILED_HOOKS, EMBEDDED_ROWS, *TOLD_APART,
)  # fmt: skip


class Meters:
    """The numbers of one process and home; any thread may put one down."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def count(self, meter: str, amount: float = 1, of: str = "") -> None:
        """So many more; `of` is what they are told apart by."""
        with self._lock:
            self._totals[f"{meter}{SEPARATOR}{of}" if of else meter] += amount

    def totals(self) -> Mapping[str, float]:
        """All numbers so far, by name and label."""
        with self._lock:
            return dict(self._totals)

    def after_fork_in_child(self) -> None:
        """The child counts what it does itself."""
        self._lock = threading.RLock()
        self._totals: defaultdict[str, float] = defaultdict(float)
