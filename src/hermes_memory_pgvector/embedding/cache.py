"""One embedding per distinct text: an LRU cache in front of any embedder, shared by all threads of the process.

The engine holds one cached embedder, so the user's words are embedded once for recall and for storage. Two threads that
want the same text at once share one call; the one that waits keeps its own deadline. A text without a vector is not
remembered: trying again is cheap or worth it. The vectors a batch has got before it fails are kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import Embedder, ModelInfo, Vector
from hermes_memory_pgvector.embedding.known_models import spec_of
from hermes_memory_pgvector.errors import EmbeddingError, EmbeddingUnavailable
from hermes_memory_pgvector.fork import renew_after_fork


class _Flight:
    """One text being embedded by one thread while others may wait for it."""

    def __init__(self) -> None:
        self.landed = threading.Event()
        self.vector: Vector | None = None
        self.error: EmbeddingError | None = None
        self.was_abandoned = False
        """The leader's own time was over: that says nothing about the text or the endpoint."""


class CachedEmbedder:
    """Any embedder behind a cache; `entries` 0 keeps nothing but still shares calls in flight."""

    def __init__(self, inner: Embedder, *, entries: int, batch: int = 64) -> None:
        spec = spec_of(inner.model)
        self._inner = inner
        self._capacity = max(0, entries)
        self._batch = max(1, batch)
        # Keyed by the prefix itself, a question and a document share their vector exactly when the model sees the same.
        self._query_space = f"{inner.model}\0{spec.query_prefix}\0".encode("utf-8", "surrogatepass")
        self._document_space = f"{inner.model}\0{spec.document_prefix}\0".encode("utf-8", "surrogatepass")
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        """The threads that were embedding do not exist in a forked child."""
        self._lock = threading.Lock()
        self._flights: dict[bytes, _Flight] = {}

    @property
    def model(self) -> str:
        """The inner embedder's model."""
        return self._inner.model

    @property
    def inner(self) -> Embedder:
        """The embedder behind the cache."""
        return self._inner

    def info(self, deadline: Deadline) -> ModelInfo:
        """The inner embedder's facts."""
        return self._inner.info(deadline)

    def embed_query(self, text: str, deadline: Deadline) -> Vector | None:
        """The vector of a question, from the cache if possible."""
        key = _key(self._query_space, text)
        return self._resolve({key: text}, deadline, is_query=True)[key]

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions, past the cache."""
        return self._inner.embed_queries(texts, deadline)

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """One vector or None per text; equal texts are embedded once."""
        keys = [_key(self._document_space, text) for text in texts]
        found = self._resolve(dict(zip(keys, texts, strict=True)), deadline, is_query=False)
        return [found[key] for key in keys]

    def close(self) -> None:
        """Close the inner embedder and empty the cache."""
        self._inner.close()
        with self._lock:
            self._vectors.clear()

    def _resolve(self, texts: dict[bytes, str], deadline: Deadline, *, is_query: bool) -> dict[bytes, Vector | None]:
        found: dict[bytes, Vector | None] = {}
        while missing := {key: text for key, text in texts.items() if key not in found}:
            led, awaited = self._claim(missing, found)
            # Own work comes before waiting, so two threads never wait for each other.
            self._lead(led, {key: missing[key] for key in led}, found, deadline, is_query=is_query)
            for key, flight in awaited.items():
                if not flight.landed.wait(deadline.remaining()):
                    raise EmbeddingUnavailable("another thread's embedding of the same text was not ready in time")
                if flight.error is not None and not flight.was_abandoned:
                    raise type(flight.error)(str(flight.error))
                if flight.error is None:
                    found[key] = flight.vector
        return found

    def _claim(
        self, missing: dict[bytes, str], found: dict[bytes, Vector | None]
    ) -> tuple[dict[bytes, _Flight], dict[bytes, _Flight]]:
        """Take what is cached, and split the rest into texts this thread embeds and texts another already does."""
        led: dict[bytes, _Flight] = {}
        awaited: dict[bytes, _Flight] = {}
        with self._lock:
            for key in missing:
                vector = self._vectors.get(key)
                if vector is not None:
                    self._vectors.move_to_end(key)
                    found[key] = vector
                elif (flight := self._flights.get(key)) is not None:
                    awaited[key] = flight
                else:
                    led[key] = self._flights[key] = _Flight()
        return led, awaited

    def _lead(
        self,
        led: dict[bytes, _Flight],
        texts: dict[bytes, str],
        found: dict[bytes, Vector | None],
        deadline: Deadline,
        *,
        is_query: bool,
    ) -> None:
        failure = EmbeddingUnavailable("the thread that embedded the same text did not finish")
        error: EmbeddingError = failure
        keys = list(led)
        try:
            for start in range(0, len(keys), self._batch):
                part = keys[start : start + self._batch]
                if is_query:
                    vectors = [self._inner.embed_query(texts[part[0]], deadline)]
                else:
                    vectors = self._inner.embed_documents([texts[key] for key in part], deadline)
                for key, vector in zip(part, vectors, strict=True):
                    found[key] = vector
                    self._land(key, led.pop(key), vector)
        except EmbeddingError as raised:
            error = raised
            raise
        finally:
            # However this thread's work ended, no other thread may be left waiting for it.
            for key, flight in led.items():
                flight.error = error
                flight.was_abandoned = error is failure or deadline.is_over
                self._land(key, flight, None)

    def _land(self, key: bytes, flight: _Flight, vector: Vector | None) -> None:
        flight.vector = vector
        with self._lock:
            self._flights.pop(key, None)
            if vector is not None and self._capacity:
                self._vectors[key] = vector
                while len(self._vectors) > self._capacity:
                    self._vectors.popitem(last=False)
        flight.landed.set()


def _key(space: bytes, text: str) -> bytes:
    return hashlib.blake2b(space + text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
