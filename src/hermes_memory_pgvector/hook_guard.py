"""Keeps errors of hooks away from the agent loop: they are counted, and logged without content and not too often."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hermes_memory_pgvector.errors import outline

logger = logging.getLogger(__name__)

REPEAT_SECONDS = 60.0
"""The same failure of the same hook is logged once in this time; those in between are counted."""
MAX_LOGGED = 256

_Hook = TypeVar("_Hook", bound=Callable[..., Any])
_warned: set[str] = set()


class HookFailures:
    """The failed hook calls of this process; thread-safe."""

    def __init__(self) -> None:
        self.count = 0
        self.latest = ""
        self._lock = threading.Lock()
        self._logged: dict[str, tuple[float, int]] = {}
        """For each sentence: when it was last logged, and how often it occurred since."""

    def note(self, sentence: str) -> str:
        """Count a failure; return what is to be logged, or nothing."""
        now = time.monotonic()
        with self._lock:
            self.count += 1
            self.latest = sentence
            at, unlogged = self._logged.get(sentence, (None, 0))
            if at is not None and now - at < REPEAT_SECONDS:
                self._logged[sentence] = (at, unlogged + 1)
                return ""
            if len(self._logged) >= MAX_LOGGED:
                self._logged.clear()
            self._logged[sentence] = (now, 0)
        return f"{sentence} ({unlogged} more times since the last such line)" if unlogged else sentence


failures = HookFailures()


def guarded(default: Any) -> Callable[[_Hook], _Hook]:
    """A decorator that returns a default instead of raising into the agent loop."""

    def wrap(hook: _Hook) -> _Hook:
        @functools.wraps(hook)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return hook(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
                line = failures.note(f"{hook.__name__} failed: {outline(error)}")
                if line:
                    logger.warning("%s", line)
                return default

        return cast(_Hook, guarded)

    return wrap


def warn_once(text: str) -> None:
    """Log a warning that every new provider would repeat, once."""
    if text not in _warned:
        _warned.add(text)
        logger.warning("%s", text)
