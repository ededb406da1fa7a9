"""Waiting for something that is about to happen, without sleeping longer than it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


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
