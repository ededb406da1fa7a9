"""Checks of the embedding model: whether this home embeds with the one the database uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.setup.checks.finding import Finding, ok, problem

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.embedding import ModelInfo
    from hermes_memory_pgvector.values import EmbeddingModel

REEMBED = "hermes-pgvector reembed"


def difference(home: Path, settings: Settings, model: EmbeddingModel | None) -> str:
    """How the model of this home differs from the database's, as far as names tell; contacts nobody."""
    with parts.open_embedder(home, settings) as embedder:
        name = embedder.model
    if model is None or model.name == name:
        return ""
    return f"the database's vectors are of {model.name}, this home embeds with {name}"


def change(settings: Settings) -> str:
    """The command that gives the database the model of this home."""
    return f"{REEMBED} --protocol local" if settings.uses_local_model else f"{REEMBED} --model {settings.embed_model}"


def check(settings: Settings, info: ModelInfo | None, model: EmbeddingModel | None) -> Iterator[Finding]:
    """Whether the home and the database agree on a model."""
    from hermes_memory_pgvector.writer.embed_pending import mismatch

    wrong = "" if info is None else mismatch(model, info)
    if wrong:
        yield problem("model", wrong, "hermes-pgvector migrate" if model is None else change(settings))
    elif model is not None and info is not None:
        yield ok("model", f"vectors are from {model.name}, {model.dim} dimensions")
