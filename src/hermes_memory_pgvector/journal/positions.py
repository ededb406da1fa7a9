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
from hermes_memory_pgvector.journal.segment import SegmentFile, list_directory, walk_file

logger = logging.getLogger(__name__)

OFFSET_BITS = 32
MAX_OFFSET = (1 << OFFSET_BITS) - 1


def position(number: int, offset: int) -> int:
    """Where a byte of a series is: positions are ordered as the bytes are."""
    return number << OFFSET_BITS | offset


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """One payload, and where its frame begins and ends."""

    writer: str
    start: int
    end: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits after a mark."""

    records: int
    bytes: int
    oldest_age_seconds: float


class PositionReader:
    """Reads the files of any writer; holds nothing but what it has already complained about."""

    def __init__(self, directory: Path, limit: Callable[[str], float]) -> None:
        self._directory = directory
        self._limit = limit
        """How far a writer's files may be read now: a position behind which a record may be half written."""
        self._told: set[tuple[str, int]] = set()

    def read(self, writer: str, mark: int, *, max_records: int, max_bytes: int) -> list[PlacedRecord]:
        """The records after a mark in their order; at least one when there is one."""
        records: list[PlacedRecord] = []
        for segment, frame in self._frames(writer, mark):
            max_bytes -= len(frame.payload)
            if records and (len(records) >= max_records or max_bytes < 0):
                break
            start, end = position(segment.number, frame.start), position(segment.number, frame.end)
            records.append(PlacedRecord(writer, start, end, frame.payload))
        return records

    def waiting(self, writer: str, mark: int) -> Waiting:
        """How much waits after a mark, and since when."""
        records = size = 0
        oldest: int | None = None
        for _, frame in self._frames(writer, mark):
            records, size = records + 1, size + frame.end - frame.start
            oldest = frame.micros if oldest is None else oldest
        age = 0.0 if oldest is None else max(0.0, time.time() - oldest / 1e6)
        return Waiting(records, size, age)

    def _frames(self, writer: str, mark: int) -> Iterator[tuple[SegmentFile, Frame]]:
        # Asked before the files are listed: what is below it no longer changes, whatever is appended meanwhile.
        limit = self._limit(writer)
        for segment in list_directory(self._directory).of(writer):
            offset = max(0, mark - position(segment.number, 0))
            if offset >= segment.size or position(segment.number, 0) >= limit:
                continue
            for found in walk_file(segment.path, writer, offset):
                if position(segment.number, found.end) > limit:
                    return
                if isinstance(found, Frame):
                    yield segment, found
                else:
                    self._tell(segment, found)

    def _tell(self, segment: SegmentFile, junk: Junk) -> None:
        key = (segment.writer, segment.number)
        if not junk.is_torn and key not in self._told:
            self._told.add(key)
            logger.warning("%d bytes of journal segment %s.%08d are no record and are skipped; the file will be kept "
                           "for inspection", junk.end - junk.start, *key)  # fmt: skip
