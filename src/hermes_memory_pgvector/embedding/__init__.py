"""Texts in, vectors out: a local model that needs no download, or a client of an endpoint that may misbehave."""

from hermes_memory_pgvector.embedding.base import (
    Embedder,
    ModelInfo,
    Vector,
    create_embedder,
)

__all__ = [
    "Embedder",
    "ModelInfo",
    "Vector",
    "create_embedder",
]
