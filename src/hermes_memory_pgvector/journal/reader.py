"""Reading records by position: from the place where the last one ended, past rotation and past damage.

A position is the number of a file and an offset in it, so nothing is counted and nothing can be missing: what is not
an intact record is skipped, told once, and the file is kept for a person to look at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.journal.frame import Frame, Junk
from hermes_memory_pgvector.journal.segment import SegmentFile, list_directory, position, walk_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """One payload, and where its frame begins and ends."""

    writer: str
    start: int
    end: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits after a mark."""

    records: int
    bytes: int
    oldest_age_seconds: float


class Reader:
    """Reads the files of any writer; remembers nothing but what it has already complained about."""

    def __init__(self, directory: Path, limit: Callable[[str], float]) -> None:
        self._directory = directory
        self._limit = limit
        """How far a writer's files may be read now: a position behind which a record may be half written."""
        self.damaged: set[tuple[str, int]] = set()
        """Segments in the directory with bytes in them that should not be there."""

    def read(self, writer: str, mark: int, *, max_records: int, max_bytes: int) -> list[Record]:
        """The records after a mark in their order; at least one when there is one."""
        records: list[Record] = []
        for segment, frame in self._frames(writer, mark, self._limit(writer)):
            max_bytes -= len(frame.payload)
            if records and (len(records) >= max_records or max_bytes < 0):
                break
            start, end = position(segment.number, frame.start), position(segment.number, frame.end)
            records.append(Record(writer, start, end, frame.payload))
        return records

    def depth(self, writer: str, mark: int, upto: float = float("inf")) -> Depth:
        """How much waits after a mark, and since when; of what lies before `upto`."""
        records = size = 0
        oldest: int | None = None
        for _, frame in self._frames(writer, mark, min(upto, self._limit(writer))):
            records, size = records + 1, size + frame.end - frame.start
            oldest = frame.micros if oldest is None else oldest
        age = 0.0 if oldest is None else max(0.0, time.time() - oldest / 1e6)
        return Depth(records, size, age)

    def holds_records(self, segment: SegmentFile, mark: int) -> bool:
        """Whether a segment holds a record after a mark."""
        offset = max(0, mark - segment.start)
        if offset >= segment.size:
            return False
        return any(isinstance(found, Frame) for found in walk_file(segment.path, segment.writer, offset))

    def _frames(self, writer: str, mark: int, limit: float) -> Iterator[tuple[SegmentFile, Frame]]:
        # The limit was asked for before the files are listed: what is below it no longer changes.
        for segment in list_directory(self._directory).of(writer):
            offset = max(0, mark - segment.start)
            if offset >= segment.size or segment.start >= limit:
                continue
            for found in walk_file(segment.path, writer, offset):
                if position(segment.number, found.end) > limit:
                    return
                if isinstance(found, Frame):
                    yield segment, found
                elif not found.is_torn:
                    self._tell(segment, found)

    def _tell(self, segment: SegmentFile, junk: Junk) -> None:
        key = (segment.writer, segment.number)
        if key not in self.damaged:
            self.damaged.add(key)
            logger.warning(
                "%d bytes of journal segment %s.%08d are no record and are skipped; the file is kept for inspection",
                junk.end - junk.start,
                *key,
            )
