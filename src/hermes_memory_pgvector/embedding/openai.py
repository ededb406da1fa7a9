"""The OpenAI-compatible protocol, `/v1/embeddings`: spoken by vLLM, TEI, llama.cpp, Ollama and the clouds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_memory_pgvector.embedding.dialect import NotSpoken, counted
from hermes_memory_pgvector.errors import EmbeddingRejected


class OpenAi:
    """A list of inputs in, `data` with an index each out."""

    name = "openai"

    def path(self, base: str) -> str:
        """The url may end before /v1, with it, or be complete."""
        if base.endswith("/embeddings"):
            return base
        if re.search(r"/(?:v\d+|openai)$", base):
            return base + "/embeddings"
        return base.removesuffix("/api/embed") + "/v1/embeddings"

    def question(self, model: str, texts: Sequence[str], shorten_to: int | None) -> dict[str, object]:
        """The request; `dimensions` only for models known to take it."""
        question: dict[str, object] = {"model": model, "input": list(texts), "encoding_format": "float"}
        if shorten_to is not None:
            question["dimensions"] = shorten_to
        return question

    def rows(self, answer: object, count: int, source: str) -> list[object]:
        """The vectors ordered by their index, which servers need not keep."""
        entries = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise NotSpoken(f"{source} did not answer in the form of /v1/embeddings")
        counted(entries, count, source)
        indexes = [entry.get("index") for entry in entries]
        if all(index is None for index in indexes):
            return [entry.get("embedding") for entry in entries]
        by_index = {entry.get("index"): entry.get("embedding") for entry in entries if type(entry.get("index")) is int}
        if by_index.keys() != set(range(count)):
            raise EmbeddingRejected(f"{source} returned indexes that do not number the {count} texts")
        return [by_index[position] for position in range(count)]
