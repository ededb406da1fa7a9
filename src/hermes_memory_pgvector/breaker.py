"""A circuit breaker: after repeated failure, say no at once instead of letting everyone wait for the same outage.

closed -> (failures) -> open -> (retry time) -> half open: one probe -> closed or open again, with full-jitter back-off.
It tells once when an outage begins and once when it ends.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """What an operator sees of a breaker."""

    name: str
    state: State
    failures: int
    reason: str
    since: float | None
    """Wall-clock time the outage began."""


class Breaker:
    """Thread-safe; every method returns at once."""

    def __init__(
        self,
        name: str,
        *,
        threshold: int = 3,
        base_seconds: float = 0.5,
        max_seconds: float = 10.0,
        on_open: Callable[[BreakerStatus], None] | None = None,
        on_close: Callable[[BreakerStatus], None] | None = None,
    ) -> None:
        self.name = name
        self._threshold = threshold
        self._base = base_seconds
        self._max = max_seconds
        self._on_open = on_open
        self._on_close = on_close
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._probing = False
        self._is_open = False
        self._reason = ""
        self._since: float | None = None
        self._is_told = True
        self.on_opened: Callable[[], None] | None = None
        """Counts outages, also those that somebody else tells."""

    def allows(self) -> bool:
        """Whether a call may be made now; when half open, only the first asker gets a yes."""
        with self._lock:
            if not self._is_open:
                return True
            if self._probing or time.monotonic() < self._retry_at:
                return False
            self._probing = True
            return True

    @property
    def is_open(self) -> bool:
        """Whether calls are being refused or probed."""
        return self._is_open

    def retry_in(self) -> float:
        """Seconds until the next probe is due."""
        with self._lock:
            return max(0.0, self._retry_at - time.monotonic()) if self._is_open else 0.0

    def succeeded(self) -> None:
        """A call worked: close, and tell if this ends an outage."""
        with self._lock:
            was_open, status = self._is_open, self._status()
            self._failures = 0
            self._probing = False
            self._is_open = False
            self._since = None
            self._reason = ""
            is_told = self._is_told
        if was_open and is_told and self._on_close is not None:
            self._on_close(status)

    def failed(self, reason: str, *, hold_seconds: float | None = None, is_told: bool = True) -> None:
        """A call failed: count it, back off; `hold_seconds` opens at once for errors that cannot pass quickly.

        `is_told` False leaves the telling to whoever has told it already.
        """
        with self._lock:
            self._failures += 1
            self._probing = False
            self._reason = reason
            was_open = self._is_open
            if hold_seconds is not None or self._failures >= self._threshold or was_open:
                self._is_open = True
                if self._since is None:
                    self._since = time.time()
                step = max(0, self._failures - self._threshold)
                ceiling = min(self._max, self._base * 2 ** min(step, 16))
                # Full jitter keeps a fleet from knocking on a recovering server in step.
                pause = random.uniform(0, ceiling) if hold_seconds is None else hold_seconds  # noqa: S311
                self._retry_at = time.monotonic() + pause
            opened = self._is_open and not was_open
            if opened:
                self._is_told = is_told
            status = self._status()
        if opened and self.on_opened is not None:
            self.on_opened()
        if opened and is_told and self._on_open is not None:
            self._on_open(status)

    def released(self) -> None:
        """A permitted call was not made after all; the next asker may probe."""
        with self._lock:
            self._probing = False

    def status(self) -> BreakerStatus:
        """A snapshot for status and doctor."""
        with self._lock:
            return self._status()

    def _status(self) -> BreakerStatus:
        state: State = "closed" if not self._is_open else ("half-open" if self._probing else "open")
        return BreakerStatus(self.name, state, self._failures, self._reason, self._since)
