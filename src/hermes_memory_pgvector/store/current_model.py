"""The embedding models whose vectors the database holds, and which is in use: read by everyone, remembered once."""

from __future__ import annotations

import time

import psycopg
from psycopg.rows import class_row

from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.values import EmbeddingModel

Connection = psycopg.Connection[tuple[object, ...]]

REMEMBERED_SECONDS = 60.0
"""How long the models are remembered: `migrate`, `reembed` and the self-check may change them."""


def current_model(connection: Connection) -> EmbeddingModel | None:
    """The model whose vectors new rows get, or None while there is none."""
    with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(statement("search/current_model")).fetchone()


class PendingModels:
    """The question for the models, on its way."""

    def __init__(self, connection: Connection) -> None:
        self._cursor = connection.cursor(row_factory=class_row(EmbeddingModel)).execute(statement("search/models"))

    def receive(self) -> tuple[EmbeddingModel, ...]:
        """The models, the current one first."""
        with self._cursor as cursor:
            return tuple(cursor.fetchall())


class CurrentModel:
    """Remembers the models for the whole process; thread-safe.

    That there is no current model is not remembered: vector tables made by `migrate` are used from the next read on.
    """

    def __init__(self) -> None:
        self._remembered: tuple[float, tuple[EmbeddingModel, ...]] | None = None

    def remembered(self) -> EmbeddingModel | None:
        """The current model, if it was read a short while ago."""
        models = self.remembered_models()
        return models[0] if models else None

    def remembered_models(self) -> tuple[EmbeddingModel, ...]:
        """All models, the current one first, if they were read a short while ago."""
        if self._remembered is None:
            return ()
        read_at, models = self._remembered
        return models if time.monotonic() - read_at <= REMEMBERED_SECONDS else ()

    def get(self, connection: Connection) -> EmbeddingModel | None:
        """The current model, read only when it is not remembered."""
        return self.remembered() or self.read(connection)

    def read(self, connection: Connection) -> EmbeddingModel | None:
        """The current model as the database names it now."""
        models = self.read_models(connection)
        return models[0] if models and models[0].is_current else None

    def read_models(self, connection: Connection) -> tuple[EmbeddingModel, ...]:
        """All models as the database names them now, the current one first."""
        return self.note(PendingModels(connection).receive())

    def note(self, models: tuple[EmbeddingModel, ...]) -> tuple[EmbeddingModel, ...]:
        """Remember what was read."""
        self._remembered = (time.monotonic(), models) if models and models[0].is_current else None
        return models
