"""The second thread: vectors for stored rows, files compared with rows, idle connections closed.

It may wait for a slow embedder for as long as that takes; the writer never does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.service import Service

logger = logging.getLogger(__name__)

IDLE_SECONDS = 5.0

Task = Callable[[], float]
"""Does what is due; returns the seconds until it wants to be asked again."""


class Upkeep(Service):
    """Runs tasks in turn; a task that fails is tried again later and keeps no other from its turn."""

    def __init__(self, tasks: dict[str, Task]) -> None:
        super().__init__("hermes-pgvector-upkeep", first_wait=0.25)
        self._tasks = tasks
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self.problems: dict[str, str] = {}

    def run_once(self) -> float:
        """Give every task its turn; return the shortest pause that any asks for."""
        pause = IDLE_SECONDS
        for name, task in self._tasks.items():
            if self.is_stopping:
                break
            remaining = self._not_before.get(name, 0.0) - time.monotonic()
            if remaining > 0:
                pause = min(pause, remaining)
                continue
            try:
                pause = min(pause, max(0.0, task()))
            except MemoryPluginError as error:
                pause = min(pause, self._put_off(name, error))
            else:
                self._failures.pop(name, None)
                self.problems.pop(name, None)
        return pause

    def _put_off(self, name: str, error: MemoryPluginError) -> float:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        self.problems[name] = str(error)
        pause: float = min(30.0, 0.25 * 2.0 ** min(failures, 8))
        self._not_before[name] = time.monotonic() + pause
        logger.debug("%s is put off: %s", name, error)
        return pause
