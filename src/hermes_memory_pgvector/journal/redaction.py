"""Taking items out of journal files: records keep their numbers, their places and their lengths.

A journal may belong to a process that is running and remembers where in its files it has read to. So a record is never
made shorter: an item that goes becomes one that does nothing, and blanks fill what is left. A file is replaced as a
whole by a synced copy, so that whoever is killed in between leaves the old file or the new one. The file that a process
is still writing to is left to that process, which begins another one first.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.journal.frame import Frame, Junk, encode, seed_of
from hermes_memory_pgvector.journal.lock import WRITER_ID, WriterLock
from hermes_memory_pgvector.journal.segment import describe, list_directory, walk_file
from hermes_memory_pgvector.values import WriteItem

LOCK_NAME = ".redaction-lock"
DRAFT_PREFIX = ".redacted-"
NOTHING = {"k": "UndoTurns", "theme": "", "session_id": "", "turns": [], "when": [0, 0]}
"""An item that does nothing: it takes no turns back."""
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Rewrite = Callable[[Sequence[WriteItem]], Sequence[WriteItem | None]]
"""What becomes of the items of a file: of each the same item, another one, or None for one that goes."""
Blank = Callable[[bytes], bytes]
"""What becomes of bytes that are no intact record: as many bytes."""


def items_in(path: Path, writer: str) -> Iterator[list[WriteItem]]:
    """The items of every intact record of a file; a record that this version cannot read is passed over."""
    for found in walk_file(path, writer):
        if isinstance(found, Frame):
            with suppress(ValueError):
                yield codec.decode(found.payload)


def items_of_folder(directory: Path) -> Iterator[WriteItem]:
    """The items of every file of a journal."""
    if directory.is_dir():
        for segment in list_directory(directory).segments:
            for items in items_in(segment.path, segment.writer):
                yield from items


def unreadable_in(path: Path, writer: str) -> Iterator[bytes]:
    """Whatever of a file is no record that this version can read."""
    data = b""
    for found in walk_file(path, writer):
        if isinstance(found, Junk):
            data = data or path.read_bytes()
            yield data[found.start : found.end]
        else:
            try:
                codec.decode(found.payload)
            except ValueError:
                yield found.payload


def unreadable_of_folder(directory: Path) -> Iterator[bytes]:
    """The same of every file of a journal."""
    if directory.is_dir():
        for segment in list_directory(directory).segments:
            yield from unreadable_in(segment.path, segment.writer)


def redact_payload(payload: bytes, items: Sequence[WriteItem], new: Sequence[WriteItem | None]) -> bytes:
    """A payload of the same length with what its items become; JournalError when that would not fit."""
    record = json.loads(payload)
    entries: list[Any] = []
    for raw, was, now in zip(record["items"], items, new, strict=True):
        if now is was:
            entries.append(raw)
        else:
            entries.append(NOTHING if now is None else json.loads(codec.encode([now]))["items"][0])
    body = _to_json({**record, "items": entries}).encode("utf-8", "surrogatepass")
    room = len(payload) - len(body)
    if room < 0:
        raise JournalError("a record cannot be rewritten in its place")
    return body + b" " * room


def redact_file(path: Path, writer: str, rewrite: Rewrite, blank: Blank) -> int:
    """Take items out of a file that nobody writes to any more; returns how many."""
    try:
        before = path.stat()
        data = bytearray(path.read_bytes())
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise JournalError(f"a segment cannot be read ({describe(error)})") from None
    count = 0
    records: list[tuple[Frame, list[WriteItem]]] = []
    for found in walk_file(path, writer):
        if found.end > len(data):
            raise JournalError("a segment is still being written to")
        items = _decoded(found)
        if isinstance(found, Frame) and items is not None:
            records.append((found, items))
            continue
        start = found.end - len(found.payload) if isinstance(found, Frame) else found.start
        torn = bytes(data[start : found.end])
        blanked = blank(torn)
        if blanked != torn:
            count += 1
            if isinstance(found, Frame):
                blanked = encode(seed_of(writer), found.micros, blanked)
            data[found.start : found.end] = blanked
    for (frame, items), new in _rewritten(records, rewrite):
        changed = sum(now is not was for was, now in zip(items, new, strict=True))
        if changed:
            count += changed
            payload = redact_payload(frame.payload, items, new)
            data[frame.start : frame.end] = encode(seed_of(writer), frame.micros, payload)
    if count:
        _replace(path, bytes(data), before)
    return count


def count_in(path: Path, writer: str, rewrite: Rewrite, blank: Blank) -> int:
    """How many items of a file would go; nothing is changed."""
    items = [item for part in items_in(path, writer) for item in part]
    changed = sum(now is not was for was, now in zip(items, rewrite(items), strict=True))
    return changed + sum(blank(data) != data for data in unreadable_in(path, writer))


@dataclass(frozen=True, slots=True)
class Redacted:
    """What was done to the files of a journal."""

    items: int
    left: Mapping[str, int]
    """By writer: how many items are in the file that its process is still writing to."""
    untouched: int
    """Files that could not be read or replaced."""


def redact_folder(
    directory: Path, rewrite: Rewrite, blank: Blank, *, sealed_below: Mapping[str, float], execute: bool = True
) -> Redacted:
    """Take items out of all files of a journal, except those that processes are writing to.

    `sealed_below`: the files of a running process below this number are certain not to change any more.
    """
    if not directory.is_dir():
        return Redacted(0, {}, 0)
    if not execute:
        return _Folder(directory, rewrite, blank, sealed_below, execute=False).redact()
    with alone(directory):
        return _Folder(directory, rewrite, blank, sealed_below, execute=True).redact()


class _Folder:
    def __init__(
        self,
        directory: Path,
        rewrite: Rewrite,
        blank: Blank,
        sealed_below: Mapping[str, float],
        *,
        execute: bool,
    ) -> None:
        self._directory = directory
        self._rewrite = rewrite
        self._blank = blank
        self._sealed_below = sealed_below
        self._execute = execute
        self._change = redact_file if execute else count_in
        self._items = 0
        self._left: dict[str, int] = {}
        self._untouched = 0

    def redact(self) -> Redacted:
        for writer in sorted(list_directory(self._directory).writers):
            if writer in self._sealed_below:
                self._redact_series(writer, self._sealed_below[writer])
                continue
            lock = WriterLock.take(self._directory, writer, create=self._execute)
            is_gone = lock is not None and lock.excludes
            try:
                self._redact_series(writer, math.inf if is_gone else _sealed_below(self._directory, writer))
            finally:
                if lock is not None:
                    lock.release()
        for path, writer in damaged_files(self._directory):
            self._items += self._changed(path, writer)
        return Redacted(self._items, self._left, self._untouched)

    def _redact_series(self, writer: str, sealed_below: float) -> None:
        for segment in list_directory(self._directory).of(writer):
            if segment.number < sealed_below:
                self._items += self._changed(segment.path, writer)
            elif left := count_in(segment.path, writer, self._rewrite, self._blank):
                self._left[writer] = self._left.get(writer, 0) + left

    def _changed(self, path: Path, writer: str) -> int:
        try:
            return self._change(path, writer, self._rewrite, self._blank)
        except JournalError:
            self._untouched += 1
            return 0


def damaged_files(directory: Path) -> list[tuple[Path, str]]:
    """Segments that were put aside for a person to look at, with their writers."""
    found = [(path, WRITER_ID.match(path.name)) for path in sorted(directory.glob("*.damaged*"))]
    return [(path, match.group()) for path, match in found if match is not None]


def _sealed_below(directory: Path, writer: str) -> int:
    """Where the files begin that a running process may be writing to: at the newest that holds anything.

    A new file is there a moment before the process goes over to it, so an empty one says nothing.
    """
    return max((each.number for each in list_directory(directory).of(writer) if each.size), default=0)


def _decoded(found: Frame | Junk) -> list[WriteItem] | None:
    if isinstance(found, Junk):
        return None
    try:
        return codec.decode(found.payload)
    except ValueError:
        return None


def _rewritten(
    records: Sequence[tuple[Frame, list[WriteItem]]], rewrite: Rewrite
) -> Iterator[tuple[tuple[Frame, list[WriteItem]], Sequence[WriteItem | None]]]:
    """What becomes of the items of each record; all are looked at together."""
    new = rewrite([item for _, items in records for item in items])
    at = 0
    for record in records:
        yield record, new[at : at + len(record[1])]
        at += len(record[1])


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """One process at a time rewrites the files of a journal."""
    fd = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Where the file system has no locks, two processes that rewrite would write the same.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        for draft in directory.glob(f"{DRAFT_PREFIX}*"):
            # Whoever wrote it was killed before it was complete.
            draft.unlink(missing_ok=True)
        yield
    finally:
        os.close(fd)


def _replace(path: Path, data: bytes, before: os.stat_result) -> None:
    """Put a file in the place of another one, with its mode and its times: they say when it was drained."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=DRAFT_PREFIX)
        draft = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(handle, before.st_mode & 0o777)
                files.give(handle, (before.st_uid, before.st_gid))
                os.utime(handle, ns=(before.st_atime_ns, before.st_mtime_ns))
                os.fsync(handle)
            now = path.stat()
            if (now.st_ino, now.st_size) != (before.st_ino, before.st_size):
                raise JournalError("a segment has changed while it was rewritten")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        files.sync_folder(path.parent)
    except FileNotFoundError:
        # It was drained long ago, and went meanwhile.
        return
    except OSError as error:
        raise JournalError(f"a segment cannot be rewritten ({describe(error)})") from None
