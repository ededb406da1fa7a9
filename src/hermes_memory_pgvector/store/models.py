"""The embedding models whose vectors the database holds, which is in use, and the rows without a vector of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from hermes_memory_pgvector.postgres.statements import one, run, statement
from hermes_memory_pgvector.store.vectors import Key
from hermes_memory_pgvector.values import EmbeddingModel

Connection = psycopg.Connection[Any]

REMEMBERED_SECONDS = 60.0
"""How long the models are remembered: `migrate`, `reembed` and the self-check may change them."""


def current_model(connection: Connection) -> EmbeddingModel | None:
    """The model whose vectors new rows get, or None while there is none."""
    return current_of(send_models(connection)())


def current_of(models: Sequence[EmbeddingModel]) -> EmbeddingModel | None:
    """The one of these models that is in use."""
    return next((model for model in models if model.is_current), None)


def send_models(connection: Connection) -> Callable[[], tuple[EmbeddingModel, ...]]:
    """Ask for the models; what is returned receives them, the current one first."""
    sent = connection.cursor(row_factory=class_row(EmbeddingModel)).execute(statement("search/models"))

    def receive() -> tuple[EmbeddingModel, ...]:
        with sent as cursor:
            return tuple(cursor.fetchall())

    return receive


class CurrentModel:
    """Remembers the models for the whole process; thread-safe.

    That there is no current model is not remembered: vector tables made by `migrate` are used from the next read on.
    """

    def __init__(self) -> None:
        self._remembered: tuple[float, tuple[EmbeddingModel, ...]] | None = None

    def remembered(self) -> tuple[EmbeddingModel, ...]:
        """All models, the current one first, if they were read a short while ago."""
        if self._remembered is None:
            return ()
        read_at, models = self._remembered
        return models if time.monotonic() - read_at <= REMEMBERED_SECONDS else ()

    def read(self, connection: Connection) -> tuple[EmbeddingModel, ...]:
        """All models as the database names them now, the current one first."""
        return self.note(send_models(connection)())

    def note(self, models: tuple[EmbeddingModel, ...]) -> tuple[EmbeddingModel, ...]:
        """Remember what was read."""
        self._remembered = (time.monotonic(), models) if models and models[0].is_current else None
        return models

    def forget(self) -> None:
        """Read them anew at the next question."""
        self._remembered = None


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model of the database and the room its vectors take."""

    id: int
    name: str
    dim: int
    is_current: bool
    created_at: datetime
    bytes: int


def listed(connection: Connection) -> list[StoredModel]:
    """All models whose vectors the database holds, the current one first."""
    return [StoredModel(*row) for row in run(connection, "reembed/models")]


def exists(connection: Connection, model: EmbeddingModel) -> bool:
    """Whether the database still has this model."""
    return any(each.id == model.id for each in listed(connection))


def is_changing(connection: Connection) -> bool:
    """Whether somebody is changing the model."""
    return bool(one(connection, "reembed/is_at_work")[0])


def missing_memories(connection: Connection, model: EmbeddingModel, below: int | None, limit: int) -> list[Key]:
    """Memories without a vector of this model, newest first, below an id."""
    found = run(connection, "vectors/missing_of_memories", model.id, before_id=below, limit=limit)
    return [(theme, "memory", row_id) for theme, row_id in found]


def missing_turns(
    connection: Connection, model: EmbeddingModel, below: int | None, shortest: int, limit: int
) -> list[Key]:
    """Turns of at least some length without a vector of this model, newest first, below an id."""
    found = run(connection, "vectors/missing_of_turns", model.id, before_id=below, shortest=shortest, limit=limit)
    return [(theme, "turn", row_id) for theme, row_id in found]


def count_missing(connection: Connection, model: EmbeddingModel, most: int) -> int:
    """How many rows have no vector of this model, counted up to a bound."""
    return int(one(connection, "overview/missing_vectors", model.id, most=most)[0])


def finish_made(connection: Connection, model: EmbeddingModel, keys: Sequence[Key]) -> None:
    """Take those of these rows off the queue for vectors that have one of this model."""
    themes, kinds, ids = map(list, zip(*keys, strict=True))
    run(connection, "reembed/finish_made", model.id, themes=themes, kinds=kinds, ids=ids)
