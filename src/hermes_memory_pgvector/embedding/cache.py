"""Vectors of texts embedded before: an LRU cache in front of any embedder, shared by all threads of the process.

The user's words are embedded once for recall and for storage. Two threads that ask for the same text at the same moment
both ask the embedder. A text without a vector is not remembered: trying again is cheap or worth it. The vectors a batch
has got before it fails are kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import Embedder, ModelInfo, Vector
from hermes_memory_pgvector.embedding.known_models import ModelSpec
from hermes_memory_pgvector.fork import renew_after_fork


class CachedEmbedder:
    """Any embedder behind a cache; `entries` 0 keeps nothing."""

    def __init__(self, inner: Embedder, spec: ModelSpec, *, entries: int, batch: int = 64) -> None:
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
        """A forked child has its own lock."""
        self._lock = threading.Lock()

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
        vector = self._known(key)
        if vector is None:
            vector = self._inner.embed_query(text, deadline)
            self._remember(key, vector)
        return vector

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions, past the cache."""
        return self._inner.embed_queries(texts, deadline)

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """One vector or None per text; equal texts are embedded once."""
        keys = [_key(self._document_space, text) for text in texts]
        found = {key: self._known(key) for key in keys}
        missing = [(key, text) for key, text in dict(zip(keys, texts, strict=True)).items() if found[key] is None]
        for start in range(0, len(missing), self._batch):
            part = missing[start : start + self._batch]
            vectors = self._inner.embed_documents([text for _, text in part], deadline)
            for (key, _), vector in zip(part, vectors, strict=True):
                found[key] = vector
                self._remember(key, vector)
        return [found[key] for key in keys]

    def close(self) -> None:
        """Close the inner embedder and empty the cache."""
        self._inner.close()
        with self._lock:
            self._vectors.clear()

    def _known(self, key: bytes) -> Vector | None:
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def _remember(self, key: bytes, vector: Vector | None) -> None:
        if vector is None:
            return
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)


def _key(space: bytes, text: str) -> bytes:
    return hashlib.blake2b(space + text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
