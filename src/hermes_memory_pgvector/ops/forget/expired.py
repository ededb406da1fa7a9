"""`forget --expired`: what is older than the setting ttl_days keeps it. A process does the same now and then."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

from hermes_memory_pgvector.errors import ConfigError, Held
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.postgres.buckets import within
from hermes_memory_pgvector.runtime.sweep import sweep_once
from hermes_memory_pgvector.store import expiry
from hermes_memory_pgvector.store.expiry import Rules
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import Plan


@dataclass(frozen=True, slots=True)
class ExpiredTheme:
    """What a theme has that is too old."""

    theme: str = column("theme")
    turns: int = column("turns", right=True, default=0)
    oldest: datetime | None = column("oldest")


def run(memory: Memory, theme: str | None, *, execute: bool) -> Plan:
    """Say what is due, or delete it, a little at a time."""
    rules = Rules.of(memory.parsed.settings, datetime.now(UTC), theme)
    if rules.is_empty:
        raise ConfigError("no setting says how long turns are kept: set ttl_days, or forget --before a time")
    with memory.reading(theme) as connection:
        found = [(expiry.due(connection, rules, 0), expiry.due_memories(connection, rules)) for _ in within(connection)]
        due = [each for turns, _ in found for each in turns]
        counts = {"turns": sum(each.now for each in due), "memories": sum(len(memories) for _, memories in found)}
    if execute:
        counts = _delete(memory, rules)
    themes = [ExpiredTheme(each.theme, each.now, each.oldest) for each in due]
    return Plan("delete as too old", "deleted as too old", counts, themes, execute)


def _delete(memory: Memory, rules: Rules) -> dict[str, int]:
    counts: Counter[str] = Counter()
    actor = memory.actor
    with memory.pool() as pool:
        while (expired := sweep_once(pool, rules, actor.home_id, actor.name)) is not None:
            counts.update(expired)
            if not expired.total():
                return +counts
    raise Held("another process is deleting what is too old at this moment; try again")
