"""What a process does now and then, in one background thread: vectors, MEMORY.md, refused writes, history.

The thread may wait for a slow embedder for as long as that takes; the writer has a thread of its own.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Embedder
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.mirror.mirror import Mirror
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.recall.log import RecallLog
from hermes_memory_pgvector.service import Service
from hermes_memory_pgvector.store import audit_log, flatten, gate, recall_log
from hermes_memory_pgvector.store.gate import theme_names
from hermes_memory_pgvector.store.recall_log import LoggedAnswer
from hermes_memory_pgvector.store.undone import Rewound, SessionName, UndoneTurns
from hermes_memory_pgvector.writer.writer import Writer

logger = logging.getLogger(__name__)

IDLE_SECONDS = 7.5
NEARLY_SECONDS = 0.5
QUIET_AFTER_SECONDS = 60.0
"""A process for which nobody has asked for so long looks after its tasks every IDLE_SECONDS at most.

`forget` waits twice as long for processes to empty their journals."""
CONFIGURATION_SECONDS = 2.0
SETTLING_SECONDS = 10.0
REREAD_SECONDS = 120.0
FILES_SECONDS = 2.0
RECOVER_SECONDS = 5.0
REAP_SECONDS = 10.0
UNDO_SECONDS = 60.0
STATISTICS_SECONDS = 300.0
CHECK_SECONDS = 3600.0
LOG_SECONDS = 2.0
HISTORY_THEMES = 20
DATABASE_SECONDS = 60.0
WARM_UP_SECONDS = 30.0
NEVER_AGAIN_SECONDS = 86_400.0

Task = Callable[[], float]
"""Does what is due and returns the seconds until it wants to run again."""


class Tasks(Service):
    """Runs tasks in turn; a task that fails runs again later and does not delay the others."""

    def __init__(self, tasks: Mapping[str, Task], *, database: str = "", home: str | None = None) -> None:
        super().__init__("hermes-pgvector-tasks", database=database, home=home, first_wait=0.25)
        self._tasks = tasks
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        """When a task that failed may run again, whoever asks for it."""
        self._due_at: dict[str, float] = {}
        self._is_woken = True
        self._woken_at = time.monotonic()
        self.problems: dict[str, str] = {}

    def wake(self) -> None:
        """Ask every task to look whether there is something to do."""
        self._is_woken = True
        super().wake()

    def run_once(self) -> float:
        """Run the tasks that are due, or all when somebody asks for it; return the shortest pause that any wants.

        There may be many processes with nothing to do on a machine: each wakes up seldom, and then for all that is
        nearly due.
        """
        is_woken, self._is_woken = self._is_woken, False
        if is_woken:
            self._woken_at = time.monotonic()
        is_quiet = time.monotonic() - self._woken_at >= QUIET_AFTER_SECONDS
        nearly = NEARLY_SECONDS * (2 if is_quiet else 1)
        for name, task in self._tasks.items():
            if self.is_stopping:
                break
            now = time.monotonic()
            due_at = self._not_before.get(name, 0.0) if is_woken else self._due_at.get(name, 0.0) - nearly
            if now < due_at:
                continue
            try:
                pause = max(0.0, task())
            except MemoryPluginError as error:
                self._put_off(name, error)
            else:
                self._due_at[name] = time.monotonic() + pause
                for book in (self._failures, self._not_before, self.problems):
                    book.pop(name, None)
        now = time.monotonic()
        pause = max(0.0, min(self._due_at.values(), default=now + IDLE_SECONDS) - now)
        # Whoever wants to go on at once has work to do.
        return max(pause, IDLE_SECONDS) if is_quiet and pause >= nearly else pause

    def _put_off(self, name: str, error: MemoryPluginError) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        self.problems[name] = str(error)
        pause: float = min(30.0, 0.25 * 2.0 ** min(failures, 8))
        self._not_before[name] = self._due_at[name] = time.monotonic() + pause
        logger.debug("task %s failed and runs again in %.1f s: %s", name, pause, error)


@dataclass
class WatchConfiguration:
    """Has the engine replaced when its configuration changes."""

    home: Path
    check: Callable[[], object]
    _seen: tuple[files.Signature | None, ...] = field(default=(), init=False)
    _changed_at: float = field(default=0.0, init=False)
    _read_at: float = field(default=0.0, init=False)

    def run(self) -> float:
        """Read the configuration when its files change, for a while after that, and otherwise now and then.

        A file that has just changed may be half written, or not believed yet; variables change without a file.
        """
        now = time.monotonic()
        seen = tuple(map(files.signature, settings_file.sources(self.home)))
        if seen != self._seen:
            self._seen, self._changed_at = seen, now
        if now - self._changed_at < SETTLING_SECONDS or now - self._read_at >= REREAD_SECONDS:
            self._read_at = now
            self.check()
        return CONFIGURATION_SECONDS


class WarmUp:
    """Loads the local model before anybody waits for it."""

    def __init__(self, embedder: Embedder, *, is_local: bool) -> None:
        self._embedder = embedder
        self._is_due = is_local

    def run(self) -> float:
        """Load the model, once."""
        if self._is_due:
            self._is_due = False
            self._embedder.embed_query("warm up", Deadline.after(WARM_UP_SECONDS))
        return NEVER_AGAIN_SECONDS


@dataclass
class MirrorFiles:
    """Brings rows in line with MEMORY.md and USER.md."""

    mirror: Mirror
    writer: Writer
    _: KW_ONLY
    on_changed: Callable[[], None]
    is_wanted: bool
    theme: Callable[[], str | None]
    """Where new entries belong; nothing is compared before it is known."""

    def run(self) -> float:
        """Compare the files with the rows if either has changed."""
        theme = self.theme()
        if not self.is_wanted or theme is None or not self.mirror.is_due():
            return FILES_SECONDS
        if self.writer.breaker.is_open:
            return IDLE_SECONDS
        before = self.mirror.changes_made
        pause = self.mirror.run(theme, lambda: self.writer.has_delivered)
        if self.mirror.changes_made != before:
            self.on_changed()
        return pause or FILES_SECONDS


@dataclass
class WatchUndo:
    """Looks what was taken back or brought back of the sessions that this process has stored turns of.

    Some hosts tell nobody of an undo, and the next turn of the session may be days away.
    """

    undone: UndoneTurns
    pool: Pool
    writer: Writer
    _seen: dict[SessionName, Rewound] = field(default_factory=dict, init=False)
    _due_at: float = field(default_factory=lambda: time.monotonic() + UNDO_SECONDS, init=False)

    def run(self) -> float:
        """Look, once a minute."""
        now = time.monotonic()
        if now < self._due_at or self.writer.breaker.is_open:
            return max(1.0, self._due_at - now)
        self._due_at = now + UNDO_SECONDS
        self._look(Deadline.after(DATABASE_SECONDS))
        return UNDO_SECONDS

    def finish(self, deadline: Deadline) -> None:
        """Look once more: the process ends."""
        if not self.writer.breaker.is_open and not deadline.is_over:
            with contextlib.suppress(MemoryPluginError):
                self._look(deadline)

    def _look(self, deadline: Deadline) -> None:
        now = self.undone.rewound(self.undone.sessions)
        changed = [name for name, rewound in now.items() if self._seen.get(name) != rewound]
        if changed:
            with self.pool.transaction(deadline) as connection:
                for part in buckets.apart(connection, changed, lambda name: name[0]):
                    self.undone.read(connection, part)
            self._seen = now


@dataclass
class ShortenHistory:
    """Takes what is older than `history_days` off the history of memories, a few themes at a time."""

    pool: Pool
    writer: Writer
    home_id: str
    days: int
    _due_at: float = field(default_factory=lambda: time.monotonic() + STATISTICS_SECONDS, init=False)

    def run(self) -> float:
        """Shorten what is due, now and then."""
        now = time.monotonic()
        if not self.days or now < self._due_at or self.writer.breaker.is_open:
            return STATISTICS_SECONDS
        self._due_at = now + CHECK_SECONDS
        before = datetime.now(UTC) - timedelta(days=self.days)
        shortened = buckets.each(self.pool, Deadline.after(DATABASE_SECONDS), lambda each: self._shorten(each, before))
        if HISTORY_THEMES in shortened.found.values():
            self._due_at = now + STATISTICS_SECONDS
        return STATISTICS_SECONDS

    def _shorten(self, connection: Connection, before: datetime) -> int:
        """Shorten what is due in a bucket; of how many themes."""
        # As every writer does: whoever forgets has the gate closed while waiting for a theme.
        gate.enter(connection)
        due = flatten.due(connection, before, HISTORY_THEMES)
        for theme, target in due:
            gone = flatten.shorten(connection, theme, target, before)
            if gone:
                audit_log.insert(
                    connection,
                    actor="sweep",
                    home_id=self.home_id,
                    action="expire history",
                    theme=theme,
                    subject=f"{target}, before {before:%Y-%m-%d}",
                    counts={"events": gone},
                )
        return len(due)


@dataclass
class KeepRecallLog:
    """Stores what recall answered."""

    log: RecallLog
    pool: Pool
    breaker: Breaker

    def run(self) -> float:
        """Store what waits; what cannot be stored waits on."""
        if self.breaker.is_open:
            return IDLE_SECONDS
        self._store(self.log.take(), Deadline.after(DATABASE_SECONDS))
        return LOG_SECONDS

    def flush(self, deadline: Deadline) -> None:
        """Store all that waits, if that can be done in time: the process ends, or another engine takes over."""
        if self.breaker.is_open or deadline.is_over:
            return
        with contextlib.suppress(MemoryPluginError):
            self._store(self.log.take(), deadline)

    def _store(self, answers: Sequence[LoggedAnswer], deadline: Deadline) -> None:
        try:
            self._insert(answers, deadline)
        except MemoryPluginError:
            self.log.give_back(answers)
            raise

    def _insert(self, answers: Sequence[LoggedAnswer], deadline: Deadline) -> None:
        if not answers:
            return
        with self.pool.transaction(deadline) as connection:
            told = self.log.without_made_up_themes(answers, theme_names(connection))
            for part in buckets.apart(connection, told, lambda each: each.theme):
                recall_log.insert(connection, part)


def reap(pool: Pool) -> float:
    """Close connections that nobody needs."""
    pool.reap()
    return REAP_SECONDS
