"""The words an embedding endpoint understands: what to ask, where, and how to read the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes_memory_pgvector.errors import EmbeddingRejected


class NotSpoken(EmbeddingRejected):
    """The endpoint does not know this protocol, or not this model."""


class InputRefused(EmbeddingRejected):
    """The endpoint refused the texts themselves, perhaps only one of them."""


class Dialect(Protocol):
    """One protocol for embedding a batch of texts."""

    @property
    def name(self) -> str:
        """As in the setting `embed_protocol`."""

    def path(self, base: str) -> str:
        """The path to post to, from the path the user gave."""

    def question(self, model: str, texts: Sequence[str], shorten_to: int | None) -> dict[str, object]:
        """The request as a JSON object."""

    def rows(self, answer: object, count: int, source: str) -> list[object]:
        """The raw vectors in the order of the texts; NotSpoken when the answer has another form altogether."""


def counted(rows: list[object], count: int, source: str) -> list[object]:
    """The rows, after a check that there is one for each text."""
    if len(rows) != count:
        raise EmbeddingRejected(f"{source} returned {len(rows)} vectors for {count} texts")
    return rows
