"""Keeps recall from waiting for an embedder that is known to be down."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import ModelInfo, Vector
from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder
from hermes_memory_pgvector.errors import EmbeddingError, EmbeddingMisconfigured, EmbeddingUnavailable
from hermes_memory_pgvector.meters import EMBEDDING_FAILURES, Meters


class GuardedEmbedder:
    """An embedder that fails at once on questions while its breaker is open."""

    def __init__(self, inner: ConfiguredEmbedder, breaker: Breaker, meters: Meters | None = None) -> None:
        self._inner = inner
        self._meters = meters or Meters()
        self.breaker = breaker

    @property
    def fault(self) -> str:
        """Which setting is wrong, and how; empty when all are usable."""
        return self._inner.fault

    @property
    def model(self) -> str:
        """The name vectors of this embedder are stored under."""
        return self._inner.model

    def info(self, deadline: Deadline) -> ModelInfo:
        """The model's facts."""
        return self._inner.info(deadline)

    def embed_query(self, text: str, deadline: Deadline) -> Vector | None:
        """The vector of a question; EmbeddingUnavailable at once during an outage."""
        if not self.breaker.allows():
            raise EmbeddingUnavailable("the embedder is down; it is tried again soon")
        try:
            vector = self._inner.embed_query(text, deadline)
        except EmbeddingError as error:
            self._meters.count(EMBEDDING_FAILURES, of="question")
            self.breaker.failed(str(error), is_told=not isinstance(error, EmbeddingMisconfigured))
            raise
        except BaseException:
            self.breaker.released()
            raise
        self.breaker.succeeded()
        return vector

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions."""
        return self._inner.embed_queries(texts, deadline)

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """One vector or None per text, in the order given."""
        return self._inner.embed_documents(texts, deadline)

    def close(self) -> None:
        """Close connections."""
        self._inner.close()
