"""What a process counts and times: every counter and histogram, declared once, and the numbers themselves.

A hook puts a number down and goes on: it takes no lock and waits for nobody. Whoever reads the totals adds up what was
put down. The totals are flat, a number per name, so that those of several processes can be added without knowing what
they mean.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from hermes_memory_pgvector.fork import renew_after_fork

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds, in seconds, that times are sorted by."""
MOST_NOTED = 10_000
"""So many numbers wait to be added up; whoever puts down one more adds them up, unless somebody is at it."""
SEPARATOR: Final = "|"
SUM: Final = "sum"
BEYOND: Final = "+Inf"


@dataclass(frozen=True, slots=True)
class Meter:
    """One thing that is counted or timed."""

    name: str
    """As it is exported, without the prefix and the suffix that the format asks for."""
    kind: Literal["counter", "histogram"]
    help: str
    label: str = ""
    """What its numbers are told apart by; empty when by nothing."""
    values: tuple[str, ...] = ()
    """What may stand there: few words, known beforehand."""


BATCHES = Meter("batches", "counter", "Transactions that stored records of the journal.")
BATCH_SECONDS = Meter("batch_seconds", "histogram", "Time that such a transaction took.")
RECORDS = Meter("records_stored", "counter", "Records of the journal that were stored.")
ROWS = Meter(
    "rows_stored",
    "counter",
    "Write items that were stored, by what they are.",
    "kind",
    ("turn", "memory", "delegation", "correction"),
)
STORED_BYTES = Meter("stored_bytes", "counter", "Bytes of the records that were stored.")
DEAD_LETTERS = Meter("dead_letters", "counter", "Records that Postgres rejected and that are kept as dead letters.")
REFUSED = Meter("refused_writes", "counter", "Writes the journal had no room for, by what they are.", "kind",
                ("turn", "memory"))  # fmt: skip
RECOVERED = Meter("refused_writes_recovered", "counter", "Refused writes that were recovered.")
LOST = Meter("refused_writes_lost", "counter", "Refused writes that were found nowhere again.")
FAILED_HOOKS = Meter("failed_hooks", "counter", "Hook calls that failed; the agent went on without the memory.")
EMBEDDING_SECONDS = Meter(
    "embedding_seconds",
    "histogram",
    "Time that an embedding took, by what was embedded: a question, or a batch of rows.",
    "what",
    ("question", "rows"),
)
EMBEDDING_FAILURES = Meter(
    "embedding_failures", "counter", "Embeddings that failed, by what was embedded.", "what", ("question", "rows")
)
EMBEDDED_ROWS = Meter("embedded_rows", "counter", "Rows that got their vector.")
RECALL_SECONDS = Meter(
    "recall_seconds",
    "histogram",
    "Time that recall took, by stage: embedding the question, searching, looking up neighbours and sizes, all.",
    "stage",
    ("embed", "search", "extras", "total"),
)
CALLERS = ("prefetch", "tool")
RECALLS = Meter("recalls", "counter", "Questions to the memory, by who asked.", "caller", CALLERS)
HITS = Meter("recall_hits", "counter", "Hits that were given, by who asked.", "caller", CALLERS)
EMPTY_RECALLS = Meter(
    "empty_recalls", "counter", "Questions that found nothing to give, by who asked.", "caller", CALLERS
)
DEGRADED_RECALLS = Meter(
    "degraded_recalls", "counter", "Answers that had to do without something, such as vectors.", "caller", CALLERS
)
FAILED_RECALLS = Meter("failed_recalls", "counter", "Questions that got no answer, by who asked.", "caller", CALLERS)
INJECTED = Meter("injected_characters", "counter", "Characters put before the model's turn by prefetch.")
BREAKERS = ("database writes", "database reads", "embedding of new rows", "embedding of questions")
BREAKS = Meter("breaker_openings", "counter", "Outages that a breaker has seen begin, by breaker.", "breaker", BREAKERS)

METERS: Final = (
    BATCHES, BATCH_SECONDS, RECORDS, ROWS, STORED_BYTES, DEAD_LETTERS, REFUSED, RECOVERED, LOST, FAILED_HOOKS,
    EMBEDDING_SECONDS, EMBEDDING_FAILURES, EMBEDDED_ROWS,
    RECALL_SECONDS, RECALLS, HITS, EMPTY_RECALLS, DEGRADED_RECALLS, FAILED_RECALLS, INJECTED, BREAKS,
)  # fmt: skip


class Meters:
    """The numbers of one process and home; any thread may put one down."""

    def __init__(self) -> None:
        self._noted: deque[tuple[str, float]] = deque()
        self._totals: dict[str, float] = {}
        self._adding = threading.Lock()
        renew_after_fork(self)

    def count(self, meter: Meter, amount: float = 1, of: str = "") -> None:
        """So many more; `of` is the label's value."""
        self.put(f"{meter.name}{SEPARATOR}{of}" if of else meter.name, amount)

    def observe(self, meter: Meter, seconds: float, of: str = "") -> None:
        """It took so long."""
        name = f"{meter.name}{SEPARATOR}{of}{SEPARATOR}"
        place = bisect_left(BUCKETS, seconds)
        self.put(f"{name}{BUCKETS[place] if place < len(BUCKETS) else BEYOND}", 1)
        self.put(f"{name}{SUM}", seconds)

    @contextmanager
    def timing(self, meter: Meter, of: str = "") -> Iterator[None]:
        """Observe how long the block takes, whether or not it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.observe(meter, time.perf_counter() - started, of)

    def totals(self) -> Mapping[str, float]:
        """All numbers so far: counters by name and label, times by name, label and bucket, and their sums."""
        with self._adding:
            self._add_up()
            return dict(self._totals)

    def after_fork_in_child(self) -> None:
        """The child counts what it does itself."""
        self._noted = deque()
        self._totals = {}
        self._adding = threading.Lock()

    def put(self, name: str, amount: float) -> None:
        """So many more of what stands under this name in the totals."""
        self._noted.append((name, amount))
        if len(self._noted) > MOST_NOTED and self._adding.acquire(blocking=False):
            try:
                self._add_up()
            finally:
                self._adding.release()

    def _add_up(self) -> None:
        for _ in range(len(self._noted)):
            name, amount = self._noted.popleft()
            self._totals[name] = self._totals.get(name, 0) + amount
