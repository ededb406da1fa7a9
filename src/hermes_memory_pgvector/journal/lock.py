"""Who a writer is, and whether its process lives.

A writer's id is made once and never used again. Its lock file carries an flock for as long as the process lives; the
kernel drops it however the process ends. Meanwhile the file holds what the process tells of itself. After a fork the
child closes what it inherited without unlocking: the lock belongs to the parent. Where locks do not exclude, nobody is
taken for dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import threading
import time
from pathlib import Path

from hermes_memory_pgvector.fork import hold_during_fork

WRITER_ID = re.compile(r"[0-9a-f]{11}-[0-9a-f]{16}")
_CLOEXEC_NOFOLLOW = os.O_CLOEXEC | os.O_NOFOLLOW
_MOST_TOLD = 64 * 1024


class _OpenLocks:
    """The descriptors of this process's locks, which a forked child closes.

    A fork must not catch a lock between open and registration, or the child would keep it alive unknowingly.
    """

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.descriptors: set[int] = set()

    def before_fork(self) -> None:
        self.guard.acquire()

    def after_fork_in_parent(self) -> None:
        self.guard.release()

    def after_fork_in_child(self) -> None:
        """Close without unlocking: the locks are the parent's."""
        for fd in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(fd)
        self.descriptors.clear()
        self.guard.release()


_open_locks = _OpenLocks()
hold_during_fork(_open_locks)


def new_writer_id() -> str:
    """An id that sorts by the time the process took it and is unique by its random part."""
    return f"{time.time_ns() // 1_000_000 & 0xFFF_FFFF_FFFF:011x}-{secrets.token_hex(8)}"


class WriterLock:
    """One held lock file."""

    def __init__(self, path: Path, fd: int, *, excludes: bool) -> None:
        self.path = path
        self.excludes = excludes
        """Whether nobody else can hold it at the same time."""
        self._fd = fd
        self._pid = os.getpid()

    @classmethod
    def create(cls, directory: Path, writer: str) -> WriterLock | None:
        """Make and take the lock of a new writer; None when another was faster, and another id is needed."""
        lock = cls._open(directory / f"{writer}.lock", os.O_CREAT | os.O_EXCL)
        if lock is not None and lock.excludes:
            # Some file systems grant every lock.
            second = os.open(lock.path, os.O_RDWR | _CLOEXEC_NOFOLLOW)
            lock.excludes = _try_exclusive(second) is False
            os.close(second)
        return lock

    @classmethod
    def take(cls, directory: Path, writer: str, *, create: bool) -> WriterLock | None:
        """Take the lock of a writer that may be dead; None while its process lives or when the file is gone."""
        try:
            lock = cls._open(directory / f"{writer}.lock", os.O_CREAT if create else 0)
        except FileNotFoundError:
            return None
        if lock is not None:
            # What a dead process told counts no longer.
            lock.tell(b"")
        return lock

    @classmethod
    def _open(cls, path: Path, flags: int) -> WriterLock | None:
        with _open_locks.guard:
            fd = os.open(path, os.O_RDWR | flags | _CLOEXEC_NOFOLLOW, 0o600)
            excludes = _try_exclusive(fd)
            if excludes is False or not _is_still(path, fd):
                os.close(fd)
                return None
            _open_locks.descriptors.add(fd)
            return cls(path, fd, excludes=excludes is True)

    def tell(self, text: bytes) -> None:
        """Put into the file what the process tells of itself; a disk that is full keeps it as it is."""
        with _open_locks.guard, contextlib.suppress(OSError):
            if self._fd >= 0 and self._pid == os.getpid():
                os.pwrite(self._fd, text, 0)
                os.ftruncate(self._fd, len(text))

    def unlink(self) -> None:
        """Remove the file while it is held; whoever opened it before finds out that it is gone."""
        self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let go; in a forked child the lock is the parent's and was closed at the fork."""
        with _open_locks.guard:
            fd, self._fd = self._fd, -1
            if fd < 0 or self._pid != os.getpid():
                return
            _open_locks.descriptors.discard(fd)
            with contextlib.suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def told(directory: Path, writer: str) -> bytes | None:
    """What the process that holds a writer's lock tells of itself; None once it has ended."""
    with _open_locks.guard:
        try:
            fd = os.open(directory / f"{writer}.lock", os.O_RDONLY | _CLOEXEC_NOFOLLOW)
        except OSError:
            return None
        try:
            # Shared: two who look at the same time do not take each other for the process.
            return os.pread(fd, _MOST_TOLD, 0) if _try(fd, fcntl.LOCK_SH) is False else None
        finally:
            os.close(fd)


def _try_exclusive(fd: int) -> bool | None:
    return _try(fd, fcntl.LOCK_EX)


def _try(fd: int, kind: int) -> bool | None:
    """True when taken, False when someone holds it, None when this system cannot lock."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_still(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(fd))
    except FileNotFoundError:
        return False
