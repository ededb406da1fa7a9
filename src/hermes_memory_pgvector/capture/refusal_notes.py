"""Notes of refused writes in a file reserved for a full disk, so that they outlive their process.

A process reserves its file while there is room and writes only within it, which a full disk allows. An entry is marked
once it has been recovered. The file of a dead process goes to whoever takes its lock first.

A file is a sequence of entries, each with length, checksum and mark; a length of zero is the end.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from hermes_memory_pgvector.journal.lock import WriterLock, is_provably_gone, new_writer_id

FOLDER_NAME = "refused"
SUFFIX = ".notes"
NOTES_BYTES = 256 * 1024
_HEAD = struct.Struct("<IIB")
_WAITS, _DONE = 0, 1
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Notes:
    """One file of notes, held by this process: its own, or one that a dead process has left."""

    def __init__(self, path: Path, fd: int, lock: WriterLock, entries: list[tuple[int, bytes]]) -> None:
        self.entries = entries
        """(offset, payload) of each entry that waited when the file was taken over."""
        self._path = path
        self._fd = fd
        self._lock = lock
        self._pid = os.getpid()
        self._guard = threading.RLock()
        self._waiting = {offset for offset, _ in entries}
        self._end = 0

    @classmethod
    def reserve(cls, folder: Path) -> Notes | None:
        """A file for this process; None while there is no room for it."""
        if not hasattr(os, "pwrite"):
            return None
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            writer = new_writer_id()
            lock = WriterLock.create(folder, writer)
            if lock is None:
                return None
            path = folder / f"{writer}{SUFFIX}"
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
                try:
                    _allocate(fd)
                except BaseException:
                    os.close(fd)
                    raise
            except BaseException:
                path.unlink(missing_ok=True)
                lock.unlink()
                lock.release()
                raise
            return cls(path, fd, lock, [])
        return None

    @classmethod
    def left_behind(cls, folder: Path) -> list[Notes]:
        """The files of dead processes that hold something; those that hold nothing are removed."""
        found = []
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            with contextlib.suppress(OSError):
                taken = cls._take(folder, path)
                if taken is not None and taken.entries:
                    found.append(taken)
                elif taken is not None:
                    taken.remove()
        for path in folder.glob("*.lock"):
            # Its process ended before it had created a file of notes.
            if not path.with_suffix(SUFFIX).exists():
                with contextlib.suppress(OSError):
                    _sweep(folder, path.stem)
        return found

    @classmethod
    def _take(cls, folder: Path, path: Path) -> Notes | None:
        lock = WriterLock.take(folder, path.stem, create=True)
        if lock is None:
            return None
        if not path.exists():
            # Its process has finished since the folder was listed.
            lock.unlink()
            lock.release()
            return None
        if not lock.excludes and not is_provably_gone(folder, path.stem):
            lock.release()
            return None
        try:
            fd = os.open(path, os.O_RDWR | _FLAGS)
        except OSError:
            lock.release()
            raise
        return cls(path, fd, lock, list(_entries(os.pread(fd, NOTES_BYTES, 0))))

    def write(self, payload: bytes) -> int | None:
        """Write an entry and return its offset; None when there is no room for it."""
        frame = _HEAD.pack(len(payload), zlib.crc32(payload), _WAITS) + payload
        with self._guard:
            offset = self._end
            if self._pid != os.getpid() or offset + len(frame) + _HEAD.size > NOTES_BYTES:
                return None
            try:
                written = os.pwrite(self._fd, frame + bytes(_HEAD.size), offset)
            except OSError:
                return None
            if written != len(frame) + _HEAD.size:
                return None
            self._end = offset + len(frame)
            self._waiting.add(offset)
            return offset

    def done(self, offset: int) -> None:
        """Mark an entry as recovered or given up."""
        with self._guard, contextlib.suppress(OSError):
            self._waiting.discard(offset)
            os.pwrite(self._fd, bytes([_DONE]), offset + _HEAD.size - 1)
            if not self._waiting:
                self._end = 0

    @property
    def is_empty(self) -> bool:
        """Whether no entry waits in it."""
        return not self._waiting

    @property
    def name(self) -> str:
        """Which process it belongs to."""
        return self._path.stem

    def remove(self) -> None:
        """Delete the file."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
            self._lock.unlink()
        self.release()

    def release(self) -> None:
        """Leave the file to the next process."""
        with self._guard:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)
                self._lock.release()

    @property
    def bytes_written(self) -> bytes:
        """Everything that was ever written into the file and is still there."""
        with self._guard:
            return os.pread(self._fd, NOTES_BYTES, 0).rstrip(b"\0") if self._fd >= 0 else b""


def count_left(folder: Path) -> int:
    """How many entries dead processes have left; for status and doctor."""
    found = Notes.left_behind(folder)
    for notes in found:
        notes.release()
    return sum(len(notes.entries) for notes in found)


def noted_payloads(folder: Path) -> Iterator[bytes]:
    """What waits in the files of all processes, living or dead; nothing is taken over."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(OSError):
            yield from (payload for _, payload in _entries(path.read_bytes()))


def _sweep(folder: Path, writer: str) -> None:
    lock = WriterLock.take(folder, writer, create=False)
    if lock is not None:
        if lock.excludes:
            lock.unlink()
        lock.release()


def _allocate(fd: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, NOTES_BYTES)
    else:
        os.write(fd, bytes(NOTES_BYTES))


def _entries(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The waiting entries of a file, up to the first damaged one."""
    offset = 0
    while offset + _HEAD.size <= len(raw):
        length, check, mark = _HEAD.unpack_from(raw, offset)
        payload = raw[offset + _HEAD.size : offset + _HEAD.size + length]
        if not length or len(payload) != length or zlib.crc32(payload) != check:
            return
        if mark == _WAITS:
            yield offset, payload
        offset += _HEAD.size + length
