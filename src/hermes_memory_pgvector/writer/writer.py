"""The thread that empties the journal into Postgres.

A batch is stored in one transaction that also moves the journal's mark, so each record arrives exactly once. The mark
in Postgres is the only one: reading goes on from there, even after a failover has lost commits, and reading from the
beginning is always right. Journals of dead processes are adopted one after the other. When Postgres rejects a batch,
the writer narrows it down to the item at fault and keeps that as a dead letter; the rest is stored. A journal that
holds a record of a newer version of this package is left, from that record on, to a process of that version. Each of
several buckets has its own mark and transaction: one that is away holds back its own themes alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

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
from hermes_memory_pgvector.journal import Journal, Record
from hermes_memory_pgvector.meters import BATCHES, DEAD_LETTERS, RECORDS, Meters
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.service import Service
from hermes_memory_pgvector.store import schema, watermarks
from hermes_memory_pgvector.store.undone import UndoneTurns
from hermes_memory_pgvector.values import WriteItem
from hermes_memory_pgvector.writer.intake import Intake
from hermes_memory_pgvector.writer.progress import Progress

logger = logging.getLogger(__name__)

BATCH_BYTES = 4 * 1024 * 1024
BATCH_SECONDS = 60.0
HOLD_SECONDS = 30.0
HELD_SECONDS = 5.0
"""Looking again is cheap: the operator's decision is in a small file."""
VISIT_SECONDS = 5.0
RECHECK_SECONDS = 30.0
RECHECK_SHARE = 0.5
MOST_RECHECK_SECONDS = 240.0
"""The longer nothing was stored, the less often marks are compared: after this part of that time, bounded."""
WATCHED_SECONDS = 1000.0
"""A little longer than drained segments are kept: after that nothing could be stored again."""
IDLE_SECONDS = 5.0
TURN_SECONDS = 2.0
"""All homes of a process share the writer's thread."""
RETIRE_SECONDS = 2.0
PROBE_SECONDS = 10.0
FOR_NEWER = "records of a newer version of this package; they wait for a process of that version"


class _Dealt(MemoryPluginError):
    """The database has another number of buckets than when it was verified: nothing of this transaction counts."""


