"""Vectors of texts embedded before, the least recently used forgotten first; shared by all threads of the process."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from hermes_memory_pgvector.embedding.base import Vector
from hermes_memory_pgvector.fork import renew_after_fork


class VectorCache:
    """So many vectors by the text the model sees; `entries` 0 keeps nothing."""

    def __init__(self, entries: int) -> None:
        self._capacity = entries
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        """A forked child has its own lock."""
        self._lock = threading.Lock()

    def get(self, text: str) -> Vector | None:
        """The vector of a text, prefix included."""
        key = _key(text)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, text: str, vector: Vector | None) -> None:
        """Remember a vector; a text without one is not remembered: trying again is cheap or worth it."""
        if vector is None:
            return
        key = _key(text)
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
