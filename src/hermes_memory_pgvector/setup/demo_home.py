"""Fills a home with the made-up fleet of `demo_fleet`, the way everything is written: through the journal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector.care import quarantine
from hermes_memory_pgvector.care.actor import operator
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.registry import engine_for
from hermes_memory_pgvector.errors import DatabaseUnavailable
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.setup import demo_fleet
from hermes_memory_pgvector.store import browse, recall_log
from hermes_memory_pgvector.store.quarantine import Rule
from hermes_memory_pgvector.store.reach import OPERATOR, WRITER

SECONDS = 60.0


def fill(home: Path) -> None:
    """Write two weeks, with their vectors, date them back, and quarantine what was noticed."""
    now = datetime.now(UTC)
    engine, _ = engine_for(home)
    engine.record(list(demo_fleet.items(now)), Urgency.TURN)
    if not engine.flush(Deadline.after(SECONDS)):
        raise DatabaseUnavailable(engine.writer.status().last_error or "the vectors were not ready in time")
    with engine.pool.transaction(Deadline.after(SECONDS), reach=WRITER) as connection:
        recall_log.insert(connection, demo_fleet.answers(now))
        for theme in demo_fleet.THEMES:
            browse.date_growth(connection, theme)
    with engine.pool.transaction(Deadline.after(SECONDS), reach=OPERATOR) as connection:
        rule = Rule(session_id=demo_fleet.NOTICED_SESSION, theme=demo_fleet.POISONED)
        quarantine.plan(connection, rule, operator(home), execute=True)
