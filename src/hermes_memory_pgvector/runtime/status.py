"""How a process is doing: its breakers, one sentence for the agent, and what `status` and `doctor` read of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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


@dataclass
class Status:
    """Reports on the parts of one engine."""

    journal: Journal
    recorder: Recorder
    writer: Writer
    backlog: Backlog
    embedder: ConfiguredEmbedder
    reads: Breaker
    short_turns: Callable[[], int]
    _published: tuple[float, object] = field(default=(0.0, None), init=False)

    def breakers(self) -> list[BreakerStatus]:
        """All breakers."""
        parts = (self.writer.breaker, self.reads, self.backlog.breaker, self.embedder.breaker)
        return [breaker.status() for breaker in (*parts, *list(self.writer.away.values()))]

    def degradation(self) -> str:
        """One sentence while something is not working, otherwise empty."""
        if self.writer.breaker.is_open or self.reads.is_open:
            return "The memory database is out of reach: what you save is kept and arrives later, recall may be empty."
        if self.writer.away_now:
            return "A part of the memory database is out of reach: of some themes, what you save arrives later."
        if self.embedder.fault:
            return "A setting of the embedder is wrong: recall works by words only until it is corrected."
        if self.embedder.breaker.is_open or self.backlog.breaker.is_open:
            return "The embedding service is out of reach: recall works by words only for now."
        return ""

    def publish(self) -> float:
        """Tell it when something has changed, and at intervals; return the seconds until the next time."""
        breakers, progress = self.breakers(), self.writer.progress
        refused, failed = self.recorder, hook_guard.failures
        news = {
            "writer_dead": self.writer.dead,
            "writer_again": progress.again,
            "writer_gone": len(progress.gone),
            "short_turns": self.short_turns(),
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
                writer_stored=progress.stored,
                writer_waiting=progress.waiting,
                backlog_embedded=self.backlog.embedded,
                backlog_problem=self.backlog.problem,
                latest_failure=failed.latest,
                sync_lag_seconds=self.journal.sync_lag_seconds,
                **news,
            )
            self.journal.tell(text)
        return LOOK_SECONDS

    def state(self) -> Mapping[str, Any]:
        """What changes up and down, for heartbeats: numbers, and sentences about what does not work."""
        waiting = self.journal.depth(self.journal.writer, self.writer.mark) if self.writer.progress.waiting else None
        trouble = {each.name: each.reason for each in self.breakers() if each.state != "closed"}
        if self.backlog.problem:
            trouble["vectors"] = self.backlog.problem
        if self.recorder.waiting:
            away = [f"; it waits for bucket {bucket}" for bucket in self.writer.away_now]
            trouble["refused writes"] = "the journal is full, or its disk is" + "".join(away)
        return {
            "journal_records": 0 if waiting is None else waiting.records,
            "journal_bytes": 0 if waiting is None else waiting.bytes,
            "journal_oldest_seconds": 0 if waiting is None else round(waiting.oldest_age_seconds, 1),
            "refused_waiting": self.recorder.waiting,
            "trouble": trouble,
        }

    def counters(self) -> Mapping[str, float]:
        """What the parts count for themselves, by the names that meters have."""
        refused = self.recorder
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
        return self.writer.breaker.is_open or self.reads.is_open
