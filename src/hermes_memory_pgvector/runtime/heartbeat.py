"""Tells the database now and then that this process lives and how it is doing.

`status --fleet` and `metrics` read what all processes have told. While something happens it is told every minute, and
otherwise often enough to be known as alive: an idle process costs next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hermes_memory_pgvector import __version__, machine
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.meters import BATCHES, Meters
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.runtime.processes import command
from hermes_memory_pgvector.runtime.status import Status
from hermes_memory_pgvector.store import processes

FIRST_SECONDS = 15.0
BUSY_SECONDS = 60.0
QUIET_SECONDS = 300.0
GRACE_SECONDS = 60.0
LOOK_SECONDS = 15.0
DATABASE_SECONDS = 10.0


@dataclass(slots=True)
class Life:
    """One process's work for one home, from its start to its end, whatever becomes of its settings."""

    meters: Meters = field(default_factory=Meters)
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    started: float = field(default_factory=time.monotonic)
    is_known: bool = False
    """Whether the database has heard of it."""


@dataclass
class Heartbeat:
    """The task that tells it."""

    life: Life
    pool: Pool
    home: Path
    home_id: str
    status: Status
    has_met: Callable[[], bool]
    """Whether it has written or read anything yet; before that the database may not be ours."""
    _told: tuple[object, ...] = field(default=(), init=False)
    _told_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._due_at = self.life.started + FIRST_SECONDS

    def run(self) -> float:
        """Tell it if that is due."""
        now = time.monotonic()
        if now < self._due_at:
            return self._due_at - now
        if self.status.is_away or not self.has_met():
            return LOOK_SECONDS
        counters = self._counters()
        trouble = self.status.state()["trouble"]
        if (counters, trouble) == self._told and now - self._told_at < QUIET_SECONDS:
            self._due_at = now + LOOK_SECONDS
            return LOOK_SECONDS
        self._tell(counters, Deadline.after(DATABASE_SECONDS))
        self._told, self._told_at = (counters, trouble), now
        self._due_at = now + BUSY_SECONDS
        return BUSY_SECONDS

    def end(self, deadline: Deadline) -> None:
        """The process is about to end: tell it if the database has heard of it, or if it has stored something."""
        counters = self._counters()
        if self.status.is_away or deadline.is_over or not (self.life.is_known or BATCHES in counters):
            return
        with contextlib.suppress(MemoryPluginError):
            self._tell(counters, deadline.earlier(DATABASE_SECONDS), is_ended=True)

    def _counters(self) -> dict[str, float]:
        found = {**self.life.meters.totals(), **self.status.counters()}
        return {name: value for name, value in found.items() if value}

    def _tell(self, counters: Mapping[str, float], deadline: Deadline, *, is_ended: bool = False) -> None:
        life = self.life
        process = processes.Process(
            id=life.id,
            home_id=self.home_id,
            host=machine.host_name() or "this machine",
            pid=os.getpid(),
            command=command(),
            version=__version__,
        )
        with self.pool.transaction(deadline) as connection:
            processes.beat(
                connection,
                process,
                {"home": str(self.home), **self.status.state(), "counters": counters},
                age=time.monotonic() - life.started,
                silent_seconds=QUIET_SECONDS + GRACE_SECONDS,
                is_ended=is_ended,
            )
        life.is_known = True
