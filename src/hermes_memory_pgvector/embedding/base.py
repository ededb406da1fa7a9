"""What every embedder promises, and the checks every vector must pass.

A vector is an `array.array('f')` of unit length: four bytes a number.
Unit length keeps every endpoint's scale within the range of `halfvec` and leaves cosines as they are. The cache hands
the same vector to several callers: treat it as read-only.
"""

from __future__ import annotations

import array
import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.known_models import spec_with
from hermes_memory_pgvector.errors import EmbeddingRejected
from hermes_memory_pgvector.text.clean import REPLACED, clean

Vector: TypeAlias = "array.array[float]"
ProtocolName = Literal["auto", "openai", "ollama", "local"]

_NUMBERS = frozenset({float, int})

BATCH = 64
"""Texts in one request."""

MAX_DIM = 16_000
"""The most numbers a pgvector column can hold."""


class Scale(NamedTuple):
    """The cosine of unrelated texts in a model: what similarity is counted from, and in which unit."""

    mean: float
    sd: float


class ModelInfo(NamedTuple):
    """What must be stored with a vector so that it can be compared later."""

    name: str
    dim: int
    protocol: str
    query_prefix: str
    document_prefix: str
    scale: Scale | None = None
    """Known for the local model; another model's is measured once, by whoever embeds first (embedding/probe.py)."""


class Embedder(Protocol):
    """Turns texts into vectors; every method is thread-safe and ends by its deadline."""

    @property
    def model(self) -> str:
        """The name vectors of this embedder are stored under."""

    def info(self, deadline: Deadline) -> ModelInfo:
        """The model's facts; asks the endpoint once when nothing else tells the dimension."""

    def embed_query(self, text: str, deadline: Deadline) -> Vector | None:
        """The vector of a question, or None when the text has none."""

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions, in the order given; nothing of them is remembered."""

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """One vector or None per text, in the order given."""

    def close(self) -> None:
        """Close connections; the embedder may be used again afterwards."""


def create_embedder(settings: Settings, api_key: str | None = None) -> Embedder:
    """The embedder the settings describe; an empty url with `auto` means the local model.

    Nothing is loaded or contacted here. A wrong value raises a ConfigError that names the setting; `configured.py` has
    the embedder for callers that must go on without one.
    """
    # The parts import this module, and a process with an endpoint need never import the local model.
    if settings.uses_local_model:
        from hermes_memory_pgvector.embedding.local import LocalEmbedder

        return LocalEmbedder(dim=settings.embed_dim)
    from hermes_memory_pgvector.embedding.remote import RemoteEmbedder

    return RemoteEmbedder(
        url=settings.embed_url, model=settings.embed_model, protocol=settings.embed_protocol, dim=settings.embed_dim,
        api_key=api_key, spec=spec_with(settings.embed_model, settings.embed_prefixes),
    )  # fmt: skip


def embeddable(text: str, max_chars: int) -> str | None:
    """The text as a model may see it: cut to its cap, valid Unicode, without NUL; None when nothing is left."""
    # No model knows the sign that stands for what could not be read.
    return clean(text[: fitting_end(text, 0, max_chars)]).replace(REPLACED, "").strip() or None


def fitting_end(text: str, start: int, size: int) -> int:
    """Where a piece that begins at `start` ends if a model is to read it as so many characters of a spaced script.

    A token is about four of those, and about one sign of Chinese, Japanese or Korean.
    """
    end = min(start + size, len(text))
    while (weight := end - start + 3 * len(re.findall(_UNSPACED, text[start:end]))) > size and end > start + 1:
        end = min(end - 1, start + max(1, (end - start) * size // weight))
    return end


# As text: made into a pattern when a text is embedded, not when the package is loaded.
_UNSPACED = "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"


def unit_vector(values: object, dim: int | None, source: str) -> Vector:
    """A vector of unit length from an endpoint's list of numbers; EmbeddingRejected when it is not a usable one."""
    if not isinstance(values, list) or not values:
        raise EmbeddingRejected(f"{source} returned no list of numbers for a text")
    if len(values) > MAX_DIM:
        raise EmbeddingRejected(f"{source} returned a vector of {len(values)} numbers; the most is {MAX_DIM}")
    if dim is not None and len(values) != dim:
        raise EmbeddingRejected(
            f"{source} returned vectors of {len(values)} numbers where {dim} are expected; "
            "set embed_dim to what the model gives, or embed_model to the model meant"
        )
    if not set(map(type, values)) <= _NUMBERS:
        raise EmbeddingRejected(f"{source} returned a vector with an entry that is not a number")
    try:
        # hypot scales internally: neither huge nor tiny entries lose the norm, and any NaN or infinity shows in it.
        norm = math.hypot(*values)
    except OverflowError:
        norm = math.inf
    if not math.isfinite(norm):
        raise EmbeddingRejected(f"{source} returned a vector with NaN or infinite entries")
    if norm == 0.0:
        raise EmbeddingRejected(f"{source} returned a zero vector")
    return array.array("f", [value / norm for value in values])
