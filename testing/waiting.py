"""Waiting for something that is about to happen, without sleeping longer than it takes; and not waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

HOOK_SECONDS = 2.5
"""Hooks return in microseconds, and a wait for a database that is away takes longer than this."""
PATIENCE_SECONDS = 20.0
"""What no deadline of a test and no busy machine comes near; what a deadline guards against lasts longer."""


@contextmanager
def promptly(seconds: float = PATIENCE_SECONDS, what: str = "it") -> Iterator[None]:
    """Fail when what happens within hangs; how fast it is belongs in bench/."""
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    assert took < seconds, f"{what} took {took:.1f} s"


def wait_until(what: Callable[[], T], *, seconds: float = 30.0, every: float = 0.02) -> T:
    """The first truthy answer; a failure that shows the last one when there is none in time."""
    end = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"still {answer!r} after {seconds:g} s")
        time.sleep(every)
