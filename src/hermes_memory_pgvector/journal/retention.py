"""What else happens to the files of a journal: adoption and retention.

A dead writer's series is adopted by taking its lock. Drained segments are kept for a while, because a server that
fails over may have lost what it had confirmed. Damaged segments are renamed and kept for good.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal.frame import Frame
from hermes_memory_pgvector.journal.lock import WriterLock
from hermes_memory_pgvector.journal.reader import Reader
from hermes_memory_pgvector.journal.segment import SegmentFile, describe, is_damaged, list_directory, walk_file

logger = logging.getLogger(__name__)

_DRAINED_MODE = 0o400
_WAITING_MODE = 0o600


class Adoption:
    """The right to drain a series, until released; that of a dead writer comes with its lock."""

    def __init__(self, writer: str, lock: WriterLock | None, held: dict[str, Adoption]) -> None:
        self.writer = writer
        self.lock = lock
        self._held = held

    def release(self) -> None:
        """Let other processes adopt; may be called twice."""
        self._held.pop(self.writer, None)
        if self.lock is not None:
            self.lock.release()

    def __enter__(self) -> Adoption:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Retention:
    """Adopts and retains the files of one journal directory; any thread may call it."""

    def __init__(
        self,
        reader: Reader,
        *,
        keep_seconds: float,
        keep_bytes: Callable[[], int],
        least_seconds: float,
    ) -> None:
        self._directory = reader.directory
        self._reader = reader
        self._keep_seconds = keep_seconds
        self._keep_bytes = keep_bytes
        self._least_seconds = least_seconds
        self.held: dict[str, Adoption] = {}
        """What this process has adopted, by writer."""
        self._drained_at: dict[tuple[str, int], float] = {}
        self._untakable: set[str] = set()
        self._guard = threading.RLock()

    def adopt(self, writer: str) -> Adoption | None:
        """Take the lock of a writer; None while its process lives or may live."""
        with self._guard:
            if writer in self.held:
                return self.held[writer]
            try:
                # A restored copy may have come without its lock file.
                has_files = writer in list_directory(self._directory).writers
                lock = WriterLock.take(self._directory, writer, create=has_files)
            except OSError as error:
                # Perhaps another user's: it does not hold up the others.
                if writer not in self._untakable:
                    self._untakable.add(writer)
                    logger.warning("the journal of %s waits: its lock cannot be taken (%s)", writer, describe(error))
                return None
            if lock is None:
                return None
            self.held[writer] = Adoption(writer, lock, self.held)
            return self.held[writer]

    def retire(self, writer: str, mark: int, *, sealed_below: float = math.inf, at_once: bool = False) -> None:
        """Retire the sealed segments that hold nothing after a mark just read from the server; own or adopted ones.

        `at_once`: what was forgotten must not stay in files, however short a time ago it was drained.
        """
        with self._guard:
            listing = list_directory(self._directory)
            sealed = [each for each in listing.of(writer) if each.number < sealed_below]
            covered = [each for each in sealed if self._is_covered(each, mark)]
            retained = sum(each.size for each in listing.segments if each.is_drained)
            retained += sum(each.size for each in covered if not each.is_drained)
            most, now = self._keep_bytes(), time.monotonic()
            for segment in covered:
                age = now - self._drained_since(segment, now)
                # A server may still lose what it has just confirmed, so otherwise that is never removed.
                if at_once or age >= self._keep_seconds or (retained > most and age >= self._least_seconds):
                    retained -= segment.size
                    self._remove(segment)
            adoption = self.held.get(writer)
            if adoption is not None and adoption.lock is not None and not list_directory(self._directory).of(writer):
                adoption.lock.unlink()

    def release_all(self) -> None:
        """Let go of every adopted writer."""
        for adoption in list(self.held.values()):
            adoption.release()

    def reset(self) -> None:
        """In a forked child: what is held is held by the parent."""
        self._guard = threading.RLock()
        self.held.clear()

    def _is_covered(self, segment: SegmentFile, mark: int) -> bool:
        offset = max(0, mark - segment.start)
        found = walk_file(segment.path, segment.writer, offset) if offset < segment.size else ()
        if not any(isinstance(each, Frame) for each in found):
            return True
        # The mark has gone back: this segment is needed again.
        self._drained_at.pop((segment.writer, segment.number), None)
        if segment.is_drained:
            self._mark(segment, _WAITING_MODE)
        return False

    def _drained_since(self, segment: SegmentFile, now: float) -> float:
        """When a segment was first seen drained, on this process's steady clock."""
        key = (segment.writer, segment.number)
        if key not in self._drained_at:
            age = 0.0
            if segment.is_drained:
                # Marked by an earlier process: the age comes from its wall clock, which may have been stepped.
                age = min(max(0.0, time.time() - segment.modified), self._keep_seconds)
            else:
                self._mark(segment, _DRAINED_MODE)
            self._drained_at[key] = now - age
        return self._drained_at[key]

    def _mark(self, segment: SegmentFile, mode: int) -> None:
        # A mark that cannot be set only means that the next process starts to count anew.
        with contextlib.suppress(OSError):
            os.utime(segment.path)
            segment.path.chmod(mode)

    def _remove(self, segment: SegmentFile) -> None:
        """Unlink a segment, or put it aside when it is damaged."""
        key = (segment.writer, segment.number)
        try:
            if key in self._reader.damaged or is_damaged(segment.path, segment.writer):
                segment.path.rename(_free_name(segment.path))
            else:
                segment.path.unlink(missing_ok=True)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise JournalError(f"a drained segment cannot be removed ({describe(error)})") from None
        self._reader.damaged.discard(key)
        self._drained_at.pop(key, None)


def _free_name(path: Path) -> Path:
    """A name for a damaged segment under which nothing is kept yet."""
    target, copies = path.with_name(f"{path.name}.damaged"), 0
    while target.exists():
        copies += 1
        target = path.with_name(f"{path.name}.damaged.{copies}")
    return target
