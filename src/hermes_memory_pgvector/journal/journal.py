"""The durable queue: once `append` has returned, the record is not lost.

One append-only series of files per process; payloads are opaque. What survives depends on the sync mode:

- `process`: survives the process, not the machine.
- `batch` (default): survives the process, loses at most the last 50 ms plus one fsync on power loss.
- `always`: survives both, costs one fsync per hook.

A record for which `append` raised is not acknowledged: it does not arrive, or, if the disk failed in the middle, it
may. Only the database knows how far the files are drained.

A helper thread opens, syncs, rotates and closes the files. While records come in it looks after them every
`sync_interval`; when nothing has happened for a second it sleeps until an append wakes it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError, ThreadUnavailable
from hermes_memory_pgvector.fork import hold_during_fork
from hermes_memory_pgvector.journal.appender import Appender, SyncMode, Urgency
from hermes_memory_pgvector.journal.lock import WriterLock, new_writer_id
from hermes_memory_pgvector.journal.reader import Reader
from hermes_memory_pgvector.journal.retention import Adoption, Retention
from hermes_memory_pgvector.journal.segment import describe, list_directory, position
from hermes_memory_pgvector.service import Service

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024
_IDLE_SECONDS = 1.0
_SLEEP_SECONDS = 30.0
_CENSUS_SECONDS = 2.0
_RETRY_SECONDS = 0.25


class JournalStats(NamedTuple):
    """What an operator sees of a journal."""

    bytes_on_disk: int
    waiting_bytes: int
    """What counts against the bound, of all writers in the directory."""
    damaged_segments: int
    last_error: str
    locks_work: bool


class _Helper(Service):
    """Runs what the journal wants done on another thread than the hooks'."""

    def __init__(self, work: Callable[[], float]) -> None:
        super().__init__("hermes-pgvector-journal")
        self._work = work

    def run_once(self) -> float:
        return self._work()


