"""Finds out which protocol an endpoint speaks, once per endpoint and process.

OpenAI's comes first, because most servers speak it; Ollama's is tried when the first is not spoken. Only an answer
decides: a time-out, an outage or a refused key leaves the question open for the next call. When the chosen protocol
stops being spoken (another server took the address), the question is open again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from hermes_memory_pgvector.embedding.dialect import Dialect, InputRefused, NotSpoken
from hermes_memory_pgvector.embedding.ollama import Ollama
from hermes_memory_pgvector.embedding.openai import OpenAi
from hermes_memory_pgvector.embedding.url import Endpoint
from hermes_memory_pgvector.fork import renew_after_fork

T = TypeVar("T")

OPENAI: Dialect = OpenAi()
OLLAMA: Dialect = Ollama()


class _Decisions:
    """What each endpoint of this process turned out to speak."""

    def __init__(self) -> None:
        self._spoken: dict[tuple[str, str], Dialect] = {}
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()

    def get(self, endpoint: Endpoint) -> Dialect | None:
        if endpoint.path.endswith("/api/embed"):
            return OLLAMA
        with self._lock:
            return self._spoken.get((endpoint.origin, endpoint.path))

    def put(self, endpoint: Endpoint, dialect: Dialect | None) -> None:
        with self._lock:
            if dialect is None:
                self._spoken.pop((endpoint.origin, endpoint.path), None)
            else:
                self._spoken[endpoint.origin, endpoint.path] = dialect


_decisions = _Decisions()


def decided(endpoint: Endpoint) -> Dialect | None:
    """The protocol this endpoint is known to speak, if that is known yet."""
    return _decisions.get(endpoint)


def forget(endpoint: Endpoint) -> None:
    """Leave the endpoint's protocol undecided, as at the start of the process."""
    _decisions.put(endpoint, None)


def ask(endpoint: Endpoint, attempt: Callable[[Dialect], T]) -> T:
    """The result of the attempt in the protocol the endpoint speaks; the attempt keeps its one deadline over both."""
    known = decided(endpoint)
    if known is not None:
        try:
            return attempt(known)
        except NotSpoken:
            forget(endpoint)
            raise
    try:
        result = attempt(OPENAI)
    except NotSpoken as not_openai:
        return _ask_ollama(endpoint, attempt, not_openai)
    _decisions.put(endpoint, OPENAI)
    return result


def _ask_ollama(endpoint: Endpoint, attempt: Callable[[Dialect], T], not_openai: NotSpoken) -> T:
    try:
        result = attempt(OLLAMA)
    except NotSpoken as not_ollama:
        raise NotSpoken(f"{not_openai}; {not_ollama}") from None
    except InputRefused:
        # It read the question and disliked the texts: the protocol is the right one.
        _decisions.put(endpoint, OLLAMA)
        raise
    _decisions.put(endpoint, OLLAMA)
    return result
