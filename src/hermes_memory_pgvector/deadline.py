"""A point in time by which an operation must be over, handed down through every wait it makes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hermes_memory_pgvector.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """An absolute moment on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The moment that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the moment has passed."""
        return time.monotonic() >= self.at

    def check(self) -> None:
        """Raise DeadlineExceeded when the moment has passed."""
        if self.is_over:
            raise DeadlineExceeded

    def earlier(self, seconds: float) -> Deadline:
        """The sooner of this moment and that many seconds from now."""
        return Deadline(min(self.at, time.monotonic() + seconds))
