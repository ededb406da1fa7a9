"""Text to vectors: one protocol, a local model without a download, and clients for endpoints that may misbehave."""

from hermes_memory_pgvector.embedding.base import (
    Embedder,
    ModelInfo,
    Vector,
    create_embedder,
)
from hermes_memory_pgvector.embedding.cache import CachedEmbedder

__all__ = [
    "CachedEmbedder",
    "Embedder",
    "ModelInfo",
    "Vector",
    "create_embedder",
]
