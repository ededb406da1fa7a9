"""The embedding model whose vectors are in use, as the database names it: read by everyone, remembered once."""

from __future__ import annotations

import time

import psycopg
from psycopg.rows import class_row

from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.values import EmbeddingModel

Connection = psycopg.Connection[tuple[object, ...]]

REMEMBERED_SECONDS = 60.0
"""How long the model is remembered: `migrate` and the self-check may change it."""


def current_model(connection: Connection) -> EmbeddingModel | None:
    """The model whose vectors are searched, or None while there is none."""
    with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(statement("search/current_model")).fetchone()


class CurrentModel:
    """Remembers the current model for the whole process; thread-safe.

    That there is no model is not remembered: vector tables made by `migrate` are used from the next read on.
    """

    def __init__(self) -> None:
        self._remembered: tuple[float, EmbeddingModel] | None = None

    def remembered(self) -> EmbeddingModel | None:
        """The model, if it was read a short while ago."""
        if self._remembered is None:
            return None
        read_at, model = self._remembered
        return model if time.monotonic() - read_at <= REMEMBERED_SECONDS else None

    def get(self, connection: Connection) -> EmbeddingModel | None:
        """The model, read only when it is not remembered."""
        return self.remembered() or self.read(connection)

    def read(self, connection: Connection) -> EmbeddingModel | None:
        """The model as the database names it now."""
        model = current_model(connection)
        self._remembered = None if model is None else (time.monotonic(), model)
        return model
