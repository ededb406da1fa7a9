"""Checks of the embedding model: whether this home embeds with the one the database uses, now and after a change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import EmbeddingError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.setup.checks.finding import Finding, ok, problem, warning
from hermes_memory_pgvector.terminal import amounts

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.embedding import ModelInfo
    from hermes_memory_pgvector.store.reembedding import Change
    from hermes_memory_pgvector.values import EmbeddingModel

EMBED_SECONDS = 15.0
SILENT_SECONDS = 120.0
"""Whoever works on a change of the model is heard of more often than that."""
REEMBED = "hermes-pgvector reembed"


def names(home: Path, settings: Settings) -> list[str]:
    """The models this home embeds with: the one in use, and the one that `embed_next` describes; contacts nobody."""
    described = [settings, settings.next_embedder]
    found = []
    for each in described:
        if each is not None:
            with parts.open_embedder(home, each) as embedder:
                found.append(embedder.model)
    return found


def difference(home: Path, settings: Settings, model: EmbeddingModel | None) -> str:
    """How the models of this home differ from the database's, as far as names tell; empty when one is the same."""
    known = names(home, settings)
    if model is None or model.name in known:
        return ""
    return f"the database's vectors are of {model.name}, this home embeds with {known[0]}"


def check(
    home: Path, settings: Settings, info: ModelInfo | None, model: EmbeddingModel | None, change: Change | None
) -> Iterator[Finding]:
    """Whether the home and the database agree on a model."""
    from hermes_memory_pgvector.writer.embed_pending import mismatch

    following = _next_info(home, settings)
    if isinstance(following, Finding):
        yield following
        following = None
    if following is not None and model is not None and not mismatch(model, following):
        text = f"vectors are from {model.name}, {model.dim} dimensions, for which this home uses embed_next"
        yield warning("model", text, f"to make it the embedder of this home: {REEMBED}")
    elif info is not None:
        wrong = mismatch(model, info)
        if wrong:
            yield problem("model", wrong, "hermes-pgvector migrate" if model is None else REEMBED)
        elif model is not None:
            yield ok("model", f"vectors are from {model.name}, {model.dim} dimensions")
    if change is not None:
        yield _change(change, [each for each in (info, following) if each is not None])


def _next_info(home: Path, settings: Settings) -> ModelInfo | Finding | None:
    described = settings.next_embedder
    if described is None:
        return None
    try:
        with parts.open_embedder(home, described) as embedder:
            return embedder.info(Deadline.after(EMBED_SECONDS))
    except EmbeddingError as error:
        return warning("embed_next", f"{parts.describe_embedder(home, described)}: {error}", "check embed_next")


def _change(change: Change, known: list[ModelInfo]) -> Finding:
    model = change.model
    text = f"changing to {model.name}, {model.dim} dimensions: {share(change)}"
    if (model.name, model.dim) not in [(info.name, info.dim) for info in known]:
        hint = f"hermes-pgvector config set embed_next model={model.name},url=…"
        return warning("reembed", f"{text}; this home does not know its endpoint yet and needs it at the switch", hint)
    if change.silent_seconds > SILENT_SECONDS:
        return warning("reembed", f"{text}; nobody is at it, last seen {amounts.ago(change.seen_at)}", REEMBED)
    return ok("reembed", text)


def share(change: Change) -> str:
    """How far a change has come."""
    part = f" ({change.done / change.total:.0%})" if change.total else ""
    return f"{amounts.number(change.done)} of {amounts.count(change.total, 'row')}{part}"
