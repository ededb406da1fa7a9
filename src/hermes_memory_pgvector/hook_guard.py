"""Keeps what goes wrong in a hook from the agent loop: it is counted, and logged without content and not for ever."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from hermes_memory_pgvector.errors import outline

logger = logging.getLogger(__name__)

REPEAT_SECONDS = 60.0
"""How often the same failure of the same hook is logged; those in between are counted."""
MAX_TOLD = 256

_Hook = TypeVar("_Hook", bound=Callable[..., Any])
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class HookFailures:
    """What the hooks of this process could not do."""

    count: int
    latest: str


class _Failures:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._latest = ""
        self._told: dict[str, tuple[float, int]] = {}
        """For each sentence: when it was logged last, and how often it was not logged since."""

    def note(self, sentence: str) -> str:
        """Count a failure; return what is to be logged, or nothing."""
        now = time.monotonic()
        with self._lock:
            self._count += 1
            self._latest = sentence
            at, untold = self._told.get(sentence, (None, 0))
            if at is not None and now - at < REPEAT_SECONDS:
                self._told[sentence] = (at, untold + 1)
                return ""
            if len(self._told) >= MAX_TOLD:
                self._told.clear()
            self._told[sentence] = (now, 0)
        return f"{sentence} ({untold} more times since the last such line)" if untold else sentence

    def status(self) -> HookFailures:
        """What has happened so far."""
        with self._lock:
            return HookFailures(self._count, self._latest)


_failures = _Failures()


def guarded(default: Any) -> Callable[[_Hook], _Hook]:
    """No exception of ours reaches the agent loop: the hook returns a default instead."""

    def wrap(hook: _Hook) -> _Hook:
        @functools.wraps(hook)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return hook(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
                told = _failures.note(f"{hook.__name__} failed: {outline(error)}")
                if told:
                    logger.warning("%s", told)
                return default

        return cast(_Hook, guarded)

    return wrap


def failures() -> HookFailures:
    """What the hooks of this process could not do, for status and doctor."""
    return _failures.status()


def warn_once(text: str) -> None:
    """Tell the operator something that every new provider would find again."""
    if text not in _warned:
        _warned.add(text)
        logger.warning("%s", text)
