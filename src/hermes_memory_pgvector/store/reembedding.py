"""The models whose vectors the database holds, and the rows that still want a vector of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store.vectors import Key
from hermes_memory_pgvector.values import EmbeddingModel


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model of the database and the room its vectors take."""

    id: int
    name: str
    dim: int
    is_current: bool
    created_at: datetime
    bytes: int


def models(connection: Connection) -> list[StoredModel]:
    """All models whose vectors the database holds, the current one first."""
    rows: list[Any] = connection.execute(statement("reembed/models")).fetchall()
    return [StoredModel(*row) for row in rows]


def exists(connection: Connection, model: EmbeddingModel) -> bool:
    """Whether the database still has this model."""
    return any(each.id == model.id for each in models(connection))


def is_at_work(connection: Connection) -> bool:
    """Whether somebody is changing the model."""
    row: Any = connection.execute(statement("reembed/is_at_work")).fetchone()
    return bool(row[0])


def missing_memories(connection: Connection, model: EmbeddingModel, below: int | None, limit: int) -> list[Key]:
    """Memories without a vector of this model, newest first, below an id."""
    values = {"theme": None, "before_id": below, "limit": limit}
    rows: list[Any] = connection.execute(model_statement("vectors/missing_of_memories", model.id), values).fetchall()
    return [(str(theme), "memory", int(row_id)) for theme, row_id in rows]


def missing_turns(
    connection: Connection, model: EmbeddingModel, below: int | None, shortest: int, limit: int
) -> list[Key]:
    """Turns of at least some length without a vector of this model, newest first, below an id."""
    values = {"theme": None, "before_id": below, "shortest": shortest, "limit": limit}
    rows: list[Any] = connection.execute(model_statement("vectors/missing_of_turns", model.id), values).fetchall()
    return [(str(theme), "turn", int(row_id)) for theme, row_id in rows]


def finish_made(connection: Connection, model: EmbeddingModel, keys: Sequence[Key]) -> None:
    """Take those of these rows off the queue for vectors that have one of this model."""
    values = dict(zip(("themes", "kinds", "ids"), map(list, zip(*keys, strict=True)), strict=True))
    connection.execute(model_statement("reembed/finish_made", model.id), values)
