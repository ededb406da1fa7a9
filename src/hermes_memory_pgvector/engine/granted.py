"""Stores what was kept as a dead letter because its login was not granted the theme, once it is granted."""

from __future__ import annotations

import logging
import time

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseRejected
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.store import dead_letters
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import WRITER
from hermes_memory_pgvector.writer.writer import Writer

logger = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
STEP_SECONDS = 60.0
TOGETHER = 200


class StoreGranted:
    """Looks now and then while something waits for a grant; a process that waits for none asks nothing."""

    def __init__(self, pool: Pool, writer: Writer) -> None:
        self._pool = pool
        self._writer = writer
        self._is_waiting = True
        """Until it was looked, somebody may have left something."""
        self._refused = 0
        self._looked_at = 0.0

    def run(self) -> float:
        """Store what may be stored by now, in the order in which it was said."""
        if not self._writer.has_verified or self._writer.breaker.is_open:
            return LOOK_SECONDS
        refused, now = self._writer.not_granted, time.monotonic()
        if not (self._is_waiting or refused != self._refused) or now - self._looked_at < LOOK_SECONDS:
            return LOOK_SECONDS
        self._refused, self._looked_at = refused, now
        stored, left = self._store()
        self._is_waiting = left
        if stored:
            logger.warning("%d records that waited for a grant are stored", stored)
            self._writer.was_granted()
        return LOOK_SECONDS

    def _store(self) -> tuple[int, bool]:
        """How many records were stored, and whether others wait on."""
        refused: set[str] = set()
        stored = after = 0
        while True:
            with self._pool.transaction(Deadline.after(STEP_SECONDS), reach=WRITER) as connection:
                letters = dead_letters.not_granted(connection, after, TOGETHER)
            for letter, payload in letters:
                after = letter
                try:
                    items = codec.decode(payload)
                except ValueError:
                    continue
                themes = {item.theme for item in items}
                if themes & refused:
                    continue
                try:
                    with self._pool.transaction(Deadline.after(STEP_SECONDS), reach=WRITER) as connection:
                        # Stored and gone in one transaction: however often it is tried, the record is stored once.
                        if dead_letters.drop(connection, letter):
                            self._writer.store(connection, f"letter:{letter}", items)
                            stored += 1
                except DatabaseRejected:
                    refused |= themes
            if len(letters) < TOGETHER:
                return stored, bool(refused)
