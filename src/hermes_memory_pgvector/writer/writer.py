"""The thread that empties the journal into Postgres.

A batch is stored in one transaction that also moves the journal's watermark, so each record arrives exactly once. The
watermark in Postgres is the only mark of progress: reading goes on from there, even after a failover has lost commits.
Journals of dead processes are adopted, many in one transaction. When Postgres rejects a batch, the writer narrows it
down to the item at fault and keeps that as a dead letter; the rest is stored. A journal that holds a record of a newer
version of this package is left, from that record on, to a process of that version.
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
from hermes_memory_pgvector.journal import ADOPTED_TOGETHER, Journal, Record
from hermes_memory_pgvector.meters import Meters
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.service import Service
from hermes_memory_pgvector.store import schema, watermarks
from hermes_memory_pgvector.store.current_model import CurrentModel
from hermes_memory_pgvector.values import WriteItem
from hermes_memory_pgvector.writer.intake import BATCH_ITEMS, Intake
from hermes_memory_pgvector.writer.setbacks import Setbacks
from hermes_memory_pgvector.writer.tally import Tally

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
    """Records that were lost when it did."""
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
        current_model: CurrentModel,
        settings: Settings,
        *,
        home_id: str,
        on_stored: Callable[[], None],
        on_adopted: Callable[[], None] = lambda: None,
        heal_schema: Callable[[], bool] = lambda: False,
        meters: Meters | None = None,
    ) -> None:
        super().__init__("hermes-pgvector-writer", first_wait=0.05)
        self._journal = journal
        self._pool = pool
        self._home_id = home_id
        self._batch_records = self._window = settings.write_queue_maxsize
        self._portion = MAX_PORTION
        """Fewer records after a batch that took too long."""
        self._on_stored = on_stored
        self._heal_schema = heal_schema
        self._on_adopted = on_adopted
        self._tally = Tally(meters or Meters())
        self.breaker = Breaker("database writes", threshold=1, on_open=self._outage_begins, on_close=self._outage_ends)
        self._intake = Intake(journal, pool, current_model, settings, tally=self._tally)
        self._retired_at = 0.0
        self._marks: dict[str, int] = {}
        self._progress = threading.Condition()
        self._visited_at = 0.0
        self._visit_seconds = VISIT_SECONDS
        self._checked_at = 0.0
        self._arrived_at = 0.0
        self._finished: dict[str, int] = {}
        """Fully stored journals of dead processes, with their watermarks."""
        self._for_newer: dict[str, int] = {}
        """Journals whose next record is of a newer version, with their watermarks."""
        self._stored = 0
        self._dead = 0
        self._setbacks = Setbacks()
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
            return 0.0 if self._own_waits() else self._quiet_seconds()
        return max(0.05, self.breaker.retry_in())

    @property
    def has_verified(self) -> bool:
        """Whether the schema was found to fit."""
        return self._is_verified

    def nudge(self) -> None:
        """A record was appended. During an outage the writer has its own schedule, so it is not woken."""
        if not self.breaker.is_open and not self._wake.is_set():
            self._wake.set()

    def flush(self, deadline: Deadline) -> bool:
        """Wait until everything appended so far has arrived; False when the deadline came first."""
        writer, goal = self._journal.writer, self._journal.last_seq
        self.wake()
        with self._progress:
            while self._marks.get(writer, 0) < goal and self._journal.writer == writer:
                if deadline.is_over or not self.is_running:
                    return False
                self._progress.wait(min(0.2, deadline.remaining()))
        return True

    def status(self) -> WriterStatus:
        """A snapshot for status and doctor."""
        waiting = max(0, self._journal.last_seq - self._marks.get(self._journal.writer, 0))
        status = self.breaker.status()
        return WriterStatus(
            self._stored,
            self._dead,
            self._setbacks.again,
            self._setbacks.gone,
            waiting,
            self._last_error,
            status,
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
        return self._journal.last_seq > self._marks.get(self._journal.writer, 0)

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
        if self._is_check_due(now) or self._setbacks.are_new:
            self._checked_at = now
            self._recheck(own)
        for writer, first, last in self._journal.take_no_longer_kept():
            self._setbacks.no_longer_kept(writer, first, last)
        self._setbacks.tell()

    def _visit_others(self, own: str) -> None:
        found = self._journal.writers()
        there = set(found)
        self._finished = {writer: mark for writer, mark in self._finished.items() if writer in there}
        self._marks = {writer: mark for writer, mark in self._marks.items() if writer in there or writer == own}
        for writer in self._for_newer.keys() - there:
            self._is_read_on(writer)
        new = [each for each in found if each != own and each not in self._finished and each not in self._for_newer]
        self._visit(new)
        self._visit_seconds = visit_seconds(sum(each not in self._finished for each in new))

    def _visit(self, writers: Sequence[str]) -> None:
        """Drain these journals as far as their processes are dead."""
        for start in range(0, len(writers), ADOPTED_TOGETHER):
            if self.is_stopping:
                return
            adopted = self._journal.adopt_all(writers[start : start + ADOPTED_TOGETHER])
            try:
                if adopted and self._drain_adopted(list(adopted)):
                    self._on_adopted()
            finally:
                for adoption in adopted.values():
                    adoption.release()
            if self._own_waits():
                self._drain(self._journal.writer)

    def _drain_adopted(self, writers: list[str]) -> int:
        """Store what adopted journals hold, which is usually little; return the number of records."""
        total = 0
        while writers and not self.is_stopping:
            before = len(writers)
            if before > 1:
                try:
                    finished, count = self._drain_together(writers)
                except DatabaseRejected:
                    # One of them is at fault: halving finds it.
                    total += self._drain_adopted(writers[: before // 2])
                    writers = writers[before // 2 :]
                    continue
                total += count
                self._finish(finished)
                writers = [each for each in writers if each not in self._finished and each not in self._for_newer]
            if len(writers) == before:
                # A long one, or the only one.
                first, *writers = writers
                total += self._drain(first)
                if not self.is_stopping and first not in self._for_newer:
                    self._finish([first])
        return total

    def _finish(self, writers: Sequence[str]) -> None:
        finished = {writer: self._marks[writer] for writer in writers}
        self._finished.update(finished)
        self._journal.retire_all(finished, self._end)

    def _drain(self, writer: str) -> int:
        """Store what a journal holds; return the number of records."""
        total = 0
        while not self.is_stopping and (count := self._drain_batch(writer)):
            total += count
            if writer != self._journal.writer and self._own_waits():
                self._drain_batch(self._journal.writer)
        self._intake.ahead.clear()
        return total

    def _recheck(self, own: str) -> None:
        """Compare the watermarks with those we remember: a failover may have set them back."""
        is_watched = self._arrived_at and time.monotonic() - self._arrived_at < WATCHED_SECONDS
        if not is_watched and not self._finished:
            return
        with self._pool.connection(Deadline.after(BATCH_SECONDS)) as connection:
            marks = watermarks.read(connection, [own, *self._finished, *self._for_newer])
        for writer in [own, *self._finished]:
            self._compare(writer, marks.get(writer, 0))
        for writer, mark in list(self._for_newer.items()):
            if marks.get(writer, 0) != mark:
                self._is_read_on(writer)
        lost = [writer for writer, mark in self._finished.items() if marks.get(writer, 0) != mark]
        for writer in lost:
            del self._finished[writer]
        self._visit(lost)
        self._journal.retire_all({each: marks[each] for each in self._finished if each in marks}, self._end)
        self._marks[own] = marks.get(own, 0)
        self._journal.retire(own, self._marks[own])
        if self._own_waits() and not self._drain(own):
            self._go_on_behind(own, self._journal.last_seq)

    def _compare(self, writer: str, mark: int) -> None:
        """Note how far a watermark has gone back, as after a restore or a failover.

        Where agents were stopped for a restore, no process remembers the watermarks, but the files of a journal do.
        """
        known = self._marks[writer] if writer in self._marks else self._journal.once_stored(writer)
        if mark >= known:
            return
        self._marks[writer] = mark
        self._setbacks.went_back(writer, mark=mark, known=known, on_disk=self._journal.count(writer, mark, known))

    def _go_on_behind(self, own: str, last: int) -> None:
        """Move the watermark past records that are neither in the database nor on disk: they cannot arrive."""
        with self._transaction([own]) as (connection, marks):
            if marks[own] < last and not self._journal.depth(own, marks[own]).records:
                marks[own] = last
                watermarks.advance(connection, marks)
        self._arrived(marks, 0)

    def _drain_batch(self, writer: str) -> int:
        """Store the next records of a journal, as many as Postgres takes together; return how many."""
        most = min(self._window, self._portion)
        ahead = self._intake.ahead
        while True:
            try:
                with self._transaction([writer]) as (connection, marks):
                    mark = marks[writer]
                    records = ahead.take(writer, mark) or self._read(writer, mark, most)
                    records, most = records[:most], min(most, len(records)) or most
                    # In a backlog, larger batches share the cost of a transaction among more records.
                    is_full = len(records) >= self._batch_records
                    self._window = self._batch_records * (BACKLOG_BATCHES if is_full else 1)
                    batch = self._intake.new_batch(connection)
                    taken = self._intake.take(connection, batch, records)
                    if is_full and len(taken) == len(records):
                        after = records[-1].seq
                        ahead.expect(writer, after, self._read(writer, after, self._window))
                    if taken:
                        batch.store(while_waiting=ahead)
                        mark = taken[-1].seq
                        watermarks.advance(connection, {writer: mark})
            except DatabaseRejected:
                if most == 1:
                    return self._store_apart(writer)
                most //= 2
                continue
            self._arrived({writer: mark}, len(taken))
            return len(taken)

    def _drain_together(self, writers: Sequence[str]) -> tuple[list[str], int]:
        """Store the next records of several journals in one transaction; return the finished journals and the count."""
        room, size = min(self._batch_records, self._portion), BATCH_BYTES
        finished: list[str] = []
        moved: dict[str, int] = {}
        count = 0
        with self._transaction(writers) as (connection, marks):
            batch = self._intake.new_batch(connection)
            for writer in writers:
                while room > 0 and size > 0 and batch.size < BATCH_ITEMS:
                    records = self._read(writer, marks[writer], room)
                    taken = self._intake.take(connection, batch, records)
                    if not records:
                        finished.append(writer)
                    if not taken:
                        break
                    marks[writer] = moved[writer] = taken[-1].seq
                    count += len(taken)
                    room -= len(taken)
                    size -= sum(len(record.payload) for record in taken)
            if moved:
                batch.store()
                watermarks.advance(connection, moved)
        self._arrived(marks, count)
        return finished, count

    def _store_apart(self, writer: str) -> int:
        """Store the next record, which was rejected as a whole, item by item."""
        stored = 0
        with self._transaction([writer]) as (connection, marks):
            for record in self._read(writer, marks[writer], 1):
                if self._intake.store_rejected(connection, record):
                    stored, marks[writer] = 1, record.seq
                    watermarks.advance(connection, marks)
        self._arrived(marks, stored)
        return stored

    @contextmanager
    def _transaction(self, writers: Sequence[str]) -> Iterator[tuple[Connection, dict[str, int]]]:
        """A transaction that locks the watermarks of journals."""
        self._intake.begin()
        deadline = Deadline.after(BATCH_SECONDS)
        try:
            with self._pool.transaction(deadline) as connection:
                marks = watermarks.lock(connection, writers, self._home_id)
                for writer, mark in marks.items():
                    self._compare(writer, mark)
                yield connection, marks
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

    def _end(self, writers: list[str]) -> None:
        """Everything in these journals has arrived and their last files are about to go: end their watermarks, too."""
        with self._pool.transaction(Deadline.after(BATCH_SECONDS)) as connection:
            watermarks.end(connection, writers)

    def _arrived(self, marks: dict[str, int], count: int) -> None:
        """The transaction under way is committed."""
        now = time.monotonic()
        outcome = self._intake.outcome
        if len(marks) == 1 and (count < self._batch_records or now - self._retired_at >= RETIRE_SECONDS):
            # In a backlog the reader is a batch ahead, and finding the watermark again means walking the files.
            self._retired_at = now
            for writer, mark in marks.items():
                self._journal.retire(writer, mark, self._end)
        if count >= self._portion:
            self._portion = min(MAX_PORTION, 2 * self._portion)
        self._arrived_at = now
        self._log_burials(outcome.burials)
        self._dead += len(outcome.burials)
        self._tally.count(count, len(outcome.burials))
        for writer, mark in outcome.stops.items():
            if writer not in self._for_newer:
                logger.warning("the journal of %s continues with %s", writer, FOR_NEWER)
            self._for_newer[writer] = mark
        with self._progress:
            self._marks.update(marks)
            self._stored += count
            self._progress.notify_all()
        if self.breaker.is_open:
            self._outage_stored += count
            if not self._own_waits():
                self.breaker.succeeded()
        if count:
            self._on_stored()

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
