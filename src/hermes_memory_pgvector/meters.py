"""What a process counts: every counter, declared once, and the numbers themselves.

The totals are flat, a number per name, so that those of several processes can be added without knowing what they mean.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hermes_memory_pgvector.fork import renew_after_fork

SEPARATOR: Final = "|"


@dataclass(frozen=True, slots=True)
class Meter:
    """One thing that is counted."""

    name: str
    """As it is exported, without the prefix and the suffix that the format asks for."""
    help: str
    label: str = ""
    """What its numbers are told apart by; empty when by nothing."""
    values: tuple[str, ...] = ()
    """What may stand there: few words, known beforehand."""


BATCHES = Meter("batches", "Transactions that stored records of the journal.")
RECORDS = Meter("records_stored", "Records of the journal that were stored.")
DEAD_LETTERS = Meter("dead_letters", "Records that Postgres rejected and that are kept as dead letters.")
REFUSED = Meter("refused_writes", "Writes the journal had no room for, by what they are.", "kind",
                ("turn", "memory"))  # fmt: skip
RECOVERED = Meter("refused_writes_recovered", "Refused writes that were recovered.")
LOST = Meter("refused_writes_lost", "Refused writes that were found nowhere again.")
FAILED_HOOKS = Meter("failed_hooks", "Hook calls that failed; the agent went on without the memory.")
EMBEDDING_FAILURES = Meter(
    "embedding_failures", "Embeddings that failed, by what was embedded.", "what", ("question", "rows")
)
EMBEDDED_ROWS = Meter("embedded_rows", "Rows that got their vector.")
CALLERS = ("prefetch", "tool")
RECALLS = Meter("recalls", "Questions to the memory, by who asked.", "caller", CALLERS)
HITS = Meter("recall_hits", "Hits that were given, by who asked.", "caller", CALLERS)
DEGRADED_RECALLS = Meter(
    "degraded_recalls", "Answers that had to do without something, such as vectors.", "caller", CALLERS
)
FAILED_RECALLS = Meter("failed_recalls", "Questions that got no answer, by who asked.", "caller", CALLERS)
BREAKERS = ("database writes", "database reads", "embedding of new rows", "embedding of questions")
BREAKS = Meter("breaker_openings", "Outages that a breaker has seen begin, by breaker.", "breaker", BREAKERS)

METERS: Final = (
    BATCHES, RECORDS, DEAD_LETTERS, REFUSED, RECOVERED, LOST, FAILED_HOOKS,
    EMBEDDING_FAILURES, EMBEDDED_ROWS, RECALLS, HITS, DEGRADED_RECALLS, FAILED_RECALLS, BREAKS,
)  # fmt: skip


class Meters:
    """The numbers of one process and home; any thread may put one down."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def count(self, meter: Meter, amount: float = 1, of: str = "") -> None:
        """So many more; `of` is the label's value."""
        with self._lock:
            self._totals[f"{meter.name}{SEPARATOR}{of}" if of else meter.name] += amount

    def totals(self) -> Mapping[str, float]:
        """All numbers so far, by name and label."""
        with self._lock:
            return dict(self._totals)

    def after_fork_in_child(self) -> None:
        """The child counts what it does itself."""
        self._lock = threading.RLock()
        self._totals: defaultdict[str, float] = defaultdict(float)
