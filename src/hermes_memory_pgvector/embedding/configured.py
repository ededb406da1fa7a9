"""The embedder of a home: there whatever its settings say, with a memory of vectors, and quick to say that it is down.

When a setting is wrong, every call fails at once with an EmbeddingMisconfigured that names the setting: rows are stored
and wait for their vectors, and recall falls back to keyword search. The key is not a setting but a variable, so it is
read again while it is unusable or refused; a corrected key is used without a restart.

The user's words are embedded once for recall and for storage. Two threads that ask for the same text at the same moment
both ask the embedder.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import secret
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import BATCH, Embedder, ModelInfo, Vector, create_embedder
from hermes_memory_pgvector.embedding.cache import VectorCache
from hermes_memory_pgvector.embedding.known_models import WORDLLAMA, ModelSpec, spec_with
from hermes_memory_pgvector.errors import (
    ConfigError,
    EmbeddingError,
    EmbeddingMisconfigured,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.meters import EMBEDDING_FAILURES, Meters

logger = logging.getLogger(__name__)

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ConfiguredEmbedder:
    """The embedder a home's settings describe; nothing is loaded or contacted before the first call."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        breaker: Breaker | None = None,
        *,
        cache_entries: int,
        meters: Meters | None = None,
    ) -> None:
        self.breaker = breaker or Breaker("embedding of questions")
        self._meters = meters or Meters()
        self._home = home
        self._settings = settings
        self._cache = VectorCache(cache_entries)
        self._spec = ModelSpec()
        self._inner: Embedder | None = None
        self._key: str | None = None
        self._is_key_in_doubt = False
        self._fault = ""
        self.after_fork_in_child()
        renew_after_fork(self)
        self._make()

    def after_fork_in_child(self) -> None:
        """A forked child has its own lock."""
        self._lock = threading.Lock()

    @property
    def fault(self) -> str:
        """Which setting is wrong, and how; empty when all are usable."""
        return self._fault

    @property
    def model(self) -> str:
        """The name vectors of this embedder are stored under."""
        return self._settings.embed_model if self._inner is None else self._inner.model

    def info(self, deadline: Deadline) -> ModelInfo:
        """The model's facts."""
        with self._usable() as inner:
            return inner.info(deadline)

    def embed_query(self, text: str, deadline: Deadline) -> Vector | None:
        """The vector of a question; during an outage EmbeddingUnavailable at once, unless it was embedded before."""
        seen = self._spec.query_prefix + text
        if (known := self._cache.get(seen)) is not None:
            return known
        if not self.breaker.allows():
            raise EmbeddingUnavailable("the embedder is down; it is tried again soon")
        try:
            with self._usable() as inner:
                vector = inner.embed_query(text, deadline)
        except EmbeddingError as error:
            self._meters.count(EMBEDDING_FAILURES, of="question")
            self.breaker.failed(str(error), is_told=not isinstance(error, EmbeddingMisconfigured))
            raise
        except BaseException:
            self.breaker.released()
            raise
        self.breaker.succeeded()
        self._cache.put(seen, vector)
        return vector

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions, past the cache."""
        with self._usable() as inner:
            return inner.embed_queries(texts, deadline)

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """One vector or None per text, in the order given; equal texts are embedded once."""
        with self._usable() as inner:
            # A question and a document share their vector exactly when the model sees the same.
            prefix = self._spec.document_prefix
            found = {text: self._cache.get(prefix + text) for text in texts}
            missing = [text for text, vector in found.items() if vector is None]
            # The vectors got before a failure are kept.
            for start in range(0, len(missing), BATCH):
                part = missing[start : start + BATCH]
                for text, vector in zip(part, inner.embed_documents(part, deadline), strict=True):
                    found[text] = vector
                    self._cache.put(prefix + text, vector)
        return [found[text] for text in texts]

    def close(self) -> None:
        """Close connections."""
        if self._inner is not None:
            self._inner.close()

    @contextmanager
    def _usable(self) -> Iterator[Embedder]:
        inner = self._inner
        if inner is None or self._is_key_in_doubt:
            inner = self._make()
        if inner is None:
            raise EmbeddingMisconfigured(self._fault)
        try:
            yield inner
        except EmbeddingRejected:
            # The key may be the reason, and may have been replaced since it was read.
            self._is_key_in_doubt = True
            raise

    def _make(self) -> Embedder | None:
        with self._lock:
            self._is_key_in_doubt = False
            key = made = None
            try:
                self._spec = _spec(self._settings)
                key = _key(self._home, self._settings)
                if self._inner is not None and key == self._key:
                    return self._inner
                made = create_embedder(self._settings, key)
            except ConfigError as error:
                if not self._fault:
                    logger.warning("rows wait for their vectors and recall falls back to keyword search: %s", error)
                self._fault = str(error)
            else:
                if self._fault:
                    logger.warning("the embedder's settings are valid again; waiting rows are embedded now")
                self._fault = ""
            if self._inner is not None:
                self._inner.close()
            self._inner, self._key = made, key
            return made


def setting_fault(home: Path, settings: Settings) -> str:
    """Which of the embedder's settings is wrong, and how; empty when all are usable. Contacts nobody."""
    try:
        create_embedder(settings, _key(home, settings)).close()
    except ConfigError as error:
        return str(error)
    return ""


def _key(home: Path, settings: Settings) -> str | None:
    name = settings.embed_api_key_env
    if not name or settings.uses_local_model:
        return None
    if not _VARIABLE_NAME.fullmatch(name):
        raise ConfigError("embed_api_key_env must be the name of an environment variable, not the key itself")
    return secret(home, name)


def _spec(settings: Settings) -> ModelSpec:
    return WORDLLAMA if settings.uses_local_model else spec_with(settings.embed_model, settings.embed_prefixes)