class Writer(Service):
    """Drains this process's journal, and those that dead processes have left."""

    def __init__(
        self,
        journal: Journal,
        pool: Pool,
        settings: Settings,
        *,
        database: str = "",
        home: str | None = None,
        home_id: str,
        undone: UndoneTurns,
        on_stored: Callable[[], None],
        on_adopted: Callable[[], None] = lambda: None,
        heal_schema: Callable[[], bool] = lambda: False,
        meters: Meters | None = None,
    ) -> None:
        super().__init__("hermes-pgvector-writer", database=database, home=home, first_wait=0.05)
        self._journal = journal
        self._pool = pool
        self._home_id = home_id
        self._batch_records = self._most = settings.batch_records
        """How many records a transaction takes at most; fewer after one that took too long."""
        self._on_stored = on_stored
        self._on_adopted = on_adopted
        self._heal_schema = heal_schema
        self._meters = meters or Meters()
        self.breaker = Breaker("database writes", threshold=1, on_open=self._outage_begins, on_close=self._outage_ends)
        self._intake = Intake(journal, settings, undone)
        self.progress = Progress(journal)
        self.away: dict[int, Breaker] = {}
        """The buckets that have failed, each with what keeps us from trying it all the time."""
        self._finished: dict[str, dict[int, int]] = {}
        """Journals of dead processes that hold nothing more for this one, with their marks."""
        self.for_newer: set[str] = set()
        """Those of them whose next record is of a newer version of this package."""
        # 0 when a visit was cut short.
        self._visited_at = self._checked_at = self._arrived_at = self._retired_at = 0.0
        self.dead = self._outage_stored = 0
        self.last_error = self._logged_news = ""
        self._is_verified = False

    def run_once(self) -> float:
        """Store what waits; after a failure, try again after a pause."""
        if not self._is_due():
            return self._quiet_seconds()
        if not self.breaker.allows():
            return max(0.05, self.breaker.retry_in())
        try:
            self._verify()
            self._drain_all()
        except _Dealt:
            # No failure: each bucket is asked how far it is.
            self._is_verified = False
            self.breaker.released()
            return 0.0
        except MemoryPluginError as error:
            if isinstance(error, SchemaError) and self._heal_schema():
                # The tables are there now, so nobody is told to make them.
                self.breaker.released()
                return 0.0
            self.last_error = str(error)
            if isinstance(error, DatabaseError | SchemaError):
                # The server may have changed, and its schema with it.
                self._is_verified = False
            waits_for_operator = isinstance(error, DatabaseDenied | SchemaError)
            hold = HELD_SECONDS if isinstance(error, Held) else HOLD_SECONDS if waits_for_operator else None
            self.breaker.failed(str(error), hold_seconds=hold)
            return max(0.05, self.breaker.retry_in())
        if self.is_stopping:
            # It may have been kept from trying.
            self.breaker.released()
        else:
            self.breaker.succeeded()
        return 0.0 if self._own_is_due() or not self._visited_at else self._quiet_seconds()

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
        self.wake()
        return self.progress.wait(deadline, lambda: self.is_running)

    def empty(self, writers: Collection[str]) -> frozenset[str]:
        """Store what ended processes have left, and remove their files at once, for a command that forgets.

        Return the journals that wait for a process of a newer version; those of living processes are left alone.
        """
        self._verify()
        for writer in writers:
            adoption = self._journal.adopt(writer)
            if adoption is None:
                continue
            with adoption:
                while not self._drain(writer)[1]:
                    pass
                if writer not in self.for_newer:
                    self._journal.retire(writer, self.progress.of(writer), at_once=True)
        return frozenset(self.for_newer)

    def store(self, connection: Connection, writer: str, items: Sequence[WriteItem]) -> None:
        """Store items that come from no journal, within the caller's transaction."""
        self._intake.store_told(connection, writer, items)

    @property
    def has_delivered(self) -> bool:
        """Whether everything appended so far is stored."""
        return not self.progress.own_waits

    @property
    def mark(self) -> int:
        """How far this process's journal has arrived."""
        return self.progress.of(self._journal.writer)

    @property
    def themes(self) -> frozenset[str]:
        """The themes that this process has written to, by the names it knows them by."""
        return frozenset(self._intake.themes)

    # When there is something to do: an idle process holds no connection.

    def _is_due(self) -> bool:
        now = time.monotonic()
        return self._own_is_due() or self._is_visit_due(now) or self._is_check_due(now)

    def _own_is_due(self) -> bool:
        """Whether own records wait for a bucket that may be tried now."""
        own, end = self._journal.writer, self._journal.end
        return any(
            self.progress.of(own, bucket) < end and not self._retry_in(bucket)
            for bucket in range(self.progress.buckets)
        )

    def _retry_in(self, bucket: int) -> float:
        return self.away[bucket].retry_in() if bucket in self.away else 0.0

    @property
    def away_now(self) -> list[int]:
        """The buckets that take nothing at the moment."""
        return [bucket for bucket, breaker in sorted(self.away.items()) if breaker.is_open]

    def _is_visit_due(self, now: float) -> bool:
        """Whether to look at others' journals: in an outage always, for only a write shows that it is over."""
        return self.breaker.is_open or now - self._visited_at >= VISIT_SECONDS

    def _is_check_due(self, now: float) -> bool:
        """Whether to compare marks again."""
        return now - self._checked_at >= self._recheck_seconds(now)

    def _recheck_seconds(self, now: float) -> float:
        return max(RECHECK_SECONDS, min(MOST_RECHECK_SECONDS, RECHECK_SHARE * (now - self._arrived_at)))

    def _quiet_seconds(self) -> float:
        """How long nothing is to be done unless a record comes in, which wakes this thread."""
        now = time.monotonic()
        next_check = self._checked_at + self._recheck_seconds(now)
        quiet = max(IDLE_SECONDS, min(self._visited_at + VISIT_SECONDS, next_check) - now)
        return min([quiet, *(max(0.05, self._retry_in(bucket)) for bucket in self.away_now)])

    def _verify(self) -> None:
        """Make sure that the database takes records; it is asked once, and not while there is nothing to store."""
        if self._is_verified or not (self.progress.own_waits or self._journal.writers()):
            return
        with self._pool.connection(Deadline.after(BATCH_SECONDS)) as connection:
            news = schema.verify(connection).news
            buckets.forget(connection)
            count = buckets.layout(connection, may_ask=True).count
        if self.progress.deal(count):
            # The tables have been dealt to buckets: each has its own marks.
            self._finished, self.away = {}, {}
        self._is_verified = True
        if news and news != self._logged_news:
            logger.warning("%s", news)
        self._logged_news = news

    # Which journal.

    def _drain_all(self) -> None:
        own = self._journal.writer
        if self.progress.own_waits:
            self._drain(own)
        now = time.monotonic()
        if self._is_visit_due(now):
            self._visited_at = now
            self._visit_others(own)
        if self._is_check_due(now):
            self._checked_at = now
            self._recheck(own)

    def _visit_others(self, own: str) -> None:
        """Drain the journals whose processes are dead."""
        there = set(self._journal.writers())
        for writer in self._finished.keys() - there:
            self._read_on(writer)
        self.progress.keep_only({*there, own})
        for writer in sorted(there - self._finished.keys() - {own}):
            if self.is_stopping:
                return
            self._visit(writer)
            if self.progress.own_waits:
                self._drain(own)

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
                return
            self._journal.retire(writer, self.progress.of(writer))
            if not self.away_now:
                self._finished[writer] = self.progress.told(writer)

    def _recheck(self, own: str) -> None:
        """Compare the marks with those we remember: a failover may have set them back, another process moved them."""
        is_watched = self._arrived_at and time.monotonic() - self._arrived_at < WATCHED_SECONDS
        if not is_watched and not self._finished:
            return
        writers = [own, *self._finished]
        deadline = Deadline.after(BATCH_SECONDS)
        asked = buckets.each(self._pool, deadline, lambda connection: watermarks.read(connection, writers))
        self._require_same(len(asked.found) + len(asked.missing))
        marks = asked.found
        for writer, known in list(self._finished.items()):
            now = {bucket: told.get(writer, 0) for bucket, told in marks.items()}
            if any(mark != known[bucket] for bucket, mark in now.items()):
                for bucket, mark in now.items():
                    self.progress.compare(writer, mark, bucket)
                self._read_on(writer)
                self._visit(writer)
                continue
            adoption = self._journal.adopt(writer)
            if adoption is not None:
                with adoption:
                    self._journal.retire(writer, self.progress.of(writer))
        for bucket, told in marks.items():
            self.progress.compare(own, told.get(own, 0), bucket)
        self._journal.retire(own, self.mark)
        if self.progress.own_waits:
            self._drain(own)

    def _read_on(self, writer: str) -> None:
        """A journal's mark has moved, or its files are gone."""
        del self._finished[writer]
        if writer in self.for_newer:
            self.for_newer.discard(writer)
            logger.warning("the journal of %s no longer waits for a newer version of this package", writer)

    # One journal.

    def _drain(self, writer: str) -> tuple[int, bool]:
        """Store what a journal holds, while it is this home's turn; how many records, and whether that is all."""
        total = 0
        until = time.monotonic() + TURN_SECONDS
        while not self.is_stopping and time.monotonic() < until:
            count = self._drain_batch(writer)
            if not count:
                return total, True
            total += count
            if writer != self._journal.writer and self.progress.own_waits:
                self._drain_batch(self._journal.writer)
        return total, False

    def _drain_batch(self, writer: str) -> int:
        """Store the next records of a journal, in each bucket that is there; return how many."""
        if self.progress.buckets == 1:
            return self._store_next(writer, 0)
        count = sum(self._store_for(writer, bucket) for bucket in range(self.progress.buckets))
        if count:
            self._journal.retire(writer, self.progress.of(writer))
        return count

    def _store_for(self, writer: str, bucket: int) -> int:
        """Store what a bucket has of the next records of a journal, unless it is away; return how many there were."""
        away = self.away.get(bucket)
        if away is not None and not away.allows():
            return 0
        count, after = self.progress.buckets, self.progress.of(writer, bucket)
        end = self._journal.end if writer == self._journal.writer else 0
        self._intake.begin()
        records = self._read(writer, after, self._most)
        looked = self._intake.look(records, count)
        if not any(bucket in each.buckets for each in looked):
            self._note_newer(writer)
            passed = looked[-1].record.end if looked else after if records else max(after, end)
            self.progress.pass_by(writer, bucket, passed)
            if away is not None:
                away.released()
            return len(looked)
        try:
            stored = self._store_next(writer, bucket)
            if away is not None:
                away.succeeded()
        except (DatabaseUnavailable, DatabaseDenied) as error:
            self._fail(bucket, error)
            return 0
        finally:
            if away is not None:
                away.released()
        return stored

    def _fail(self, bucket: int, error: DatabaseError) -> None:
        """A bucket takes nothing: try it again later. Raises where that is so of the whole database."""
        with self._pool.connection(Deadline.after(PROBE_SECONDS)) as connection:
            schema.verify(connection)
        if bucket not in self.away:
            name = f"database writes to bucket {bucket}"
            self.away[bucket] = Breaker(name, threshold=1, on_open=_goes_away, on_close=_comes_back)
        self.away[bucket].failed(str(error), hold_seconds=HELD_SECONDS if isinstance(error, DatabaseDenied) else None)

    def _store_next(self, writer: str, bucket: int) -> int:
        """Store the next records of a journal, as many as Postgres takes together; return how many."""
        most = self._most
        while True:
            end = self._journal.end if writer == self._journal.writer else 0
            try:
                with self._transaction(writer, bucket) as (connection, mark):
                    records = self._read(writer, mark, most)
                    most = min(most, len(records)) or most
                    taken = self._intake.store(connection, records, bucket)
                    # What lies before the end and is no record cannot arrive.
                    arrived = taken[-1].end if taken else mark if records else max(mark, end)
                    if arrived != mark:
                        watermarks.advance(connection, writer, arrived)
            except DatabaseRejected:
                if most == 1:
                    return self._store_apart(writer, bucket)
                most //= 2
                continue
            self._arrived(writer, arrived, len(taken), bucket)
            return len(taken)

    def _store_apart(self, writer: str, bucket: int) -> int:
        """Store the next record, which was rejected as a whole, item by item."""
        stored = 0
        with self._transaction(writer, bucket) as (connection, mark):
            for record in self._read(writer, mark, 1):
                if self._intake.store_rejected(connection, record, bucket):
                    stored, mark = 1, record.end
                    watermarks.advance(connection, writer, mark)
        self._arrived(writer, mark, stored, bucket)
        return stored

    @contextmanager
    def _transaction(self, writer: str, bucket: int) -> Iterator[tuple[Connection, int]]:
        """A transaction that locks the mark of a journal in a bucket; with where to read on."""
        self._intake.begin()
        deadline = Deadline.after(BATCH_SECONDS)
        try:
            with self._pool.transaction(deadline, bucket=bucket) as connection:
                self._require_same(buckets.layout(connection).count)
                mark = watermarks.lock(connection, writer, self._home_id)
                self.progress.compare(writer, mark, bucket)
                yield connection, self.progress.of(writer, bucket)
        except DatabaseUnavailable:
            if deadline.is_over:
                # The same batch would take as long again.
                self._most = max(1, self._most // 2)
            raise

    def _require_same(self, count: int) -> None:
        """A connection made since may have found the tables dealt, without an error: whoever took bucket 0 for all of
        them would count records as stored that are for others.
        """
        if count != self.progress.buckets:
            raise _Dealt(f"the themes lie in {count} buckets by now")

    def _read(self, writer: str, after: int, most: int) -> list[Record]:
        return self._journal.read(writer, after, max_records=most, max_bytes=BATCH_BYTES)

    def _arrived(self, writer: str, mark: int, count: int, bucket: int) -> None:
        """The transaction under way is committed."""
        self._arrived_at = now = time.monotonic()
        burials = self._intake.burials
        for record, reason in burials:
            logger.warning("record %s was rejected and is kept as a dead letter: %s", record, reason)
        self.dead += len(burials)
        if burials:
            self._meters.count(DEAD_LETTERS, len(burials))
        is_one = self.progress.buckets == 1
        if is_one and (count < self._batch_records or now - self._retired_at >= RETIRE_SECONDS):
            self._retired_at = now
            self._journal.retire(writer, mark)
        if count >= self._most:
            self._most = min(self._batch_records, 2 * self._most)
        self._note_newer(writer)
        count = count if is_one else self._intake.stored
        self.progress.arrived(writer, mark, count, bucket)
        if self.breaker.is_open:
            self._outage_stored += count
            if count and not self.progress.own_waits:
                self.breaker.succeeded()
        if count:
            self._meters.count(BATCHES)
            self._meters.count(RECORDS, count)
            self._on_stored()

    def _note_newer(self, writer: str) -> None:
        if self._intake.is_stopped and writer not in self.for_newer:
            self.for_newer.add(writer)
            logger.warning("the journal of %s continues with %s", writer, FOR_NEWER)

    def _outage_begins(self, status: BreakerStatus) -> None:
        self._outage_stored = 0
        logger.warning("%s; memories wait in the journal", status.reason)

    def _outage_ends(self, status: BreakerStatus) -> None:
        seconds = time.time() - (status.since or time.time())
        if not self._outage_stored:
            logger.warning("after %.0f s nothing that this process could store waits for Postgres any more", seconds)
            return
        logger.warning(
            "Postgres takes writes again after %.0f s; %d waiting records were stored", seconds, self._outage_stored
        )


def _goes_away(status: BreakerStatus) -> None:
    logger.warning("%s: %s; what is for its themes waits in the journal", status.name, status.reason)


def _comes_back(status: BreakerStatus) -> None:
    logger.warning("%s: works again after %.0f s", status.name, time.time() - (status.since or time.time()))
