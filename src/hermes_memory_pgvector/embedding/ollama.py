"""Ollama's own protocol, `/api/embed`, which takes a batch and keeps its order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_memory_pgvector.embedding.dialect import NotSpoken, counted


class Ollama:
    """A list of inputs in, a list of `embeddings` out."""

    name = "ollama"

    def path(self, base: str) -> str:
        """The url may be the root, an OpenAI-style path on the same server, or complete."""
        if base.endswith("/api/embed"):
            return base
        return re.sub(r"(?:/v\d+)?(?:/embeddings)?$|/api/embeddings$|/api$", "", base, count=1) + "/api/embed"

    def question(self, model: str, texts: Sequence[str], shorten_to: int | None) -> dict[str, object]:
        """The request; an input that is too long is cut by the server rather than refused."""
        question: dict[str, object] = {"model": model, "input": list(texts), "truncate": True}
        if shorten_to is not None:
            question["dimensions"] = shorten_to
        return question

    def rows(self, answer: object, count: int, source: str) -> list[object]:
        """The vectors as they come."""
        rows = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise NotSpoken(f"{source} did not answer in the form of /api/embed")
        return counted(rows, count, source)
