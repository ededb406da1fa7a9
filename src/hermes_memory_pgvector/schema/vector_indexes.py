"""The approximate index over all shared themes, which serves scope `all` and pays off only at size.

A theme's own search compares every vector of it and needs none. For administrators: nothing at run time imports this
module. The index is created and dropped CONCURRENTLY, so agents keep writing. An interrupted build leaves an index that
Postgres calls invalid and never reads; the next attempt replaces it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.errors import MIGRATE_COMMAND
from hermes_memory_pgvector.postgres.statements import admin_statement, vector_tables
from hermes_memory_pgvector.schema import owner
from hermes_memory_pgvector.store import schema
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.values import EmbeddingModel

Connection = psycopg.Connection[Any]

MOST_MEMORY_MB: Final = 1024
"""The most memory a build takes by default."""
LOCK_KEY: Final = 0x6865726D65736978
NODE_BYTES: Final = 1000
"""What a build needs per vector, beside its numbers."""


@dataclass(frozen=True, slots=True)
class Index:
    """An approximate index as the catalogue knows it."""

    name: str
    table: str
    is_valid: bool
    is_building: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Survey:
    """The indexes of the current model, and how many vectors they are about."""

    model: EmbeddingModel
    shared_vectors: int
    indexes: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What was created, found or dropped."""

    name: str
    is_new: bool
    seconds: float
    size_bytes: int


class VectorIndexes:
    """The approximate indexes of a database's current model."""

    def __init__(self, connection: Connection, model: EmbeddingModel) -> None:
        self.model = model
        self._connection = connection
        self._tables = (f"turn_vectors_{model.id}", f"memory_vectors_{model.id}")

    @classmethod
    @contextmanager
    def open(cls, dsn: str) -> Iterator[VectorIndexes]:
        """Connect; SchemaError when there is nothing to index yet."""
        with owner.connected(dsn, "hermes-pgvector-index") as connection:
            schema.verify(connection)
            model = current_model(connection)
            if model is None:
                raise SchemaError(f"there are no vector tables yet; run: {MIGRATE_COMMAND}")
            # The login may have a time limit that suits agents; a build takes as long as it takes.
            connection.execute("SELECT set_config('statement_timeout', '0', false)")
            yield cls(connection, model)

    def survey(self) -> Survey:
        """What there is."""
        counted = admin_statement("indexes/shared_vectors").format(**vector_tables(self.model.id))
        return Survey(self.model, int(owner.value(self._connection, counted)), tuple(self._find()))

    def create(self) -> list[Done]:
        """Create the indexes, for turns and for memories, where they are missing."""
        with self._alone():
            needed = self.survey().shared_vectors * (2 * self.model.dim + NODE_BYTES) // 2**20
            memory_kb = min(MOST_MEMORY_MB, needed) * 1024
            self._connection.execute(admin_statement("indexes/raise_memory"), (memory_kb,))
            return [self._ensure(table) for table in self._tables]

    def drop(self) -> list[Done]:
        """Drop the indexes, including unfinished ones."""
        with self._alone():
            return [self._drop(index) for index in self._find()]

    def _ensure(self, table: str) -> Done:
        started = time.monotonic()
        for index in self._find():
            if index.table == table and index.is_valid:
                return Done(index.name, False, time.monotonic() - started, index.size_bytes)
            if index.table == table:
                self._drop(index)
        made = sql.Identifier(f"{table}_all")
        statement = admin_statement("indexes/create").format(name=made, table=sql.Identifier(table))
        # A container may lack the shared memory for several workers, and pgvector before 0.8.2 has a fault with them.
        self._connection.execute("SELECT set_config('max_parallel_maintenance_workers', '0', false)")
        self._connection.execute(statement)
        size = next(index.size_bytes for index in self._find() if index.table == table)
        return Done(f"{table}_all", True, time.monotonic() - started, size)

    def _drop(self, index: Index) -> Done:
        started = time.monotonic()
        if index.is_building:
            raise DatabaseUnavailable(f"another process is building index {index.name}; wait until it has finished")
        self._connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index.name)))
        return Done(index.name, False, time.monotonic() - started, index.size_bytes)

    def _find(self) -> list[Index]:
        with self._connection.cursor(row_factory=class_row(Index)) as cursor:
            tables = dict(zip(("turns", "memories"), self._tables, strict=True))
            return cursor.execute(admin_statement("indexes/find"), tables).fetchall()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run one command at a time; a second one fails at once, as waiting inside Postgres would block the first."""
        if not owner.value(self._connection, sql.SQL("SELECT pg_try_advisory_lock(%s)"), (LOCK_KEY,)):
            raise DatabaseUnavailable(
                "another `hermes-pgvector migrate --index` is running on this database; wait until it has finished"
            )
        try:
            yield
        finally:
            if not self._connection.closed:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK_KEY,))
