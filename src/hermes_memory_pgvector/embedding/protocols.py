"""The protocols an embedding endpoint may speak: OpenAI's `/v1/embeddings` and Ollama's `/api/embed`.

With `embed_protocol: auto` the endpoint's answers decide (embedding/remote.py). OpenAI's protocol comes first, because
most servers speak it: vLLM, TEI, llama.cpp, Ollama and the clouds. Ollama's own is tried when the endpoint does not
speak that one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from hermes_memory_pgvector.errors import EmbeddingRejected


class NotSpoken(EmbeddingRejected):
    """The endpoint does not know this protocol, or not this model."""


class InputRefused(EmbeddingRejected):
    """The endpoint refused the texts themselves, perhaps only one of them."""


class OpenAi:
    """A list of inputs in, `data` with an index each out."""

    name = "openai"
    options: Mapping[str, object] = MappingProxyType({"encoding_format": "float"})

    def path(self, base: str) -> str:
        """The url may end before /v1, end with it, or be complete."""
        if base.endswith("/embeddings"):
            return base
        if re.search(r"/(?:v\d+|openai)$", base):
            return base + "/embeddings"
        return base.removesuffix("/api/embed") + "/v1/embeddings"

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
    options: Mapping[str, object] = MappingProxyType({"truncate": True})
    """The server cuts an input that is too long instead of refusing it."""

    def path(self, base: str) -> str:
        """The url may be the root, an OpenAI-style path on the same server, or complete."""
        if base.endswith("/api/embed"):
            return base
        return re.sub(r"(?:/v\d+)?(?:/embeddings)?$|/api/embeddings$|/api$", "", base, count=1) + "/api/embed"

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


EmbeddingProtocol: TypeAlias = OpenAi | Ollama

OPENAI = OpenAi()
OLLAMA = Ollama()
