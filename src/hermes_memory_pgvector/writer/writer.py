"""The thread that empties the journal into Postgres.

A batch is stored in one transaction that also moves the journal's mark, so each record arrives exactly once. The mark
in Postgres is the only one: reading goes on from there, even after a failover has lost commits, and reading from the
beginning is always right. Journals of dead processes are adopted one after the other. When Postgres rejects a batch,
the writer narrows it down to the item at fault and keeps that as a dead letter; the rest is stored. A journal that
holds a record of a newer version of this package is left, from that record on, to a process of that version.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hermes_memory_pgvector.breaker import Breaker, BreakerStatus
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    DatabaseDenied,
    DatabaseError,
    DatabaseRejected,
    DatabaseUnavailable,
    Held,
    MemoryPluginError,
    SchemaError,
)
from hermes_memory_pgvector.journal import FIRST_POSITION, Journal, Record, file_number
from hermes_memory_pgvector.meters import BATCHES, DEAD_LETTERS, RECORDS, ROWS, Meters
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.service import Service
from hermes_memory_pgvector.store import schema, watermarks
from hermes_memory_pgvector.values import WriteItem
from hermes_memory_pgvector.writer.intake import Intake, Outcome

logger = logging.getLogger(__name__)

BATCH_BYTES = 4 * 1024 * 1024
BATCH_SECONDS = 60.0
BACKLOG_BATCHES = 2
HOLD_SECONDS = 30.0
HELD_SECONDS = 5.0
"""Looking again is cheap: the operator's decision is in a small file."""
VISIT_SECONDS = 5.0
VISITED_EACH_SECOND = 1.0
"""How many journals of living processes each process tries to adopt in a second, however many there are."""
RECHECK_SECONDS = 30.0
RECHECK_SHARE = 0.5
MOST_RECHECK_SECONDS = 240.0
"""The longer nothing was stored, the less often watermarks are compared: after this part of that time, bounded."""
WATCHED_SECONDS = 1000.0
"""A little longer than drained segments are kept: after that nothing could be stored again."""
IDLE_SECONDS = 5.0
TURN_SECONDS = 2.0
"""All homes of a process share the writer's thread."""
RETIRE_SECONDS = 2.0
MAX_PORTION = 1 << 20
FOR_NEWER = "records of a newer version of this package; they wait for a process of that version"


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """How the writer is doing."""

    stored: int
    dead: int
    again: int
    """Records that were stored again because the database went back to an earlier state."""
    gone: int
    """Journals of which it lacks records that were in files kept no longer."""
    waiting: int
    last_error: str
    breaker: BreakerStatus
    for_newer: int
    """Journals of other processes that wait for a newer version of this package."""


