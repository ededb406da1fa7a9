"""The growing end of this process's own series: the only place where records are written.

`append` is the hook's path: one write(2), no open, no fsync (except `always`), no log call. The journal's helper thread
calls `rotate` and `sync`. The write keeps the interpreter lock: it takes a microsecond, and getting the lock back would
mean waiting for every busy thread.

The lock is reentrant, because a signal handler may append in the middle of an append. It may also raise there: nothing
has to be noted after a write, because the file itself says where it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from hermes_memory_pgvector.errors import JournalError, JournalFull
from hermes_memory_pgvector.files import sync_folder
from hermes_memory_pgvector.journal import segment as files
from hermes_memory_pgvector.journal.frame import HEADER_BYTES, MAX_PAYLOAD, encode, seed_of
from hermes_memory_pgvector.journal.segment import ActiveSegment, position

SyncMode = Literal["process", "batch", "always"]

_GIL_WRITE_BYTES = 64 * 1024
_TURNS_SHARE = 0.9
_UNLOCKED_TRIES = 3


class Urgency(enum.Enum):
    """How important a record is when there is little room left."""

    MEMORY = "memory"
    TURN = "turn"


class Appender:
    """Appends records to the newest segment."""

    def __init__(self, directory: Path, *, sync: SyncMode, segment_bytes: int, max_bytes: int) -> None:
        self.lock = threading.RLock()
        self.wake: Callable[[], None] = lambda: None
        """Wakes the helper."""
        self.revive: Callable[[], None] = lambda: None
        """Called by the first append of a forked child: takes a new identity."""
        self.is_asleep = False
        """The helper waits to be woken by the next append."""
        self.wants_rotation = False
        self.lacks_disk = False
        """Whether the disk had no room for the last record."""
        self.own_waiting = 0
        """The bytes of this series that are not in the database yet."""
        self.others_waiting = 0
        """The same of other series, as last counted."""
        self.refused = 0
        """How many records were turned away because the journal is full."""
        self.last_error = ""
        self.failed_syncs = 0
        self._max_bytes = max_bytes
        self._directory = directory
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._active: ActiveSegment | None = None
        self._writer = ""
        self._seed = 0
        self._attempts = 0
        self._is_writing = False
        self.count = 0
        """How many records were appended to this series."""
        self._sealed_sizes: dict[int, int] = {}
        self._sealed_end = 0
        self._dirty_since: float | None = None
        self._syncing_since: float | None = None

    def begin(self, writer: str) -> None:
        """Start a new series; raises OSError when its first file cannot be made."""
        active = files.create_segment(self._directory, writer, files.FIRST_NUMBER)
        if self._sync == "always":
            self._flush_directory()
        with self.lock:
            self.reset(writer)
            self._active = active

    def reset(self, writer: str) -> None:
        """Begin with nothing; the files of the series before stay as they are."""
        self._active = None
        self._writer, self._seed = writer, seed_of(writer)
        self.count = self._sealed_end = 0
        self._sealed_sizes = {}
        self.own_waiting = 0
        self._dirty_since = self._syncing_since = None
        self.wants_rotation = self.is_asleep = False

    def abandon(self, writer: str) -> None:
        """In a forked child: close the parent's file, and take another identity."""
        if self._active is not None:
            with contextlib.suppress(OSError):
                os.close(self._active.fd)
        self.reset(writer)
        self.last_error = ""

    def adjust(self, *, sync: SyncMode, max_bytes: int) -> None:
        """Go on under other settings; for the holder of the lock."""
        self._sync, self._max_bytes = sync, max_bytes

    @property
    def waiting(self) -> int:
        """What counts against the bound."""
        return self.own_waiting + self.others_waiting

    @property
    def is_crowded(self) -> bool:
        """Whether more than half of what the journal may hold waits in it."""
        return 2 * self.waiting > self._max_bytes

    def append(self, payload: bytes, urgency: Urgency) -> None:
        """Write one record."""
        total = HEADER_BYTES + len(payload)
        with self.lock:
            was, self._is_writing = self._is_writing, True
            self._attempts += 1
            try:
                self._write(payload, total, urgency)
            finally:
                self._is_writing = was

    def _write(self, payload: bytes, total: int, urgency: Urgency) -> None:
        while True:
            active = self._active
            if active is None or active.is_broken or total > MAX_PAYLOAD:
                active = self._usable(total)
            self._check_capacity(total, urgency)
            frame = encode(self._seed, time.time_ns() // 1000, payload)
            # A signal handler may have appended or forked since. From here to the end of the write none can run.
            if self._active is not active:
                continue
            code = 0
            if total <= _GIL_WRITE_BYTES and files.gil_write is not None:
                written = files.gil_write(active.fd, frame, total)
            else:
                try:
                    written = os.write(active.fd, frame)
                except OSError as error:
                    written, code = -1, error.errno or errno.EIO
            if written == total or self._rescue(active, frame, written, code):
                break
        self.count += 1
        active.size += total
        self.own_waiting += total
        if self._dirty_since is None:
            self._dirty_since = time.monotonic()
        if self._sync == "always":
            self._sync_record(active)
        if self.is_asleep or (active.size >= self._segment_bytes and not self.wants_rotation):
            self._nudge(active)

    def _measured(self) -> tuple[ActiveSegment | None, int]:
        """The file in use, and how long it was while nobody wrote to it.

        Other threads run while the system answers, and nobody may hold the lock for so long that hooks have to wait.
        """
        for _ in range(_UNLOCKED_TRIES):
            attempts, active = self._attempts, self._active
            if active is None or self._is_writing:
                break
            with contextlib.suppress(OSError):
                size = os.fstat(active.fd).st_size
                # It may have been closed, and its number be another file's by now.
                if self._attempts == attempts and self._active is active:
                    return active, size
        with self.lock:
            active = self._active
            return active, 0 if active is None else os.fstat(active.fd).st_size

    def end(self) -> int:
        """The position behind the newest record, 0 before the first; what is below it no longer changes."""
        active, size = self._measured()
        return self._sealed_end if active is None or not size else position(active.number, size)

    @property
    def active_number(self) -> int | None:
        """The number of the file in use; None while there is none."""
        active = self._active
        return None if active is None else active.number

    @property
    def is_dirty(self) -> bool:
        """Whether records wait for the disk."""
        return self._dirty_since is not None

    def sync_lag(self) -> float:
        """Seconds since the oldest record that has not reached the disk was written."""
        moments = [since for since in (self._syncing_since, self._dirty_since) if since is not None]
        return max(0.0, time.monotonic() - min(moments)) if moments and self._sync == "batch" else 0.0

    def set_mark(self, mark: int) -> None:
        """Note how far the own series is drained, for what counts against the bound.

        What is appended at this very moment counts from the next time on.
        """
        active, size = self._measured()
        with self.lock:
            sizes = dict(self._sealed_sizes)
            if active is not None:
                sizes.setdefault(active.number, size)
            waiting = (position(number, size) - max(mark, position(number, 0)) for number, size in sizes.items())
            self.own_waiting = sum(max(0, bytes_after) for bytes_after in waiting)

    def request_rotation(self) -> None:
        """Ask the helper to seal the present segment."""
        with self.lock:
            if self._active is not None and self._active.size:
                self._nudge(self._active, rotate=True)

    def rotate(self) -> bool:
        """Helper only: go on in a new segment; False when none can be made now."""
        with self.lock:
            old, writer = self._active, self._writer
            if old is None or (old.size == 0 and not old.is_broken):
                self.wants_rotation = False
                return True
        try:
            new = files.create_segment(self._directory, writer, old.number + 1)
        except OSError as error:
            self.last_error = f"no new segment ({files.describe(error)})"
            return False
        self._flush_directory()
        with self.lock:
            was_dirty, self._syncing_since = self.is_dirty, self._dirty_since
            self._seal(old)
            self._active, self._dirty_since, self.wants_rotation = new, None, False
        if was_dirty:
            self._flush(old)
        self._syncing_since = None
        os.close(old.fd)
        return True

    def sync(self) -> None:
        """Helper only: make what was written survive the machine."""
        with self.lock:
            active = self._active
            if active is None or self._dirty_since is None:
                return
            self._syncing_since, self._dirty_since = self._dirty_since, None
        if not self._flush(active):
            self.request_rotation()
        self._syncing_since = None

    def make_durable(self) -> None:
        """Sync what was appended last, in every mode; JournalError when the disk may lack some of it."""
        with self.lock:
            active = self._active
            fd = os.dup(active.fd) if active is not None else -1
        if active is None:
            return
        try:
            if active.sync_failed:
                raise JournalError("the disk has refused a sync of the journal")
            files.sync_file(fd)
        except OSError as error:
            active.sync_failed = True
            self.request_rotation()
            raise JournalError(f"the journal could not be synced ({files.describe(error)})") from None
        finally:
            os.close(fd)

    def finish(self) -> None:
        """Helper only: sync and close the file; one without a record is removed."""
        with self.lock:
            active, self._active = self._active, None
            if active is not None:
                self._seal(active)
            was_dirty, self._syncing_since = self.is_dirty, self._dirty_since
            self._dirty_since = None
        if active is not None:
            if was_dirty:
                self._flush(active)
            os.close(active.fd)
            if self._sealed_end == 0:
                active.path.unlink(missing_ok=True)
        self._syncing_since = None

    def _seal(self, active: ActiveSegment) -> None:
        """Note how long a file is that takes no more records."""
        size = os.fstat(active.fd).st_size
        if size:
            self._sealed_sizes[active.number] = size
            self._sealed_end = position(active.number, size)

    def _rescue(self, active: ActiveSegment, frame: bytes, written: int, code: int) -> bool:
        """After a failed or short write: True when the record is there after all, False to try again, else raise."""
        count = self.count
        # A short write comes without a reason: there was no room for more.
        code = code or (ctypes.get_errno() if written < 0 else errno.ENOSPC)
        if code == errno.EINTR:
            return False
        if 0 < written < len(frame):
            # The rest either fits or shows why the first part did not.
            try:
                written += os.write(active.fd, frame[written:])
            except OSError as error:
                code = error.errno or errno.EIO
            if written == len(frame):
                return True
            self._take_back(active, written, count)
        # A full disk may have room again for the same file; any other failure is the file's own.
        self.lacks_disk = code in (errno.ENOSPC, errno.EDQUOT)
        if not self.lacks_disk:
            self._break(active)
        reason = errno.errorcode.get(code, str(code))
        self.last_error = f"write failed ({reason})"
        raise JournalError(f"the journal could not take a record of {len(frame)} bytes: {reason}")

    def _take_back(self, active: ActiveSegment, written: int, count: int) -> None:
        """Remove a partly written frame; where that is not possible, readers pass over it."""
        try:
            size = os.fstat(active.fd).st_size - written
            # Looked at last: a signal handler may have appended meanwhile, and what it wrote stays.
            if self.count == count:
                os.ftruncate(active.fd, size)
        except OSError:
            self._break(active)

    def _sync_record(self, active: ActiveSegment) -> None:
        """`always`: the record is acknowledged only when the disk has it."""
        self._dirty_since = None
        if not self._flush(active):
            # It may or may not survive, and a reader may find it.
            self._break(active)
            raise JournalError("the journal could not sync the record")

    def _flush(self, active: ActiveSegment) -> bool:
        """Sync one file; after a failure never again, because the kernel reports lost pages only once."""
        if self._sync == "process" or active.sync_failed:
            return True
        try:
            files.sync_file(active.fd)
        except OSError as error:
            active.sync_failed = True
            self.failed_syncs += 1
            self.last_error = f"sync failed ({files.describe(error)})"
            return False
        return True

    def _flush_directory(self) -> None:
        if self._sync == "process":
            return
        try:
            sync_folder(self._directory)
        except OSError as error:
            self.last_error = f"directory sync failed ({files.describe(error)})"

    def _usable(self, total: int) -> ActiveSegment:
        if total > MAX_PAYLOAD:
            raise JournalError(f"a record of {total} bytes is too large for the journal")
        if self._active is None:
            self.revive()
        if self._active is None:
            raise JournalError("the journal is not open")
        if self._active.is_broken:
            self._nudge(self._active, rotate=True)
            raise JournalError(f"the journal waits for a new segment: {self.last_error}")
        return self._active

    def _check_capacity(self, total: int, urgency: Urgency) -> None:
        waiting = self.waiting
        limit = self._max_bytes if urgency is Urgency.MEMORY else int(self._max_bytes * _TURNS_SHARE)
        if waiting + total <= limit:
            return
        self.refused += 1
        if self.is_asleep:
            # The helper learns what other processes have drained; without it a full journal would stay full.
            self.is_asleep = False
            self.wake()
        held = f"{waiting} of at most {self._max_bytes} bytes"
        raise JournalFull(f"the journal holds {held}; a {urgency.value} was refused")

    def _break(self, active: ActiveSegment) -> None:
        active.is_broken = True
        self._nudge(active, rotate=True)

    def _nudge(self, active: ActiveSegment, *, rotate: bool = False) -> None:
        self.is_asleep = False
        self.wants_rotation = self.wants_rotation or rotate or active.size >= self._segment_bytes
        self.wake()
