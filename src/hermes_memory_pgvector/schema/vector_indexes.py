"""The approximate index over all shared themes, which serves scope `all` and pays off only at size.

A theme's own search compares every vector of it and needs none. For administrators: nothing at run time imports this
module. The index is made and dropped CONCURRENTLY, so agents keep writing. An interrupted build leaves an index that
Postgres calls invalid and never reads; the next attempt replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.errors import MIGRATE_COMMAND
from hermes_memory_pgvector.postgres.statements import admin_statement
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


def create(dsn: str) -> list[Index]:
    """Make the indexes, for turns and for memories, where they are missing; return them."""
    found: list[Index] = []
    with _alone(dsn) as (connection, model):
        for _ in _buckets(connection):
            for table in (f"turn_vectors_{model.id}", f"memory_vectors_{model.id}"):
                _ensure(connection, model, table)
            found += _found(connection, model)
    return found


def drop(dsn: str) -> list[Index]:
    """Drop the indexes, including unfinished ones; return them."""
    found: list[Index] = []
    with _alone(dsn) as (connection, model):
        for _ in _buckets(connection):
            found += _drop(connection, _found(connection, model))
    return found


def _ensure(connection: Connection, model: EmbeddingModel, table: str) -> None:
    before = [index for index in _found(connection, model) if index.table == table]
    if any(index.is_valid for index in before):
        return
    _drop(connection, before)
    vectors = int(
        owner.value(connection, admin_statement("indexes/shared_vectors").format(table=sql.Identifier(table)))
    )
    needed = vectors * (2 * model.dim + NODE_BYTES) // 2**20
    connection.execute(admin_statement("indexes/raise_memory"), (min(MOST_MEMORY_MB, needed) * 1024,))
    # A container may lack the shared memory for several workers, and pgvector before 0.8.2 has a fault with them.
    connection.execute("SELECT set_config('max_parallel_maintenance_workers', '0', false)")
    made = admin_statement("indexes/create").format(name=sql.Identifier(f"{table}_all"), table=sql.Identifier(table))
    connection.execute(made)


def _drop(connection: Connection, indexes: Sequence[Index]) -> Sequence[Index]:
    for index in indexes:
        if index.is_building:
            raise DatabaseUnavailable(f"another process is building index {index.name}; wait until it has finished")
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index.name)))
    return indexes


def _found(connection: Connection, model: EmbeddingModel) -> list[Index]:
    tables = {"turns": f"turn_vectors_{model.id}", "memories": f"memory_vectors_{model.id}"}
    with connection.cursor(row_factory=class_row(Index)) as cursor:
        return cursor.execute(admin_statement("indexes/find"), tables).fetchall()


@contextmanager
def _opened(dsn: str) -> Iterator[tuple[Connection, EmbeddingModel]]:
    """Connect; SchemaError when there is nothing to index yet."""
    with owner.connected(dsn, "hermes-pgvector-index") as connection:
        schema.verify(connection)
        # Each bucket has a row of it.
        model = next(current_model(connection) for _ in _buckets(connection))
        if model is None:
            raise SchemaError(f"there are no vector tables yet; run: {MIGRATE_COMMAND}")
        # The login may have a time limit that suits agents; a build takes as long as it takes.
        connection.execute("SELECT set_config('statement_timeout', '0', false)")
        yield connection, model


@contextmanager
def _alone(dsn: str) -> Iterator[tuple[Connection, EmbeddingModel]]:
    """Run one command at a time; a second one fails at once, as waiting inside Postgres would block the first."""
    with _opened(dsn) as (connection, model):
        if not owner.value(connection, sql.SQL("SELECT pg_try_advisory_lock(%s)"), (LOCK_KEY,)):
            raise DatabaseUnavailable(
                "another `hermes-pgvector migrate --index` is running on this database; wait until it has finished"
            )
        yield connection, model


def _buckets(connection: Connection) -> Iterator[None]:
    """With names that mean the tables of each bucket in turn."""
    path = owner.value(connection, sql.SQL("SELECT current_setting('search_path')"))
    for bucket in owner.buckets(connection):
        connection.execute("SELECT set_config('search_path', quote_ident(%s) || ', ' || %s, false)", (bucket, path))
        yield
