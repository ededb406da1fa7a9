"""Small regular tasks of a process, done by the upkeep thread: each does what is due and says when to ask again."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_memory_pgvector import hook_guard
from hermes_memory_pgvector.breaker import BreakerStatus
from hermes_memory_pgvector.capture.refused_writes import Refusals
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Embedder
from hermes_memory_pgvector.engine import status_file
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.search import refresh_statistics
from hermes_memory_pgvector.writer.embed_pending import Backlog
from hermes_memory_pgvector.writer.writer import Writer

logger = logging.getLogger(__name__)

WARM_UP_SECONDS = 30.0
PUBLISH_SECONDS = 15.0
REAP_SECONDS = 10.0
STATISTICS_SECONDS = 300.0
CHECK_SECONDS = 3600.0
CHECK_SAMPLES = 5
SEARCH_SECONDS = 60.0
MAX_THEMES = 1000
NEVER_AGAIN_SECONDS = 86_400.0


class Chores:
    """What one process has to do now and then; used by one thread, but for `note_theme`."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        pool: Pool,
        embedder: Embedder,
        writer: Writer,
        backlog: Backlog,
        recall: Recall,
        refusals: Refusals,
        breakers: Callable[[], Sequence[BreakerStatus]],
        *,
        is_local: bool,
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._pool = pool
        self._embedder = embedder
        self._writer = writer
        self._backlog = backlog
        self._recall = recall
        self._refusals = refusals
        self._breakers = breakers
        self._wants_warmth = is_local
        self._published: tuple[float, object] = (0.0, None)
        self._statistics = (0.0, 0)
        self._themes: set[str] = set()
        self._check_at = time.monotonic() + STATISTICS_SECONDS

    def note_theme(self, theme: str) -> None:
        """A theme is in use in this process: its searches are worth checking."""
        if len(self._themes) < MAX_THEMES:
            self._themes.add(theme)

    def warm_up(self) -> float:
        """Load the local model before somebody waits for it."""
        if self._wants_warmth:
            self._wants_warmth = False
            self._embedder.embed_query("warm up", Deadline.after(WARM_UP_SECONDS))
        return NEVER_AGAIN_SECONDS

    def refresh_statistics(self) -> float:
        """Keep the rarity of words current while rows keep coming."""
        stored, now = self._writer.status().stored, time.monotonic()
        at, seen = self._statistics
        if stored != seen and (at == 0.0 or now - at >= STATISTICS_SECONDS) and not self._writer.breaker.is_open:
            with self._pool.transaction(Deadline.after(SEARCH_SECONDS)) as connection:
                refresh_statistics(connection)
            self._statistics = (now, stored)
        return STATISTICS_SECONDS

    def check_search(self) -> float:
        """Compare a theme's searches with brute force; too rough a selection is widened, and told."""
        now = time.monotonic()
        if not self._themes or now < self._check_at or self._writer.breaker.is_open:
            return STATISTICS_SECONDS
        self._check_at = now + CHECK_SECONDS
        theme = random.choice(tuple(self._themes))  # noqa: S311 - a sample, not a secret
        check = self._recall.verify(theme, Deadline.after(SEARCH_SECONDS), samples=CHECK_SAMPLES)
        if check is not None and check.recall < 1.0:
            logger.warning(
                "a sample of searches found %.1f %% of the nearest rows; %d rows are compared exactly from now on",
                100 * check.recall,
                check.candidates,
            )
        return STATISTICS_SECONDS

    def reap(self) -> float:
        """Close connections that nobody needs."""
        self._pool.reap()
        return REAP_SECONDS

    def publish(self) -> float:
        """Let `status` and `doctor` see how this process is doing: when something changes, and now and then."""
        breakers, writer, backlog = self._breakers(), self._writer.status(), self._backlog.status()
        refused, failed = self._refusals.status(), hook_guard.failures()
        figures = (tuple(each.state for each in breakers), refused, writer.dead, writer.gone, failed.count)
        now = time.monotonic()
        if figures != self._published[1] or now - self._published[0] >= PUBLISH_SECONDS:
            self._published = (now, figures)
            shot = status_file.snapshot(
                breakers,
                writer_stored=writer.stored,
                writer_waiting=writer.waiting,
                writer_dead=writer.dead,
                writer_gone=writer.gone,
                backlog_embedded=backlog.embedded,
                backlog_problem=backlog.problem,
                refused_turns=refused.turns,
                refused_memories=refused.memories,
                refused_waiting=refused.waiting,
                refused_recovered=refused.recovered,
                refused_overflowed=refused.overflowed,
                refused_lost=refused.lost,
                refused_problem=refused.problem,
                failed_hooks=failed.count,
                latest_failure=failed.latest,
                journal_writer=self._journal.writer,
                sync_lag_seconds=self._journal.stats().sync_lag_seconds,
            )
            status_file.publish(self._folder, shot)
        return PUBLISH_SECONDS
