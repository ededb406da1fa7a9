"""The files of a journal: their names, how to create one, and what is in it.

`<writer>.<number>` holds frames and nothing else. A file that is read-only has been drained, and its modification
time says since when: a hint for how long to keep it, seen by every process, never a statement about its contents.
`<writer>.<number>.damaged` is kept for a person to look at and is otherwise ignored.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import lock
from hermes_memory_pgvector.journal.frame import Frame, Junk, seed_of, walk

_SEGMENT = re.compile(rf"({lock.WRITER_ID.pattern})\.([0-9]{{8}})")
_DAMAGED = re.compile(rf"{_SEGMENT.pattern}\.damaged(?:\.[0-9]+)?")
_LOCK = re.compile(rf"({lock.WRITER_ID.pattern})\.lock")
FIRST_NUMBER = 1
"""The number of a writer's first file."""
OFFSET_BITS = 32
FIRST_POSITION = FIRST_NUMBER << OFFSET_BITS
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def position(number: int, offset: int) -> int:
    """Where a byte of a series is: positions are ordered as the bytes are."""
    return number << OFFSET_BITS | offset


def file_number(at: int) -> int:
    """In which file a position is."""
    return at >> OFFSET_BITS


class SegmentFile(NamedTuple):
    """A segment as the directory shows it."""

    writer: str
    number: int
    path: Path
    size: int
    is_drained: bool
    modified: float

    @property
    def start(self) -> int:
        """The position of its first byte."""
        return position(self.number, 0)

    @property
    def end(self) -> int:
        """The position behind its last byte."""
        return position(self.number, self.size)


class Listing(NamedTuple):
    """Everything of ours in the directory at one moment."""

    segments: tuple[SegmentFile, ...]
    """Ordered by writer and number."""
    locks: frozenset[str]
    damaged: int
    damaged_bytes: int

    @property
    def writers(self) -> frozenset[str]:
        """Everyone who has segments here."""
        return frozenset(segment.writer for segment in self.segments)

    def of(self, writer: str) -> list[SegmentFile]:
        """One writer's segments in order."""
        return [segment for segment in self.segments if segment.writer == writer]


class ActiveSegment:
    """The one file this process appends to."""

    __slots__ = ("fd", "is_broken", "number", "path", "size", "sync_failed")

    def __init__(self, number: int, path: Path, fd: int) -> None:
        self.number = number
        self.path = path
        self.fd = fd
        self.size = 0
        """About how much is in it; the file itself knows better."""
        self.is_broken = False
        """Takes no more records."""
        self.sync_failed = False
        """Must never be synced again: the kernel reports a lost write only once."""


def _find_write() -> Callable[[int, bytes, int], int] | None:
    """The C library's write, called without releasing the interpreter lock; None where that is not possible."""
    try:
        write = ctypes.PyDLL(None, use_errno=True).write
    except (AttributeError, OSError, TypeError):
        return None
    write.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
    write.restype = ctypes.c_ssize_t
    return write


gil_write = _find_write()


def segment_path(directory: Path, writer: str, number: int) -> Path:
    """Where a segment is."""
    return directory / f"{writer}.{number:08d}"


def create_segment(directory: Path, writer: str, number: int) -> ActiveSegment:
    """Create an empty segment with that number, or the next free one."""
    while True:
        path = segment_path(directory, writer, number)
        try:
            return ActiveSegment(number, path, os.open(path, _APPEND, 0o600))
        except FileExistsError:
            number += 1


def sync_file(fd: int) -> None:
    """Make what was written to a file survive a crash of the machine."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        # On macOS fsync leaves it in the drive's cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def list_directory(directory: Path) -> Listing:
    """The files in the directory, without those that vanish while we list them."""
    segments: list[SegmentFile] = []
    locks: set[str] = set()
    damaged = damaged_bytes = 0
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                found = _LOCK.fullmatch(entry.name)
                if found is not None:
                    locks.add(found[1])
                    continue
                found, aside = _SEGMENT.fullmatch(entry.name), _DAMAGED.fullmatch(entry.name)
                if found is None and aside is None:
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if not stat.S_ISREG(info.st_mode):
                    continue
                if found is None:
                    damaged, damaged_bytes = damaged + 1, damaged_bytes + info.st_size
                    continue
                drained = not info.st_mode & stat.S_IWUSR
                path = Path(entry.path)
                segments.append(SegmentFile(found[1], int(found[2]), path, info.st_size, drained, info.st_mtime))
    except OSError as error:
        raise JournalError(f"the journal directory cannot be read ({describe(error)})") from None
    segments.sort(key=lambda each: (each.writer, each.number))
    return Listing(tuple(segments), frozenset(locks), damaged, damaged_bytes)


def walk_file(path: Path, writer: str, offset: int = 0) -> Iterator[Frame | Junk]:
    """Walk one segment from an offset to its present end; a file that is gone is empty."""
    try:
        with path.open("rb", buffering=0) as file:

            def read_at(at: int, count: int) -> bytes:
                file.seek(at)
                return file.read(count) or b""

            yield from walk(read_at, os.fstat(file.fileno()).st_size, seed_of(writer), offset)
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"a segment cannot be read ({describe(error)})") from None


def is_damaged(path: Path, writer: str) -> bool:
    """Whether a file that nobody writes to has bytes in it that should not be there."""
    return any(isinstance(found, Junk) and not found.is_torn for found in walk_file(path, writer))


def describe(error: OSError) -> str:
    """An operating system error without its text, which may name paths."""
    return f"{type(error).__name__}, errno {error.errno}"
