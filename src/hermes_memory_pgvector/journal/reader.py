"""Reading records by position: from the place where the last one ended, past rotation and past damage.

A position is the number of a file and an offset in it, so nothing is counted and nothing can be missing: what is not
an intact record is skipped, told once, and the file is kept for a person to look at.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector.journal.frame import Frame
from hermes_memory_pgvector.journal.segment import SegmentFile, list_directory, position, walk_file

logger = logging.getLogger(__name__)


class Record(NamedTuple):
    """One payload, and where its frame begins and ends."""

    writer: str
    start: int
    end: int
    payload: bytes


class Depth(NamedTuple):
    """What waits after a mark."""

    records: int
    bytes: int
    oldest_age_seconds: float


class Reader:
    """Reads the files of any writer; remembers nothing but what it has already complained about."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """Where the files are."""
        self.damaged: set[tuple[str, int]] = set()
        """Segments in the directory with bytes in them that should not be there."""

    def writers(self) -> list[str]:
        """Every writer that has segments in the directory."""
        return sorted(list_directory(self.directory).writers)

    def read(self, writer: str, mark: int, *, max_records: int, max_bytes: int) -> list[Record]:
        """The records after a mark in their order; at least one when there is one.

        Another writer's records must be adopted before they are stored.
        """
        records: list[Record] = []
        for segment, frame in self._frames(writer, mark, math.inf):
            max_bytes -= len(frame.payload)
            if records and (len(records) >= max_records or max_bytes < 0):
                break
            start, end = position(segment.number, frame.start), position(segment.number, frame.end)
            records.append(Record(writer, start, end, frame.payload))
        return records

    def depth(
        self, writer: str, mark: int, upto: float = math.inf, waits: Callable[[int, bytes], bool] = lambda *_: True
    ) -> Depth:
        """What waits after a mark, as far as `upto`; walks segments, so not for hooks.

        `waits` says of a record's position and payload whether it is among it.
        """
        frames = [
            (frame.end - frame.start, frame.micros)
            for segment, frame in self._frames(writer, mark, upto)
            if waits(position(segment.number, frame.start), frame.payload)
        ]
        age = max(0.0, time.time() - frames[0][1] / 1e6) if frames else 0.0
        return Depth(len(frames), sum(size for size, _ in frames), age)

    def once_stored(self, writer: str) -> int:
        """How far some process has seen a writer's records in the database, as far as the marks on its files tell."""
        files = list_directory(self.directory).of(writer)
        return max((each.end for each in files if each.is_drained), default=0)

    def first_kept(self, writer: str) -> int:
        """The position where a writer's files begin; 0 when there are none."""
        return next((each.start for each in list_directory(self.directory).of(writer)), 0)

    def _limit(self, writer: str) -> float:  # noqa: ARG002 - for whoever writes one of them
        """How far a writer's files may be read now: a position behind which a record may be half written."""
        return math.inf

    def _frames(self, writer: str, mark: int, upto: float) -> Iterator[tuple[SegmentFile, Frame]]:
        # The limit is asked for before the files are listed: what is below it no longer changes.
        limit = min(upto, self._limit(writer))
        for segment in list_directory(self.directory).of(writer):
            offset = max(0, mark - segment.start)
            if offset >= segment.size or segment.start >= limit:
                continue
            for found in walk_file(segment.path, writer, offset):
                if position(segment.number, found.end) > limit:
                    return
                if isinstance(found, Frame):
                    yield segment, found
                elif not found.is_torn and (writer, segment.number) not in self.damaged:
                    self.damaged.add((writer, segment.number))
                    logger.warning(
                        "%d bytes of journal segment %s.%08d are no record and are skipped; "
                        "the file is kept for inspection",
                        found.end - found.start,
                        writer,
                        segment.number,
                    )