class Writer(Service):
    """Drains this process's journal, and those that dead processes have left."""

    def __init__(
        self,
        journal: Journal,
        pool: Pool,
        settings: Settings,
        *,
        home_id: str,
        on_stored: Callable[[], None],
        on_adopted: Callable[[], None] = lambda: None,
        heal_schema: Callable[[], bool] = lambda: False,
        meters: Meters | None = None,
    ) -> None:
        super().__init__("hermes-pgvector-writer", database=settings.dsn, first_wait=0.05)
        self._journal = journal
        self._pool = pool
        self._home_id = home_id
        self._batch_records = self._window = settings.batch_records
        self._portion = MAX_PORTION
        """Fewer records after a batch that took too long."""
        self._on_stored = on_stored
        self._heal_schema = heal_schema
        self._on_adopted = on_adopted
        self._meters = meters or Meters()
        self.breaker = Breaker("database writes", threshold=1, on_open=self._outage_begins, on_close=self._outage_ends)
        self._intake = Intake(journal, pool, settings)
        self._retired_at = 0.0
        self._marks: dict[str, int] = {}
        self._progress = threading.Condition()
        self._visited_at = 0.0
        """0 when a visit was cut short."""
        self._visit_seconds = VISIT_SECONDS
        self._checked_at = 0.0
        self._arrived_at = 0.0
        self._finished: dict[str, int] = {}
        """Fully stored journals of dead processes, with their watermarks."""
        self._for_newer: dict[str, int] = {}
        """Journals whose next record is of a newer version, with their watermarks."""
        self._stored = 0
        self._dead = 0
        self._own_stored = ("", 0)
        """This process's journal, and how many records of it are stored."""
        self._again: dict[str, int] = {}
        """Journals that the database went back on: how many records of each are stored again."""
        self._gone: set[str] = set()
        self._last_error = ""
        self._is_verified = False
        self._logged_news = ""
        self._outage_stored = 0

    def run_once(self) -> float:
        """Store what waits; after a failure, try again after a pause."""
        if not self._is_due():
            return self._quiet_seconds()
        if not self.breaker.allows():
            return max(0.05, self.breaker.retry_in())
        try:
            self._verify()
            self._drain_all()
        except (DatabaseDenied, SchemaError, Held) as error:
            if isinstance(error, SchemaError) and self._heal_schema():
                # The tables are there now, so nobody is told to make them.
                self.breaker.released()
                return 0.0
            self._note(error)
            self.breaker.failed(str(error), hold_seconds=HELD_SECONDS if isinstance(error, Held) else HOLD_SECONDS)
        except MemoryPluginError as error:
            self._note(error)
            self.breaker.failed(str(error))
        else:
            self.breaker.succeeded()
            return 0.0 if self._own_waits() or not self._visited_at else self._quiet_seconds()
        return max(0.05, self.breaker.retry_in())

    @property
    def has_verified(self) -> bool:
        """Whether the schema was found to fit."""
        return self._is_verified

    def nudge(self) -> None:
        """A record was appended. During an outage the writer has its own schedule, so it is not woken."""
        if not self.breaker.is_open:
            self.wake()

    def flush(self, deadline: Deadline) -> bool:
        """Wait until everything appended so far has arrived; False when the deadline came first."""
        writer, goal = self._journal.writer, self._journal.end
        self.wake()
        with self._progress:
            while self._marks.get(writer, 0) < goal and self._journal.writer == writer:
                if deadline.is_over or not self.is_running:
                    return False
                self._progress.wait(min(0.2, deadline.remaining()))
        return True

    def status(self) -> WriterStatus:
        """A snapshot for status and doctor."""
        writer, stored = self._own_stored
        waiting = self._journal.appended - (stored if writer == self._journal.writer else 0)
        return WriterStatus(
            self._stored,
            self._dead,
            sum(self._again.values()),
            len(self._gone),
            max(1, waiting) if self._own_waits() else 0,
            self._last_error,
            self.breaker.status(),
            for_newer=len(self._for_newer),
        )

    @property
    def has_delivered(self) -> bool:
        """Whether everything appended so far is stored."""
        return not self._own_waits()

    @property
    def mark(self) -> int:
        """How far this process's journal has arrived."""
        return self._marks.get(self._journal.writer, 0)

    @property
    def themes(self) -> frozenset[str]:
        """The themes that this process has written to, by the names it knows them by."""
        return frozenset(self._intake.themes)

    def _is_due(self) -> bool:
        """Whether there may be anything to do; an idle process holds no connection."""
        now = time.monotonic()
        is_visit_due = now - self._visited_at >= self._visit_seconds
        return self._own_waits() or is_visit_due or self._is_check_due(now)

    def _is_check_due(self, now: float) -> bool:
        """Whether to compare watermarks again."""
        return now - self._checked_at >= self._recheck_seconds(now)

    def _recheck_seconds(self, now: float) -> float:
        return max(RECHECK_SECONDS, min(MOST_RECHECK_SECONDS, RECHECK_SHARE * (now - self._arrived_at)))

    def _quiet_seconds(self) -> float:
        """How long nothing is to be done unless a record comes in, which wakes this thread."""
        now = time.monotonic()
        next_check = self._checked_at + self._recheck_seconds(now)
        return max(IDLE_SECONDS, min(self._visited_at + self._visit_seconds, next_check) - now)

    def _own_waits(self) -> bool:
        return self._journal.end > self._marks.get(self._journal.writer, 0)

    def _verify(self) -> None:
        """Make sure that the database takes records; it is asked once, and not while there is nothing to store."""
        if self._is_verified or not (self._own_waits() or self._journal.writers()):
            return
        with self._pool.connection(Deadline.after(BATCH_SECONDS)) as connection:
            state = schema.verify(connection)
        news = state.news
        self._is_verified = True
        if news and news != self._logged_news:
            logger.warning("%s", news)
        self._logged_news = news

    def _drain_all(self) -> None:
        own = self._journal.writer
        if self._own_waits():
            self._drain(own)
        now = time.monotonic()
        if now - self._visited_at >= self._visit_seconds:
            self._visited_at = now
            self._visit_others(own)
        if self._is_check_due(now):
            self._checked_at = now
            self._recheck(own)

    def _visit_others(self, own: str) -> None:
        """Drain the journals whose processes are dead."""
        found = self._journal.writers()
        there = set(found)
        self._finished = {writer: mark for writer, mark in self._finished.items() if writer in there}
        self._marks = {writer: mark for writer, mark in self._marks.items() if writer in there or writer == own}
        for writer in self._for_newer.keys() - there:
            self._is_read_on(writer)
        new = [each for each in found if each != own and each not in self._finished and each not in self._for_newer]
        for writer in new:
            if self.is_stopping:
                return
            self._visit(writer)
            if self._own_waits():
                self._drain(own)
        self._visit_seconds = visit_seconds(sum(each not in self._finished for each in new))

    def _visit(self, writer: str) -> None:
        adoption = self._journal.adopt(writer)
        if adoption is None:
            return
        with adoption:
            count, is_all = self._drain(writer)
            if count:
                self._on_adopted()
            if not is_all:
                self._visited_at = 0.0
            elif writer not in self._for_newer:
                self._finished[writer] = self._marks[writer]
                self._journal.retire(writer, self._marks[writer])

    def _drain(self, writer: str) -> tuple[int, bool]:
        """Store what a journal holds, while it is this home's turn; how many records, and whether that is all."""
        total = 0
        until = time.monotonic() + TURN_SECONDS
        while not self.is_stopping and time.monotonic() < until:
            count = self._drain_batch(writer)
            if not count:
                return total, True
            total += count
            if writer != self._journal.writer and self._own_waits():
                self._drain_batch(self._journal.writer)
        return total, False

    def _recheck(self, own: str) -> None:
        """Compare the marks with those we remember: a failover may have set them back."""
        is_watched = self._arrived_at and time.monotonic() - self._arrived_at < WATCHED_SECONDS
        if not is_watched and not self._finished:
            return
        with self._pool.connection(Deadline.after(BATCH_SECONDS)) as connection:
            marks = watermarks.read(connection, [own, *self._finished, *self._for_newer])
        for writer, mark in list(self._for_newer.items()):
            if marks.get(writer, 0) != mark:
                self._is_read_on(writer)
        for writer, known in list(self._finished.items()):
            mark = marks.get(writer, 0)
            if mark == known:
                self._retire_finished(writer, mark)
            else:
                self._compare(writer, mark)
                del self._finished[writer]
                self._visit(writer)
        self._compare(own, marks.get(own, 0))
        self._journal.retire(own, self._marks[own])
        if self._own_waits():
            self._drain(own)

    def _retire_finished(self, writer: str, mark: int) -> None:
        adoption = self._journal.adopt(writer)
        if adoption is not None:
            with adoption:
                self._journal.retire(writer, mark)

    def _compare(self, writer: str, mark: int) -> None:
        """Remember a mark as the server tells it, and say so when it has gone back, as after a restore or a failover.

        Where agents were stopped for a restore, no process remembers the marks, but the files of a journal do.
        """
        is_remembered = writer in self._marks
        known = self._marks[writer] if is_remembered else self._journal.once_stored(writer)
        self._marks[writer] = mark
        if is_remembered and mark >= known:
            return
        again = self._journal.depth(writer, mark, known).records if mark < known else 0
        first = self._journal.first_kept(writer)
        # Files go once the database has what is in them, so one that is missing behind the mark was stored once.
        has_gap = file_number(first) > file_number(mark) + 1
        if not (is_remembered or again or has_gap):
            # What a drained file ends with may be no record.
            return
        is_gone = has_gap or first > max(mark, FIRST_POSITION)
        self._again[writer] = self._again.get(writer, 0) + again
        if is_gone:
            self._gone.add(writer)
        logger.warning(
            "the database has gone back, as after a restore: it lacks records of the journal of %s; "
            "%d are stored again from its files%s",
            writer,
            again,
            ", and those in files that are kept no longer are gone" if is_gone else "",
        )

    def _drain_batch(self, writer: str) -> int:
        """Store the next records of a journal, as many as Postgres takes together; return how many."""
        most = min(self._window, self._portion)
        while True:
            end = self._journal.end if writer == self._journal.writer else 0
            try:
                with self._transaction(writer) as (connection, mark):
                    records = self._read(writer, mark, most)
                    most = min(most, len(records)) or most
                    # In a backlog, larger batches share the cost of a transaction among more records.
                    is_full = len(records) >= self._batch_records
                    self._window = self._batch_records * (BACKLOG_BATCHES if is_full else 1)
                    batch = self._intake.new_batch(connection)
                    taken = self._intake.take(connection, batch, records)
                    if taken:
                        batch.store()
                    # What lies before the end and is no record cannot arrive.
                    arrived = taken[-1].end if taken else mark if records else max(mark, end)
                    if arrived != mark:
                        watermarks.advance(connection, writer, arrived)
            except DatabaseRejected:
                if most == 1:
                    return self._store_apart(writer)
                most //= 2
                continue
            self._arrived(writer, arrived, len(taken))
            return len(taken)

    def _store_apart(self, writer: str) -> int:
        """Store the next record, which was rejected as a whole, item by item."""
        stored = 0
        with self._transaction(writer) as (connection, mark):
            for record in self._read(writer, mark, 1):
                if self._intake.store_rejected(connection, record):
                    stored, mark = 1, record.end
                    watermarks.advance(connection, writer, mark)
        self._arrived(writer, mark, stored)
        return stored

    @contextmanager
    def _transaction(self, writer: str) -> Iterator[tuple[Connection, int]]:
        """A transaction that locks the mark of a journal."""
        self._intake.begin()
        deadline = Deadline.after(BATCH_SECONDS)
        try:
            with self._pool.transaction(deadline) as connection:
                mark = watermarks.lock(connection, writer, self._home_id)
                self._compare(writer, mark)
                yield connection, mark
        except DatabaseUnavailable:
            if deadline.is_over:
                # The same batch would take as long again.
                self._portion = max(1, min(self._portion, self._window) // 2)
            raise

    def store(self, connection: Connection, writer: str, items: Sequence[WriteItem]) -> None:
        """Store items that come from no journal, within the caller's transaction."""
        self._intake.store_told(connection, writer, items)

    def _read(self, writer: str, after: int, most: int) -> list[Record]:
        return self._journal.read(writer, after, max_records=most, max_bytes=BATCH_BYTES)

    def _is_read_on(self, writer: str) -> None:
        """Another process has drained a journal further, or it is gone."""
        if self._for_newer.pop(writer, None) is not None:
            logger.warning("the journal of %s no longer waits for a newer version of this package", writer)

    def _arrived(self, writer: str, mark: int, count: int) -> None:
        """The transaction under way is committed."""
        now = time.monotonic()
        outcome = self._intake.outcome
        if count < self._batch_records or now - self._retired_at >= RETIRE_SECONDS:
            self._retired_at = now
            self._journal.retire(writer, mark)
        if count >= self._portion:
            self._portion = min(MAX_PORTION, 2 * self._portion)
        self._arrived_at = now
        self._log_burials(outcome.burials)
        self._dead += len(outcome.burials)
        self._count(count, outcome)
        if outcome.is_stopped:
            if writer not in self._for_newer:
                logger.warning("the journal of %s continues with %s", writer, FOR_NEWER)
            self._for_newer[writer] = mark
        with self._progress:
            self._marks[writer] = mark
            self._stored += count
            if writer == self._journal.writer:
                before = self._own_stored[1] if self._own_stored[0] == writer else 0
                self._own_stored = (writer, before + count)
            self._progress.notify_all()
        if self.breaker.is_open:
            self._outage_stored += count
            if not self._own_waits():
                self.breaker.succeeded()
        if count:
            self._on_stored()

    def _count(self, count: int, outcome: Outcome) -> None:
        """For operators: records, and the rows made of them."""
        if count:
            self._meters.count(BATCHES)
            self._meters.count(RECORDS, count)
        if outcome.burials:
            self._meters.count(DEAD_LETTERS, len(outcome.burials))
        for kind, number in outcome.kinds.items():
            self._meters.count(ROWS, number, kind)

    def _log_burials(self, burials: Sequence[tuple[str, str]]) -> None:
        for record, reason in burials:
            logger.warning("record %s was rejected and is kept as a dead letter: %s", record, reason)

    def _note(self, error: MemoryPluginError) -> None:
        self._last_error = str(error)
        if isinstance(error, DatabaseError | SchemaError):
            # The server may have changed, and its schema with it.
            self._is_verified = False

    def _outage_begins(self, status: BreakerStatus) -> None:
        self._outage_stored = 0
        logger.warning("%s; memories wait in the journal", status.reason)

    def _outage_ends(self, status: BreakerStatus) -> None:
        seconds = time.time() - (status.since or time.time())
        logger.warning(
            "Postgres takes writes again after %.0f s; %d waiting records were stored", seconds, self._outage_stored
        )


def visit_seconds(living: int) -> float:
    """How long to wait before the journals of others are visited again, so many of which belong to living processes.

    All of them visit each other, so the more there are, the sooner somebody finds a journal that was left: each may
    come less often, and together they do not spend more time on it than a few.
    """
    return max(VISIT_SECONDS, living / VISITED_EACH_SECOND)