class Journal(Reader):
    """One process's journal, and access to those that other processes have left in the same directory."""

    def __init__(
        self,
        directory: Path,
        *,
        sync: SyncMode = "batch",
        max_bytes: int,
        segment_bytes: int = 4 * _MIB,
        sync_interval: float = 0.05,
        keep_seconds: float = 900.0,
        keep_bytes: int = 64 * _MIB,
        least_seconds: float = 60.0,
    ) -> None:
        self.on_append: Callable[[], None] | None = None
        """Called by the helper soon after records were appended."""
        super().__init__(directory)
        self._idle_seal_bytes = segment_bytes // 16
        self._sync_interval = sync_interval
        self._appender = Appender(directory, sync=sync, segment_bytes=segment_bytes, max_bytes=max_bytes)
        self._retention = Retention(
            self,
            keep_seconds=keep_seconds,
            # On a full disk what was drained makes room for what comes.
            keep_bytes=lambda: 0 if self._appender.lacks_disk else keep_bytes,
            least_seconds=least_seconds,
        )
        self._helper = _Helper(self._tend)
        self._appender.wake = self._helper.wake
        self._appender.revive = lambda: self._begin() if self._may_revive and self._lock is None else None
        self._lock: WriterLock | None = None
        self._writer = new_writer_id()
        self._locks_work = True
        self._may_revive = False
        self._is_closing = False
        self._closed = threading.Event()
        self._announced = self._activity = 0
        self._active_at = self._census_due = 0.0
        hold_during_fork(self)

    def open(self) -> None:
        """Create the directory, take an identity and start the helper; after a failure it may be called again."""
        with self._appender.lock:
            if self._lock is not None and self._is_closing:
                raise JournalError("the journal is still being closed")
            if self._lock is None:
                self._begin()

    def adjust(self, *, sync: SyncMode, max_bytes: int) -> None:
        """Go on under other settings."""
        with self._appender.lock:
            self._appender.adjust(sync=sync, max_bytes=max_bytes)

    def start_helper(self) -> None:
        """Start the helper if it does not run; raises ThreadUnavailable when there is no thread to be had."""
        with self._appender.lock:
            if self._lock is not None and not self._is_closing and not self._helper.is_running:
                self._helper.start()

    def append(self, payload: bytes, urgency: Urgency = Urgency.TURN) -> None:
        """Write one record; JournalFull and JournalError mean that it was not taken."""
        self._appender.append(payload, urgency)

    def close(self, deadline: Deadline) -> None:
        """Sync what is left, let go of the files and end the helper, as far as the deadline allows."""
        self._retention.release_all()
        self._may_revive = False
        self._close(deadline)

    def rest(self, deadline: Deadline) -> None:
        """Sync what is left as the process ends, and stay open for what may still come.

        A series without a record leaves no trace; should one come after all, a new series begins with it.
        """
        if self._appender.end() == 0:
            self._may_revive = True
            self._close(deadline)
            return
        while self._helper.is_running and self._appender.sync_lag() and not deadline.is_over:
            self._helper.wake()
            time.sleep(0.002)
        if not self._helper.is_running:
            self._appender.sync()

    def make_durable(self, deadline: Deadline) -> None:
        """Return when the disk has everything appended so far; JournalError when it may lack some of it."""
        failed = self._appender.failed_syncs
        self._appender.make_durable()
        # A file that was full meanwhile is synced by the helper.
        while self._appender.sync_lag() and not deadline.is_over:
            self._helper.wake()
            time.sleep(0.002)
        if self._appender.failed_syncs != failed or self._appender.sync_lag():
            raise JournalError("the journal could not be synced")

    def tell(self, text: bytes) -> None:
        """Say how this process is doing, where other processes look."""
        lock = self._lock
        if lock is not None:
            lock.tell(text)

    @property
    def writer(self) -> str:
        """This process's id in the directory."""
        return self._writer

    @property
    def end(self) -> int:
        """The position behind the newest own record, 0 before the first."""
        return self._appender.end()

    @property
    def appended(self) -> int:
        """How many records this process has appended to its series."""
        return self._appender.count

    @property
    def is_crowded(self) -> bool:
        """Whether more than half of what the journal may hold waits in it."""
        return self._appender.is_crowded

    @property
    def sync_lag_seconds(self) -> float:
        """Seconds since the oldest record that has not reached the disk was written."""
        return self._appender.sync_lag()

    def stats(self) -> JournalStats:
        """A snapshot for status and doctor; lists the directory, so not for hooks."""
        listing = list_directory(self.directory)
        return JournalStats(
            bytes_on_disk=sum(each.size for each in listing.segments) + listing.damaged_bytes,
            waiting_bytes=self._appender.waiting,
            damaged_segments=listing.damaged + len(self.damaged),
            last_error=self._appender.last_error,
            locks_work=self._locks_work,
        )

    def adopt(self, writer: str) -> Adoption | None:
        """The right to drain a dead writer; None while its process lives. The own writer needs none, and gets one.

        Where locks do not exclude, nobody can tell, so what dead processes leave waits until the home is elsewhere.
        """
        if writer == self._writer:
            return Adoption(writer, None, {})
        return self._retention.adopt(writer) if self._locks_work else None

    def retire(self, writer: str, mark: int, *, at_once: bool = False) -> None:
        """Retire what lies before a mark that the server has just confirmed; `at_once` keeps nothing of it.

        Call it with a freshly read mark only, also now and then while idle: segments go when they have been drained for
        as long as they are kept, and a server that failed over may have gone back behind an older one.
        """
        if writer == self._writer:
            self._appender.set_mark(mark)
            end, number = self._appender.end(), self._appender.active_number
            if number is not None and mark >= end >= position(number, self._idle_seal_bytes):
                # Other processes count this file as waiting until it is sealed and marked.
                self._appender.request_rotation()
            self._retention.retire(writer, mark, sealed_below=self._sealed_below, at_once=at_once)
        elif writer in self._retention.held:
            self._retention.retire(writer, mark, at_once=at_once)

    def seal(self, deadline: Deadline) -> float:
        """Go on in a new file, so that what was appended so far no longer changes; the number of the file in use.

        When the helper does not come to it in time, that is the file in use as before.
        """
        before, end = self._appender.active_number, self._appender.end()
        if before is not None and end > position(before, 0):
            self._appender.request_rotation()
            while self._appender.active_number == before and not deadline.is_over:
                time.sleep(0.01)
        return self._sealed_below

    @property
    def _sealed_below(self) -> float:
        """Own segments with a lower number never change again."""
        number = self._appender.active_number
        return math.inf if number is None else number

    def _limit(self, writer: str) -> float:
        return self._appender.end() if writer == self._writer else math.inf

    def _begin(self) -> None:
        """Take an identity: lock, first segment, helper."""
        lock: WriterLock | None = None
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(PermissionError):
                self.directory.chmod(0o700)
            while lock is None:
                self._writer = new_writer_id()
                lock = WriterLock.create(self.directory, self._writer)
            self._appender.begin(self._writer)
        except OSError as error:
            if lock is not None:
                lock.unlink()
                lock.release()
            raise JournalError(f"the journal cannot be opened ({describe(error)})") from None
        self._lock, self._locks_work = lock, lock.excludes
        self._is_closing = self._may_revive = False
        self._closed.clear()
        try:
            self._helper.start()
        except ThreadUnavailable as error:
            # Records still reach the file, which survives the process.
            self._appender.last_error = str(error)

    def _close(self, deadline: Deadline) -> None:
        if self._lock is None:
            return
        self._is_closing = True
        if not self._helper.is_running:
            self._finish()
        self._helper.wake()
        # A helper that hangs in a sync is not stopped: it finishes when the disk answers.
        if self._closed.wait(deadline.remaining()):
            self._helper.stop(deadline)

    def _finish(self) -> None:
        """Sync, close and give the identity up; a series without a record leaves no trace."""
        lock = self._lock
        if lock is not None:
            self._appender.finish()
            # Only now may the journal be opened again.
            self._lock = None
            if self._appender.end() == 0:
                lock.unlink()
            lock.release()
        self._closed.set()

    def _tend(self) -> float:
        """Helper: do what is due and say when to come again."""
        appender, pause = self._appender, self._sync_interval
        if self._is_closing:
            self._helper.end()
            self._finish()
            return 0.0
        if appender.count != self._announced:
            self._announced = appender.count
            appender.lacks_disk = False
            if self.on_append is not None:
                # A hook that woke the writer itself would wait for the GIL.
                self.on_append()
        if appender.wants_rotation and not appender.rotate():
            pause = max(pause, _RETRY_SECONDS)
        appender.sync()
        now = time.monotonic()
        if now >= self._census_due:
            self._census_due = now + _CENSUS_SECONDS
            self._look_around()
        with appender.lock:
            activity = appender.count + appender.refused
            if activity != self._activity:
                self._activity, self._active_at = activity, now
            if now - self._active_at < _IDLE_SECONDS or appender.is_dirty or appender.wants_rotation:
                return pause
            appender.is_asleep = True
            # Near the bound it matters soon when other processes have made room.
            return _CENSUS_SECONDS if appender.is_crowded else _SLEEP_SECONDS

    def _look_around(self) -> None:
        """Learn what other processes have waiting, and whether the own file is still where it was made."""
        own, number = self._writer, self._appender.active_number
        try:
            segments = list_directory(self.directory).segments
        except JournalError as error:
            self._appender.last_error = str(error)
            segments = ()
        self._appender.others_waiting = sum(
            each.size for each in segments if each.writer != own and not each.is_drained
        )
        if number is None or any((each.writer, each.number) == (own, number) for each in segments):
            return
        with self._appender.lock:
            lock = self._lock
            if lock is None or self._is_closing or own != self._writer:
                return
            logger.error(
                "the journal's files have been removed, and with them what was not in the database yet; "
                "a new series begins in the same directory"
            )
            self._appender.finish()
            lock.release()
            # Should that fail now, the next append tries again.
            self._lock, self._may_revive = None, True
            self._begin()

    def before_fork(self) -> None:
        """Finish the append under way; none begins before the fork is over."""
        self._appender.lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let appends go on."""
        self._appender.lock.release()

    def after_fork_in_child(self) -> None:
        """Have no identity until the next append: the files and the lock are the parent's."""
        was_open = self._lock is not None
        self._lock = None
        self._writer = new_writer_id()
        self._appender.abandon(self._writer)
        self._helper.after_fork_in_child()
        self._retention.reset()
        self._closed = threading.Event()
        self._may_revive = self._may_revive or (was_open and not self._is_closing)
        self._appender.lock.release()
