"""The protocols an embedding endpoint may speak: OpenAI's `/v1/embeddings` and Ollama's `/api/embed`.

With `embed_protocol: auto` the endpoint's answers decide, once per endpoint and process. OpenAI's protocol comes first,
because most servers speak it: vLLM, TEI, llama.cpp, Ollama and the clouds. Ollama's own is tried when the endpoint does
not speak that one. Only an answer decides: after a time-out, an outage or a refused key the next call tries again. When
the endpoint stops speaking its protocol, because another server has taken the address, the next call starts over.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from hermes_memory_pgvector.embedding.url import Endpoint
from hermes_memory_pgvector.errors import EmbeddingRejected
from hermes_memory_pgvector.fork import renew_after_fork

T = TypeVar("T")


class NotSpoken(EmbeddingRejected):
    """The endpoint does not know this protocol, or not this model."""


class InputRefused(EmbeddingRejected):
    """The endpoint refused the texts themselves, perhaps only one of them."""


class EmbeddingProtocol(Protocol):
    """One way to have a batch of texts embedded."""

    @property
    def name(self) -> str:
        """As in the setting `embed_protocol`."""

    def path(self, base: str) -> str:
        """The path to post to, from the path the user gave."""

    def request(self, model: str, texts: Sequence[str], shorten_to: int | None) -> dict[str, object]:
        """The request as a JSON object."""

    def rows(self, answer: object, count: int, source: str) -> list[object]:
        """The raw vectors in the order of the texts; NotSpoken when the answer has another form altogether."""


class OpenAi:
    """A list of inputs in, `data` with an index each out."""

    name = "openai"

    def path(self, base: str) -> str:
        """The url may end before /v1, end with it, or be complete."""
        if base.endswith("/embeddings"):
            return base
        if re.search(r"/(?:v\d+|openai)$", base):
            return base + "/embeddings"
        return base.removesuffix("/api/embed") + "/v1/embeddings"

    def request(self, model: str, texts: Sequence[str], shorten_to: int | None) -> dict[str, object]:
        """The request; `dimensions` only for models known to take it."""
        request: dict[str, object] = {"model": model, "input": list(texts), "encoding_format": "float"}
        if shorten_to is not None:
            request["dimensions"] = shorten_to
        return request

    def rows(self, answer: object, count: int, source: str) -> list[object]:
        """The vectors ordered by their index: servers need not keep the order."""
        entries = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise NotSpoken(f"{source} did not answer in the form of /v1/embeddings")
        _check_count(entries, count, source)
        indexes = [entry.get("index") for entry in entries]
        if all(index is None for index in indexes):
            return [entry.get("embedding") for entry in entries]
        by_index = {entry.get("index"): entry.get("embedding") for entry in entries if type(entry.get("index")) is int}
        if by_index.keys() != set(range(count)):
            raise EmbeddingRejected(f"{source} returned indexes that do not number the {count} texts")
        return [by_index[position] for position in range(count)]


class Ollama:
    """A list of inputs in, a list of `embeddings` in the same order out."""

    name = "ollama"

    def path(self, base: str) -> str:
        """The url may be the root, an OpenAI-style path on the same server, or complete."""
        if base.endswith("/api/embed"):
            return base
        return re.sub(r"(?:/v\d+)?(?:/embeddings)?$|/api/embeddings$|/api$", "", base, count=1) + "/api/embed"

    def request(self, model: str, texts: Sequence[str], shorten_to: int | None) -> dict[str, object]:
        """The request; the server cuts an input that is too long instead of refusing it."""
        request: dict[str, object] = {"model": model, "input": list(texts), "truncate": True}
        if shorten_to is not None:
            request["dimensions"] = shorten_to
        return request

    def rows(self, answer: object, count: int, source: str) -> list[object]:
        """The vectors as they come."""
        rows = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise NotSpoken(f"{source} did not answer in the form of /api/embed")
        _check_count(rows, count, source)
        return rows


def _check_count(rows: Sequence[object], count: int, source: str) -> None:
    if len(rows) != count:
        raise EmbeddingRejected(f"{source} returned {len(rows)} vectors for {count} texts")


OPENAI: EmbeddingProtocol = OpenAi()
OLLAMA: EmbeddingProtocol = Ollama()


class _Decisions:
    """Which protocol each endpoint of this process turned out to speak."""

    def __init__(self) -> None:
        self._spoken: dict[tuple[str, str], EmbeddingProtocol] = {}
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()

    def get(self, endpoint: Endpoint) -> EmbeddingProtocol | None:
        if endpoint.path.endswith("/api/embed"):
            return OLLAMA
        with self._lock:
            return self._spoken.get((endpoint.origin, endpoint.path))

    def put(self, endpoint: Endpoint, protocol: EmbeddingProtocol | None) -> None:
        with self._lock:
            if protocol is None:
                self._spoken.pop((endpoint.origin, endpoint.path), None)
            else:
                self._spoken[endpoint.origin, endpoint.path] = protocol


_decisions = _Decisions()


def decided(endpoint: Endpoint) -> EmbeddingProtocol | None:
    """The protocol this endpoint is known to speak, if that is known yet."""
    return _decisions.get(endpoint)


def undecide(endpoint: Endpoint) -> None:
    """Leave the endpoint's protocol open, as at the start of the process."""
    _decisions.put(endpoint, None)


def probe(endpoint: Endpoint, attempt: Callable[[EmbeddingProtocol], T]) -> T:
    """The result of the attempt in the protocol the endpoint speaks; one deadline covers the attempts in both."""
    known = decided(endpoint)
    if known is not None:
        try:
            return attempt(known)
        except NotSpoken:
            undecide(endpoint)
            raise
    try:
        result = attempt(OPENAI)
    except NotSpoken as not_openai:
        return _probe_ollama(endpoint, attempt, not_openai)
    _decisions.put(endpoint, OPENAI)
    return result


def _probe_ollama(endpoint: Endpoint, attempt: Callable[[EmbeddingProtocol], T], not_openai: NotSpoken) -> T:
    try:
        result = attempt(OLLAMA)
    except NotSpoken as not_ollama:
        raise NotSpoken(f"{not_openai}; {not_ollama}") from None
    except InputRefused:
        # It understood the request and refused the texts: the protocol is the right one.
        _decisions.put(endpoint, OLLAMA)
        raise
    _decisions.put(endpoint, OLLAMA)
    return result
