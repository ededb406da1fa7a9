"""Time that orders the writes of a process, whatever happens to the wall clock."""

from __future__ import annotations

import time

from hermes_memory_pgvector.values import Moment


class Clock:
    """Gives the moment of a write: where the wall clock is set back, order goes on from the last one."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Moment:
        """The present moment."""
        wall = time.time_ns() // 1000
        self._last = order = max(wall, self._last + 1)
        return Moment(wall, order)
