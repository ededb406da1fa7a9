"""How much the journal may hold, and what is refused first when it is nearly full."""

from __future__ import annotations

import enum

from hermes_memory_pgvector.errors import JournalFull

_TURNS_SHARE = 0.9


class Urgency(enum.Enum):
    """How important a record is when there is little room left."""

    MEMORY = "memory"
    TURN = "turn"


class Capacity:
    """Counts what waits in the directory; changed under the appender's lock only."""

    __slots__ = ("foreign", "max_bytes", "own", "refused", "turn_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.bound(max_bytes)
        self.foreign = 0
        """What other writers have waiting, as last counted."""
        self.reset()

    def bound(self, max_bytes: int) -> None:
        """Hold at most so much."""
        self.max_bytes = max_bytes
        self.turn_bytes = int(max_bytes * _TURNS_SHARE)

    def reset(self) -> None:
        """A new series begins."""
        self.own = 0
        """What this process has waiting."""
        self.refused = 0
        """How many records have been turned away."""

    @property
    def waiting(self) -> int:
        """What counts against the bound."""
        return self.own + self.foreign

    @property
    def is_crowded(self) -> bool:
        """Whether half of the bound is reached."""
        return 2 * self.waiting > self.max_bytes

    def admits(self, size: int, urgency: Urgency) -> bool:
        """Whether a record fits; counts it as refused when it does not."""
        limit = self.max_bytes if urgency is Urgency.MEMORY else self.turn_bytes
        if self.waiting + size <= limit:
            return True
        self.refused += 1
        return False

    def refusal(self, urgency: Urgency) -> JournalFull:
        """The error that says so."""
        held = f"{self.waiting} of at most {self.max_bytes} bytes"
        return JournalFull(f"the journal holds {held}; a {urgency.value} was refused")
