"""How a process is doing: its breakers, one sentence for the agent, and what `status` and `doctor` read of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from hermes_memory_pgvector import hook_guard
from hermes_memory_pgvector.breaker import Breaker, BreakerStatus
from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.meters import FAILED_HOOKS, LOST, RECOVERED, REFUSED, SEPARATOR
from hermes_memory_pgvector.runtime import processes
from hermes_memory_pgvector.runtime.recorder import Recorder
from hermes_memory_pgvector.writer.embed_pending import Backlog
from hermes_memory_pgvector.writer.writer import Writer

PUBLISH_SECONDS = 20.0
LOOK_SECONDS = 2.0


class Status:
    """Reports on the parts of one engine."""

    def __init__(
        self,
        journal: Journal,
        recorder: Recorder,
        writer: Writer,
        backlog: Backlog,
        embedder: ConfiguredEmbedder,
        reads: Breaker,
        short_turns: Callable[[], int],
    ) -> None:
        self._journal = journal
        self._recorder = recorder
        self._writer = writer
        self._backlog = backlog
        self._embedder = embedder
        self._reads = reads
        self._short_turns = short_turns
        self._published: tuple[float, object] = (0.0, None)

    def breakers(self) -> list[BreakerStatus]:
        """All breakers."""
        parts = (self._writer.breaker, self._reads, self._backlog.breaker, self._embedder.breaker)
        return [breaker.status() for breaker in (*parts, *list(self._writer.away.values()))]

    def degradation(self) -> str:
        """One sentence while something is not working, otherwise empty."""
        if self._writer.breaker.is_open or self._reads.is_open:
            return "The memory database is out of reach: what you save is kept and arrives later, recall may be empty."
        if self._writer.away_now:
            return "A part of the memory database is out of reach: of some themes, what you save arrives later."
        if self._embedder.fault:
            return "A setting of the embedder is wrong: recall works by words only until it is corrected."
        if self._embedder.breaker.is_open or self._backlog.breaker.is_open:
            return "The embedding service is out of reach: recall works by words only for now."
        return ""

    def publish(self) -> float:
        """Tell it when something has changed, and at intervals; return the seconds until the next time."""
        breakers, writer, backlog = self.breakers(), self._writer.status(), self._backlog.status()
        refused, failed = self._recorder, hook_guard.failures
        news = {
            "writer_dead": writer.dead,
            "writer_again": writer.again,
            "writer_gone": writer.gone,
            "short_turns": self._short_turns(),
            "refused_turns": refused.turns,
            "refused_memories": refused.memories,
            "refused_waiting": refused.waiting,
            "refused_recovered": refused.recovered,
            "refused_lost": refused.lost,
            "failed_hooks": failed.count,
        }
        seen, now = ([each.state for each in breakers], news), time.monotonic()
        if seen != self._published[1] or now - self._published[0] >= PUBLISH_SECONDS:
            self._published = (now, seen)
            text = processes.text_of_now(
                breakers,
                writer_stored=writer.stored,
                writer_waiting=writer.waiting,
                backlog_embedded=backlog.embedded,
                backlog_problem=backlog.problem,
                latest_failure=failed.latest,
                sync_lag_seconds=self._journal.sync_lag_seconds,
                **news,
            )
            self._journal.tell(text)
        return LOOK_SECONDS

    def state(self) -> Mapping[str, Any]:
        """What changes up and down, for heartbeats: numbers, and sentences about what does not work."""
        writer, backlog = self._writer.status(), self._backlog.status()
        waiting = self._journal.depth(self._journal.writer, self._writer.mark) if writer.waiting else None
        trouble = {each.name: each.reason for each in self.breakers() if each.state != "closed"}
        if backlog.problem:
            trouble["vectors"] = backlog.problem
        if self._recorder.waiting:
            away = [f"; it waits for bucket {bucket}" for bucket in self._writer.away_now]
            trouble["refused writes"] = "the journal is full, or its disk is" + "".join(away)
        return {
            "journal_records": 0 if waiting is None else waiting.records,
            "journal_bytes": 0 if waiting is None else waiting.bytes,
            "journal_oldest_seconds": 0 if waiting is None else round(waiting.oldest_age_seconds, 1),
            "refused_waiting": self._recorder.waiting,
            "trouble": trouble,
        }

    def counters(self) -> Mapping[str, float]:
        """What the parts count for themselves, by the names that meters have."""
        refused = self._recorder
        return {
            f"{REFUSED}{SEPARATOR}turn": refused.turns,
            f"{REFUSED}{SEPARATOR}memory": refused.memories,
            RECOVERED: refused.recovered,
            LOST: refused.lost,
            FAILED_HOOKS: hook_guard.failures.count,
        }

    @property
    def is_away(self) -> bool:
        """Whether the database takes nothing now, or nothing has been stored in it yet."""
        return self._writer.breaker.is_open or self._reads.is_open
