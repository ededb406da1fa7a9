"""The journal's helper: the only thread that opens, syncs, rotates and closes the files being written.

While records come in it looks after them every `sync_interval`; when nothing has happened for a second it sleeps until
an append wakes it.
"""

from __future__ import annotations

import time
import weakref
from typing import Protocol

from hermes_memory_pgvector.journal.appender import Appender
from hermes_memory_pgvector.service import Service

_IDLE_SECONDS = 1.0
_SLEEP_SECONDS = 30.0
_CENSUS_SECONDS = 2.0
_CLEANING_SECONDS = 60.0
_RETRY_SECONDS = 0.25


class Tended(Protocol):
    """What the helper needs of the journal."""

    @property
    def is_closing(self) -> bool: ...
    def finish(self) -> None: ...
    def announce(self) -> None: ...
    def count_others(self) -> None: ...
    def clean(self) -> None: ...


class Helper(Service):
    """Tends one journal without keeping it alive."""

    def __init__(self, journal: Tended, appender: Appender, sync_interval: float) -> None:
        super().__init__("hermes-pgvector-journal")
        self._journal = weakref.ref(journal)
        self._appender = appender
        self._interval = sync_interval
        self._activity = 0
        self._active_at = time.monotonic()
        self._census_due = 0.0
        self._cleaning_due = self._active_at + _CLEANING_SECONDS

    def run_once(self) -> float:
        """Do what is due and say when to come again; end when nobody has the journal any more."""
        journal = self._journal()
        if journal is None:
            self.end()
            return 0.0
        if journal.is_closing:
            self.end()
            journal.finish()
            return 0.0
        pause = self._interval
        journal.announce()
        if self._appender.wants_rotation and not self._appender.rotate():
            pause = max(pause, _RETRY_SECONDS)
        self._appender.sync()
        now = time.monotonic()
        if now >= self._census_due:
            self._census_due = now + _CENSUS_SECONDS
            journal.count_others()
        if now >= self._cleaning_due:
            self._cleaning_due = now + _CLEANING_SECONDS
            journal.clean()
        return self._rest(pause, now)

    def _rest(self, pause: float, now: float) -> float:
        appender = self._appender
        with appender.lock:
            activity = appender.count + appender.capacity.refused
            if activity != self._activity:
                self._activity, self._active_at = activity, now
            if now - self._active_at < _IDLE_SECONDS or appender.is_dirty or appender.wants_rotation:
                return pause
            appender.is_asleep = True
            # Near the bound it matters soon when other processes have made room.
            return _CENSUS_SECONDS if appender.capacity.is_crowded else _SLEEP_SECONDS
