"""How far each journal has arrived, as the database last told this process.

Only the database knows, each bucket for itself. What is remembered here shows when its marks go back, as after a
restore or a failover, and how far records were looked through in which a bucket has no part.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import FIRST_POSITION, Journal, file_number

logger = logging.getLogger(__name__)


class Progress:
    """The marks of journals; the writer's thread changes them, any thread may read and wait."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.buckets = 1
        self._told: dict[tuple[str, int], int] = {}
        """The marks of journals in each bucket."""
        self._passed: dict[tuple[str, int], int] = {}
        """How far there is nothing left for a bucket; with one bucket, its mark."""
        self._changed = threading.Condition()
        self._own = ("", 0)
        """This process's journal, and how many records of it are stored."""
        self.stored = 0
        self.again = 0
        """Records that are stored again, because the database went back to an earlier state."""
        self.gone: set[str] = set()
        """Journals of which it lacks records that were in files kept no longer."""

    def of(self, writer: str, bucket: int | None = None) -> int:
        """How far a journal has arrived in a bucket, or in all of them; 0 when nothing is known."""
        if bucket is not None:
            return self._passed.get((writer, bucket), 0)
        return min(self._passed.get((writer, each), 0) for each in range(self.buckets))

    def told(self, writer: str) -> dict[int, int]:
        """The marks of a journal, by bucket."""
        return {bucket: self._told.get((writer, bucket), 0) for bucket in range(self.buckets)}

    def deal(self, buckets: int) -> bool:
        """The database has so many buckets; whether that is news."""
        is_news, self.buckets = buckets != self.buckets, buckets
        if is_news:
            self._told, self._passed = {}, {}
        return is_news

    @property
    def own_waits(self) -> bool:
        """Whether this process has appended records that have not arrived."""
        return self._journal.end > self.of(self._journal.writer)

    @property
    def waiting(self) -> int:
        """How many these are."""
        writer, stored = self._own
        count = self._journal.appended - (stored if writer == self._journal.writer else 0)
        return max(1, count) if self.own_waits else 0

    def wait(self, deadline: Deadline, is_running: Callable[[], bool]) -> bool:
        """Wait until everything appended so far has arrived; False when the deadline came first."""
        writer, goal = self._journal.writer, self._journal.end
        with self._changed:
            while self.of(writer) < goal and self._journal.writer == writer:
                if deadline.is_over or not is_running():
                    return False
                self._changed.wait(min(0.2, deadline.remaining()))
        return True

    def pass_by(self, writer: str, bucket: int, position: int) -> None:
        """Up to here nothing is for this bucket."""
        with self._changed:
            self._passed[writer, bucket] = position
            self._changed.notify_all()

    def arrived(self, writer: str, mark: int, count: int, bucket: int = 0) -> None:
        """A transaction has stored so many records, and moved the mark."""
        with self._changed:
            self._told[writer, bucket] = self._passed[writer, bucket] = mark
            self.stored += count
            if writer == self._journal.writer:
                before = self._own[1] if self._own[0] == writer else 0
                self._own = (writer, before + count)
            self._changed.notify_all()

    def keep_only(self, writers: Collection[str]) -> None:
        """The files of all other journals are gone."""
        self._told = {key: mark for key, mark in self._told.items() if key[0] in writers}
        self._passed = {key: mark for key, mark in self._passed.items() if key[0] in writers}

    def compare(self, writer: str, mark: int, bucket: int = 0) -> None:
        """Remember a mark as the server tells it, and say so when it has gone back.

        Where agents were stopped for a restore, no process remembers the marks, but the files of a journal do, unless
        there are several buckets.
        """
        key = writer, bucket
        is_remembered = key in self._told
        known = self._told[key] if is_remembered else 0 if self.buckets > 1 else self._journal.once_stored(writer)
        self._told[key] = mark
        if (is_remembered or self.buckets > 1) and mark >= known:
            self._passed[key] = max(mark, self._passed.get(key, 0))
            return
        self._passed[key] = mark
        again = self._journal.depth(writer, mark, known).records if mark < known else 0
        first = self._journal.first_kept(writer)
        # Files go once the database has what is in them, so one that is missing behind the mark was stored once.
        has_gap = file_number(first) > file_number(mark) + 1
        if not (is_remembered or again or has_gap):
            # What a drained file ends with may be no record.
            return
        is_gone = has_gap or first > max(mark, FIRST_POSITION)
        self.again += again
        if is_gone:
            self.gone.add(writer)
        logger.warning(
            "the database has gone back, as after a restore: it lacks records of the journal of %s; "
            "%d are stored again from its files%s",
            writer,
            again,
            ", and those in files that are kept no longer are gone" if is_gone else "",
        )
