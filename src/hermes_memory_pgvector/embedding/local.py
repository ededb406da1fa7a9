"""The local model: static 256-dimensional word vectors from the wordllama wheel; no torch, no server, no download.

Only two data files of the wheel are read. Its Python code is not imported: it configures the host's root logger on
import, and its loader downloads a tokenizer that the wheel already has. A text's vector is the mean of its tokens'
vectors; that is the whole model. Loading takes 0.2 to 0.4 s and a query 40 to 110 µs, busy machines included.
"""

from __future__ import annotations

import array
import importlib.util
import logging
import re
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import ModelInfo, Scale, Vector, embeddable
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL, WORDLLAMA
from hermes_memory_pgvector.errors import ConfigError, EmbeddingUnavailable

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

DIM = 256
SCALE = Scale(0.015, 0.074)
_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_EXTRA = "hermes-pgvector up fetches it; or set embed_url to an embedding endpoint"


class _Model(NamedTuple):
    tokenizer: Tokenizer
    weights: np.ndarray
    is_word: np.ndarray
    """Per token, whether it carries meaning: not a special token, a single byte of an unknown character, or spaces."""


def _folder() -> Path:
    """The wheel's folder, found without importing it."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(f"the local embedding model is not installed; {_EXTRA}")
    return Path(spec.submodule_search_locations[0])


@cache
def _load() -> _Model:
    """The one copy of the model in this process; two threads that ask first may both load it, and one copy stays."""
    started = time.perf_counter()
    folder = _folder()
    try:
        import numpy as np
        from safetensors import SafetensorError, safe_open
        from tokenizers import Tokenizer
    except ImportError as error:
        raise EmbeddingUnavailable(f"the local embedding model needs {error.name}; {_EXTRA}") from None
    try:
        with safe_open(folder / _WEIGHTS, framework="numpy") as tensors:
            weights: np.ndarray = tensors.get_tensor("embedding.weight")
    except (OSError, SafetensorError) as error:
        raise _damaged(type(error).__name__) from None
    try:
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # noqa: BLE001 - the tokenizers library raises nothing more precise
        raise _damaged(type(error).__name__) from None
    vocabulary = tokenizer.get_vocab()
    if weights.shape != (max(vocabulary.values(), default=-1) + 1, DIM):
        raise _damaged(f"shape {weights.shape}")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # It would keep the tokens of the last ten thousand short texts, some kilobytes each; vectors are kept elsewhere.
    if hasattr(tokenizer.model, "_resize_cache"):
        tokenizer.model._resize_cache(0)
    is_word = np.zeros(len(weights), dtype=np.bool_)
    is_word[[token_id for token, token_id in vocabulary.items() if not _MEANINGLESS.fullmatch(token)]] = True
    logger.debug("loaded the local embedding model in %.2f s", time.perf_counter() - started)
    return _Model(tokenizer, weights, is_word)


_MEANINGLESS = re.compile(r"<unk>|</?s>|<0x[0-9A-F]{2}>|▁+")


def _damaged(reason: str) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(f"the local embedding model's files cannot be used ({reason}); reinstall {_PACKAGE}")


class LocalEmbedder:
    """Embeds in this process; all instances share one copy of the model."""

    def __init__(self, *, dim: int | None = None) -> None:
        if dim not in (None, DIM):
            raise ConfigError(
                f"the local embedding model has {DIM} dimensions; set embed_dim to {DIM} or leave it unset"
            )

    @property
    def model(self) -> str:
        """The name its vectors are stored under."""
        return LOCAL_MODEL

    def info(self, deadline: Deadline) -> ModelInfo:  # noqa: ARG002 - nothing to wait for
        """What is known of the model without loading it; EmbeddingUnavailable when it is not installed."""
        _folder()
        return ModelInfo(
            name=LOCAL_MODEL,
            dim=DIM,
            protocol="local",
            query_prefix=WORDLLAMA.query_prefix,
            document_prefix=WORDLLAMA.document_prefix,
            scale=SCALE,
        )

    def embed_query(self, text: str, deadline: Deadline) -> Vector | None:
        """The vector of a question."""
        return self.embed_documents([text], deadline)[0]

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions: this model tells them from no other text."""
        return self.embed_documents(texts, deadline)

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of the texts; None for a text without any known word."""
        model = _load()
        vectors: list[Vector | None] = []
        for text in texts:
            if deadline.is_over:
                raise EmbeddingUnavailable(f"ran out of time after {len(vectors)} of {len(texts)} texts")
            clean = embeddable(text, WORDLLAMA.max_chars)
            vectors.append(_mean(model, clean) if clean is not None else None)
        return vectors

    def close(self) -> None:
        """Nothing to close: the process's other embedders share the model."""


def _mean(model: _Model, text: str) -> Vector | None:
    import numpy as np

    # One text at a time: the library's batch call would start a pool of threads that does not survive a fork.
    token_ids = np.array(model.tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.intp)
    if not model.is_word[token_ids].any():
        return None
    mean = model.weights[token_ids].mean(axis=0, dtype=np.float32)
    norm = float(np.linalg.norm(mean))
    if not np.isfinite(norm) or norm == 0.0:
        return None
    vector = array.array("f")
    vector.frombytes((mean / np.float32(norm)).tobytes())
    return vector
