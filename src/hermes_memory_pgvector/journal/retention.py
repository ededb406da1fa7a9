"""What else happens to journals: adoption, retention, cleaning.

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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal.lock import WriterLock, is_provably_gone
from hermes_memory_pgvector.journal.reader import Reader
from hermes_memory_pgvector.journal.segment import SegmentFile, describe, list_directory

logger = logging.getLogger(__name__)

_DRAINED_MODE = 0o400
_WAITING_MODE = 0o600
ADOPTED_TOGETHER = 64
"""How many locks are held at once: each costs a file descriptor."""


class Adoption:
    """The right to drain a dead writer's series, until released."""

    def __init__(self, writer: str, lock: WriterLock | None, on_release: Callable[[str], None]) -> None:
        self.writer = writer
        self.lock = lock
        self._on_release = on_release
        self._once = threading.Lock()
        self._is_released = False

    def release(self) -> None:
        """Let other processes adopt; may be called twice."""
        with self._once:
            if self._is_released:
                return
            self._is_released = True
        self._on_release(self.writer)
        if self.lock is not None:
            self.lock.release()

    def __enter__(self) -> Adoption:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Retention:
    """Adopts, retains and cleans the files of one journal directory."""

    def __init__(
        self,
        directory: Path,
        reader: Reader,
        *,
        keep_seconds: float,
        keep_bytes: Callable[[], int],
        least_seconds: float,
    ) -> None:
        self._directory = directory
        self._reader = reader
        self._keep_seconds = keep_seconds
        self._keep_bytes = keep_bytes
        self._least_seconds = least_seconds
        self._held: dict[str, Adoption] = {}
        self._drained_at: dict[tuple[str, int], float] = {}
        self._untakable: set[str] = set()

    def holds(self, writer: str) -> bool:
        """Whether the writer is adopted by this journal."""
        return writer in self._held

    def adopt(self, writers: Sequence[str], *, locks_work: bool) -> dict[str, Adoption]:
        """Take the locks of those writers that are dead; a writer whose process lives or may live is left out."""
        with self._reader.lock:
            adopted = {writer: self._held[writer] for writer in writers if writer in self._held}
            there = list_directory(self._directory).by_writer()
            for writer in writers:
                if writer in adopted or not (locks_work or is_provably_gone(self._directory, writer)):
                    continue
                try:
                    # A restored copy may have come without its lock file.
                    lock = WriterLock.take(self._directory, writer, create=writer in there)
                except OSError as error:
                    self._complain(writer, error)
                    continue
                if lock is not None:
                    adopted[writer] = self._held[writer] = Adoption(writer, lock, self._released)
            # Looked at again: a process may have written and died after the first look.
            there = list_directory(self._directory).by_writer() if adopted else {}
            self._reader.keep_listed({writer: there.get(writer, []) for writer in adopted})
            return adopted

    def retire_own(self, writer: str, upto: int, *, sealed_below: float) -> None:
        """Retire the own segments that lie wholly at or below a watermark just read from the server."""
        with self._reader.lock:
            for segment in self._due({writer: upto}, sealed_below).get(writer, ()):
                self._remove(segment, upto)

    def retire(self, marks: Mapping[str, int], ending: Callable[[list[str]], None], *, locks_work: bool) -> None:
        """Retire what adopted or dead writers have below watermarks just read from the server.

        `ending` is called before the last file of a writer goes; if it raises, the files stay.
        """
        with self._reader.lock:
            due = self._due(marks, math.inf)
        names = list(due)
        for start in range(0, len(names), ADOPTED_TOGETHER):
            self._retire_all({each: due[each] for each in names[start : start + ADOPTED_TOGETHER]}, marks, ending,
                             locks_work=locks_work)  # fmt: skip

    def _retire_all(
        self,
        due: Mapping[str, Sequence[SegmentFile]],
        marks: Mapping[str, int],
        ending: Callable[[list[str]], None],
        *,
        locks_work: bool,
    ) -> None:
        held_before = set(self._held)
        adopted = self.adopt(list(due), locks_work=locks_work)
        try:
            last = [each for each in adopted if due[each] and len(self._reader.listed(each)) <= len(due[each])]
            if last:
                ending(last)
            with self._reader.lock:
                for writer, adoption in adopted.items():
                    for segment in due[writer]:
                        self._remove(segment, marks[writer])
                    if adoption.lock is not None and not self._reader.listed(writer):
                        adoption.lock.unlink()
        finally:
            for writer, adoption in adopted.items():
                if writer not in held_before:
                    adoption.release()

    def _due(self, marks: Mapping[str, int], sealed_below: float) -> dict[str, list[SegmentFile]]:
        """The segments that have been drained for as long as they are kept; one look at the directory for all."""
        listing = list_directory(self._directory)
        there = listing.by_writer()
        retained = sum(each.size for each in listing.segments if each.is_drained)
        most = self._keep_bytes()
        now = time.monotonic()
        due: dict[str, list[SegmentFile]] = {}
        for writer, upto in marks.items():
            if writer in self._held and writer not in there:
                # Its process died before its first record: only the lock file is left to go.
                due[writer] = []
            sealed = [each for each in there.get(writer, ()) if each.number < sealed_below]
            covered = [each for each in sealed if self._is_covered(each, upto)]
            retained += sum(each.size for each in covered if not each.is_drained)
            for segment in covered:
                age = now - self._drained_since(segment, now)
                # A server may still lose what it has just confirmed, so that is never removed.
                if age >= self._keep_seconds or (retained > most and age >= self._least_seconds):
                    retained -= segment.size
                    due.setdefault(writer, []).append(segment)
        return due

    def clean(self, own: str, *, locks_work: bool) -> None:
        """Remove the lock files of dead writers that left nothing else."""
        if not locks_work:
            return
        listing = list_directory(self._directory)
        with_segments = {segment.writer for segment in listing.segments}
        for writer in listing.locks - with_segments - {own}:
            lock = WriterLock.take(self._directory, writer, create=False)
            if lock is not None:
                if not list_directory(self._directory).of(writer):
                    lock.unlink()
                lock.release()

    def release_all(self) -> None:
        """Let go of every adopted writer."""
        for adoption in list(self._held.values()):
            adoption.release()

    def reset(self) -> None:
        """In a forked child: what is held is held by the parent."""
        self._held.clear()

    def _complain(self, writer: str, error: OSError) -> None:
        """A journal whose lock cannot be taken, perhaps another user's, does not hold up the others."""
        if writer not in self._untakable:
            self._untakable.add(writer)
            logger.warning("the journal of %s waits: its lock cannot be taken (%s)", writer, describe(error))

    def _released(self, writer: str) -> None:
        self._held.pop(writer, None)
        self._reader.unlist(writer)

    def _is_covered(self, segment: SegmentFile, upto: int) -> bool:
        if self._reader.span(segment).last <= upto:
            return True
        # The watermark has gone back: this segment is needed again.
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

    def _remove(self, segment: SegmentFile, upto: int) -> None:
        """Unlink a segment, or put it aside when it is damaged."""
        if self._reader.span(segment, fresh=True).last > upto:
            return
        key = (segment.writer, segment.number)
        try:
            if key in self._reader.damaged:
                segment.path.rename(_free_name(segment.path))
            else:
                segment.path.unlink(missing_ok=True)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise JournalError(f"a drained segment cannot be removed ({describe(error)})") from None
        self._reader.drop(segment)
        self._drained_at.pop(key, None)


def _free_name(path: Path) -> Path:
    """A name for a damaged segment under which nothing is kept yet."""
    target, copies = path.with_name(f"{path.name}.damaged"), 0
    while target.exists():
        copies += 1
        target = path.with_name(f"{path.name}.damaged.{copies}")
    return target
