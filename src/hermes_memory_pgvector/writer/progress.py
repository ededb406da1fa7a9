"""How far each journal has arrived, as the database last told this process.

Only the database knows. What is remembered here shows when its marks go back, as after a restore or a failover.
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
        self._marks: dict[str, int] = {}
        self._changed = threading.Condition()
        self._own = ("", 0)
        """This process's journal, and how many records of it are stored."""
        self.stored = 0
        self.again: dict[str, int] = {}
        """Journals that the database went back on: how many records of each are stored again."""
        self.gone: set[str] = set()
        """Those of which records were in files that are kept no longer."""

    def of(self, writer: str) -> int:
        """The mark of a journal; 0 when none is known."""
        return self._marks.get(writer, 0)

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

    def arrived(self, writer: str, mark: int, count: int) -> None:
        """A transaction has stored so many records, and moved the mark."""
        with self._changed:
            self._marks[writer] = mark
            self.stored += count
            if writer == self._journal.writer:
                before = self._own[1] if self._own[0] == writer else 0
                self._own = (writer, before + count)
            self._changed.notify_all()

    def keep_only(self, writers: Collection[str]) -> None:
        """The files of all other journals are gone."""
        self._marks = {writer: mark for writer, mark in self._marks.items() if writer in writers}

    def compare(self, writer: str, mark: int) -> None:
        """Remember a mark as the server tells it, and say so when it has gone back.

        Where agents were stopped for a restore, no process remembers the marks, but the files of a journal do.
        """
        is_remembered = writer in self._marks
        known = self._marks[writer] if is_remembered else self._journal.once_stored(writer)
        self._marks[writer] = mark
        if is_remembered and mark >= known:
            return
        again = self._journal.depth(writer, mark, known).records if mark < known else 0
        first = self._journal.first_kept(writer)
        # Files go once the database has what is in them, so one that is missing behind the mark was stored once.
        has_gap = file_number(first) > file_number(mark) + 1
        if not (is_remembered or again or has_gap):
            # What a drained file ends with may be no record.
            return
        is_gone = has_gap or first > max(mark, FIRST_POSITION)
        self.again[writer] = self.again.get(writer, 0) + again
        if is_gone:
            self.gone.add(writer)
        logger.warning(
            "the database has gone back, as after a restore: it lacks records of the journal of %s; "
            "%d are stored again from its files%s",
            writer,
            again,
            ", and those in files that are kept no longer are gone" if is_gone else "",
        )
