"""Deletes what is older than it is kept, a little at a time and in one process at a time.

In the background a home deletes the turns that it wrote itself, by its own settings.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import audit_log, expiry, gate, marks, receipts
from hermes_memory_pgvector.store.expiry import Rules
from hermes_memory_pgvector.store.marks import Marker
from hermes_memory_pgvector.store.receipts import Receipt
from hermes_memory_pgvector.writer.writer import Writer

ACTOR = "sweep"
"""The name under which the audit log knows it."""
FIRST_SECONDS = 60.0
BUSY_SECONDS = 60.0
IDLE_SECONDS = 1800.0
STEP_SECONDS = 60.0
ROUNDS = 2
"""Transactions a minute, of at most expiry.BATCH rows each."""


def sweep_once(pool: Pool, rules: Rules, home_id: str, actor: str = ACTOR) -> Counter[str] | None:
    """Delete some of what is due, in one transaction of each bucket; what went, None when another process is at it."""

    def sweep(connection: Connection) -> Counter[str] | None:
        return _sweep(connection, rules, home_id, actor)

    swept = [
        each for each in buckets.each(pool, Deadline.after(STEP_SECONDS), sweep).found.values() if each is not None
    ]
    return sum(swept, Counter()) if swept else None


def _sweep(connection: Connection, rules: Rules, home_id: str, actor: str) -> Counter[str] | None:
    if not expiry.is_alone(connection):
        return None
    expired = Counter(turns=expiry.expire_turns(connection, rules, expiry.BATCH))
    if not expired.total() and rules.memories is not None:
        # Memories stand in the host's files: marks keep them from coming back.
        gate.close(connection)
        expired = Counter(memories=_expire_memories(connection, rules, rules.memories, home_id, actor))
    if expired.total():
        audit_log.insert(
            connection, actor=actor, home_id=home_id, action="forget", theme=rules.theme or "", subject="expired",
            counts=expired,
        )  # fmt: skip
    return expired


def _expire_memories(connection: Connection, rules: Rules, cut: datetime, home_id: str, actor: str) -> int:
    due = expiry.due_memories(connection, rules)
    if due:
        expiry.expire_memories(connection, due)
        marker, number = Marker(marks.key(connection)), receipts.number(connection)
        marks.insert(connection, number, {marker.of_words(each.theme, each.content): cut for each in due})
        counts = {"memories": len(due)}
        receipts.insert(connection, Receipt(number, datetime.now(UTC), actor, home_id, ("ttl_days",), counts))
    return len(due)


@dataclass
class Sweep:
    """The task that does it in the background."""

    pool: Pool
    writer: Writer
    settings: Settings
    home_id: str
    former: Collection[str] = ()
    _due_at: float = field(default_factory=lambda: time.monotonic() + FIRST_SECONDS, init=False)

    def run(self) -> float:
        """Delete a little, if anything is due."""
        rules = Rules.of(self.settings, datetime.now(UTC)).of_home(self.home_id, self.writer.themes, self.former)
        remaining = self._due_at - time.monotonic()
        if rules.is_empty or remaining > 0 or self.writer.breaker.is_open:
            return IDLE_SECONDS if rules.is_empty else max(1.0, remaining)
        pause = BUSY_SECONDS
        for _ in range(ROUNDS):
            expired = sweep_once(self.pool, rules, self.home_id)
            if expired is None or not expired.total():
                pause = IDLE_SECONDS
                break
        self._due_at = time.monotonic() + pause
        return pause
