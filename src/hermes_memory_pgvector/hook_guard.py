"""Keeps what goes wrong in a hook from the agent loop: it is logged, without content, and told once."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hermes_memory_pgvector.errors import MemoryPluginError

logger = logging.getLogger(__name__)

_Hook = TypeVar("_Hook", bound=Callable[..., Any])
_warned: set[str] = set()


def guarded(default: Any) -> Callable[[_Hook], _Hook]:
    """No exception of ours reaches the agent loop: the hook returns a default instead."""

    def wrap(hook: _Hook) -> _Hook:
        @functools.wraps(hook)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return hook(*args, **kwargs)
            except Exception as error:
                logger.warning("%s failed (%s)", hook.__name__, type(error).__name__, exc_info=_trace(error))
                return default

        return cast(_Hook, guarded)

    return wrap


def warn_once(text: str) -> None:
    """Tell the operator something that every new provider would find again."""
    if text not in _warned:
        _warned.add(text)
        logger.warning("%s", text)


def _trace(error: BaseException) -> BaseException | None:
    """A traceback helps where it cannot hold content: for our own errors the sentence is enough."""
    return None if isinstance(error, MemoryPluginError) else error
