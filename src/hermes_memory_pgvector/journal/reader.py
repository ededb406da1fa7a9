"""Reading records in sequence, past rotation and past damage.

Which files may still grow is decided *before* anything is read, so a record hidden by a rotation is never mistaken for
a missing one. A number that is missing in sealed files is searched for in all of them; only then is it given up,
counted, and logged once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hermes_memory_pgvector.journal.frame import Frame
from hermes_memory_pgvector.journal.segment import FIRST_NUMBER, SegmentFile, Span, list_directory, survey, walk_file

logger = logging.getLogger(__name__)

REMEMBERED_READS = 3


@dataclass(frozen=True, slots=True)
class Record:
    """One payload with its number in its writer's sequence."""

    writer: str
    seq: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits after a watermark."""

    records: int
    bytes: int
    oldest_age_seconds: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a writer's files may be read now."""

    sealed_below: float
    """Segments with a lower number never change again."""
    last_number: float
    last_seq: float
    is_own: bool


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Where a read ended: nothing before it has a higher number."""

    seq: int
    number: int
    offset: int


@dataclass(slots=True)
class _Batch:
    writer: str
    last: int
    room: int
    max_bytes: int
    number: int = 0
    offset: int = 0
    records: list[Record] = field(default_factory=list)

    def take(self, number: int, frame: Frame) -> bool:
        """Add the next record unless the batch is full; the first one always fits."""
        size = len(frame.payload)
        if self.records and (len(self.records) >= self.room or size > self.max_bytes):
            return False
        self.records.append(Record(self.writer, frame.seq, frame.payload))
        self.last, self.number, self.offset = frame.seq, number, frame.end
        self.max_bytes -= size
        return True


class Reader:
    """Reads the segments of any writer; safe to call from several threads."""

    def __init__(self, directory: Path, bounds: Callable[[str], Bounds], seal: Callable[[], None]) -> None:
        self._directory = directory
        self._bounds = bounds
        self._seal = seal
        self.lock = threading.RLock()
        self.damaged: set[tuple[str, int]] = set()
        """Segments in the directory with bytes in them that should not be there."""
        self.skipped_records = 0
        self.no_longer_kept: list[tuple[str, int, int]] = []
        """Writer, first and last record: asked for, but their files are gone since they were stored once."""
        self._spans: dict[tuple[str, int], Span] = {}
        self._cursors: dict[str, deque[_Cursor]] = {}
        """Where the last reads of a writer ended; several, because the writer reads ahead."""
        self._holes: set[tuple[str, int]] = set()
        self._adopted: dict[str, list[SegmentFile]] = {}
        """The files of adopted writers: while their locks are held nobody adds to them, so they are listed once."""

    def keep_listed(self, files: dict[str, list[SegmentFile]]) -> None:
        """These writers were adopted, and these are their files."""
        self._adopted.update(files)

    def listed(self, writer: str) -> list[SegmentFile]:
        """The files of an adopted writer that are still there."""
        return self._adopted.get(writer, [])

    def unlist(self, writer: str) -> None:
        """A writer was released: others may change its files again."""
        self._adopted.pop(writer, None)

    def read(self, writer: str, after: int, *, max_records: int, max_bytes: int) -> list[Record]:
        """The records from after + 1 on, without a gap; past a proven hole, those that follow it."""
        with self.lock:
            bounds = self._bounds(writer)
            if after >= bounds.last_seq:
                return []
            batch = _Batch(writer, after, max_records, max_bytes)
            for segment, frame in self._frames(writer, after, bounds):
                if frame.seq <= batch.last or frame.seq > bounds.last_seq:
                    continue
                if frame.seq != batch.last + 1:
                    if not batch.records:
                        self._cross(segment.number, bounds, batch)
                        # Records may lie out of order here: the next read looks at all of them again.
                        self._cursors.pop(writer, None)
                        return batch.records
                    break
                if not batch.take(segment.number, frame):
                    break
            if batch.records:
                ends = self._cursors.setdefault(writer, deque(maxlen=REMEMBERED_READS))
                ends.append(_Cursor(batch.last, batch.number, batch.offset))
            return batch.records

    def once_stored(self, writer: str) -> int:
        """The last record that some process has seen in the database, as far as the marks on its files tell."""
        with self.lock:
            drained = [each for each in self._files(writer) if each.is_drained]
            return max((self.span(each).last for each in drained), default=0)

    def count(self, writer: str, after: int, upto: int) -> int:
        """How many of the records between two watermarks are still there, whatever is appended meanwhile."""
        with self.lock:
            bounds = self._bounds(writer)
            found: set[int] = set()
            for segment in self._segments(writer, bounds):
                is_sealed = segment.number < bounds.sealed_below
                if is_sealed and (self.span(segment).last <= after or self.span(segment).first > upto):
                    continue
                for item in walk_file(segment.path, writer):
                    if isinstance(item, Frame) and after < item.seq <= upto:
                        found.add(item.seq)
            return len(found)

    def depth(self, writer: str, upto: int) -> Depth:
        """How much waits after a watermark, and since when."""
        with self.lock:
            bounds = self._bounds(writer)
            if upto >= bounds.last_seq:
                return Depth(0, 0, 0.0)
            records = size = 0
            oldest: int | None = None
            for segment in self._segments(writer, bounds):
                span = self.span(segment) if segment.number < bounds.sealed_below else survey(segment.path, writer)
                if span.last <= upto:
                    continue
                if span.first <= upto:
                    span = survey(segment.path, writer, after=upto)
                records += span.records
                size += span.frame_bytes
                oldest = span.oldest_micros if oldest is None else oldest
            age = 0.0 if oldest is None else max(0.0, time.time() - oldest / 1e6)
            return Depth(records, size, age)

    def waiting_bytes(self, writer: str, upto: int) -> int:
        """The bytes after a watermark, without walking when one of the last reads ended exactly there."""
        with self.lock:
            cursor = self._cursor(writer, upto)
            if cursor is None:
                return self.depth(writer, upto).bytes
            waiting = 0
            for segment in self._files(writer):
                if segment.number >= cursor.number:
                    waiting += segment.size - (cursor.offset if segment.number == cursor.number else 0)
            return max(0, waiting)

    def span(self, segment: SegmentFile, *, fresh: bool = False) -> Span:
        """What a sealed segment holds; remembered, because it cannot change."""
        key = (segment.writer, segment.number)
        span = None if fresh else self._spans.get(key)
        if span is None:
            span = self._spans[key] = survey(segment.path, segment.writer)
            if span.is_damaged:
                self.note_damage(segment)
        return span

    def note_damage(self, segment: SegmentFile) -> None:
        """Note a damaged segment and log it once."""
        key = (segment.writer, segment.number)
        if key not in self.damaged:
            self.damaged.add(key)
            logger.warning("journal segment %s.%08d is damaged and will be kept for inspection", *key)

    def drop(self, segment: SegmentFile) -> None:
        """Forget a segment that is no longer in the directory."""
        key = (segment.writer, segment.number)
        self._spans.pop(key, None)
        self.damaged.discard(key)
        listed = self._adopted.get(segment.writer)
        if listed is not None:
            self._adopted[segment.writer] = [each for each in listed if each.number != segment.number]

    def reset(self) -> None:
        """In a forked child: start afresh, with a lock nobody holds."""
        self.lock = threading.RLock()
        self._cursors.clear()
        self._adopted.clear()

    def _cursor(self, writer: str, after: int) -> _Cursor | None:
        """Where in the files the records after a number begin, if a recent read ended there."""
        return next((cursor for cursor in self._cursors.get(writer, ()) if cursor.seq == after), None)

    def _segments(self, writer: str, bounds: Bounds) -> list[SegmentFile]:
        return [each for each in self._files(writer) if each.number <= bounds.last_number]

    def _files(self, writer: str) -> list[SegmentFile]:
        listed = self._adopted.get(writer)
        return list_directory(self._directory).of(writer) if listed is None else listed

    def _frames(self, writer: str, after: int, bounds: Bounds) -> Iterator[tuple[SegmentFile, Frame]]:
        """Frames in file order from where the last read ended, or from the first segment that has something new."""
        cursor = self._cursor(writer, after)
        for segment in self._segments(writer, bounds):
            is_sealed = segment.number < bounds.sealed_below
            offset = 0
            if cursor is not None and segment.number <= cursor.number:
                if segment.number < cursor.number:
                    continue
                offset = cursor.offset
            elif cursor is None and is_sealed and self.span(segment).last <= after:
                continue
            for item in walk_file(segment.path, writer, offset):
                if isinstance(item, Frame):
                    yield segment, item
                elif is_sealed and not item.is_torn:
                    self.note_damage(segment)

    def _cross(self, number: int, bounds: Bounds, batch: _Batch) -> None:
        """Go on behind a missing record when it is certain that it will not turn up."""
        if number >= bounds.sealed_below:
            if bounds.is_own:
                # The hole can be judged once nothing can be added to this file.
                self._seal()
            return
        found: dict[int, tuple[SegmentFile, Frame]] = {}
        sealed = [each for each in self._segments(batch.writer, bounds) if each.number < bounds.sealed_below]
        for segment in sorted(sealed, key=lambda each: self.span(each).first):
            if found and self.span(segment).first > min(found):
                break
            for item in walk_file(segment.path, batch.writer):
                if isinstance(item, Frame) and batch.last < item.seq <= bounds.last_seq:
                    found.setdefault(item.seq, (segment, item))
        if not found:
            return
        first = min(found)
        if first != batch.last + 1:
            self._note_hole(batch.writer, batch.last + 1, first - 1, sealed, found[first][0])
            batch.last = first - 1
        while batch.last + 1 in found:
            segment, frame = found[batch.last + 1]
            if not batch.take(segment.number, frame):
                break

    def _note_hole(self, writer: str, first: int, last: int, sealed: list[SegmentFile], after: SegmentFile) -> None:
        if (writer, first) in self._holes:
            return
        self._holes.add((writer, first))
        self.skipped_records += last - first + 1
        before = [each for each in sealed if each.number < after.number]
        if not before and after.number > FIRST_NUMBER:
            # Files go from the front, and only once the database has what is in them: it has lost that since.
            self.no_longer_kept.append((writer, first, last))
            return
        if self.span(after).first > last and before:
            # The hole lies at the end of the file before, which has lost its tail.
            self.note_damage(before[-1])
        logger.warning("the journal of %s has lost records %d to %d; reading continues after them", writer, first, last)
