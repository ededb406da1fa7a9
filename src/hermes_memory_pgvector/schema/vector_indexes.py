"""The approximate index over all shared themes, which serves scope `all` and pays off only at size.

A theme's own search compares every vector of it and needs none. For administrators: nothing at run time imports this
module. The index is made and dropped CONCURRENTLY, so agents keep writing. An interrupted build leaves an index that
Postgres calls invalid and never reads; the next attempt replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator
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

MOST_MEMORY: Final = "1GB"
"""The most memory a build takes, where the server does not allow more anyway; it takes what it needs."""
LOCK_KEY: Final = 0x6865726D65736978


@dataclass(frozen=True, slots=True)
class Index:
    """An approximate index as the catalogue knows it."""

    name: str
    table: str
    is_valid: bool
    size_bytes: int


def create(dsn: str) -> list[Index]:
    """Make the indexes, for turns and for memories, where they are missing; return them."""
    found: list[Index] = []
    with _alone(dsn) as (connection, model):
        connection.execute(admin_statement("indexes/raise_memory"), (MOST_MEMORY,))
        # A container may lack the shared memory for several workers, and pgvector before 0.8.2 has a fault with them.
        connection.execute("SELECT set_config('max_parallel_maintenance_workers', '0', false)")
        for _ in _buckets(connection):
            known = _found(connection, model)
            usable = {index.table for index in known if index.is_valid}
            _drop(connection, [index for index in known if index.table not in usable])
            for table in _tables(model):
                if table not in usable:
                    names = {"name": sql.Identifier(f"{table}_all"), "table": sql.Identifier(table)}
                    connection.execute(admin_statement("indexes/create").format(**names))
            found += _found(connection, model)
    return found


def drop(dsn: str) -> list[Index]:
    """Drop the indexes, including unfinished ones; return them."""
    found: list[Index] = []
    with _alone(dsn) as (connection, model):
        for _ in _buckets(connection):
            found += _drop(connection, _found(connection, model))
    return found


def _drop(connection: Connection, indexes: list[Index]) -> list[Index]:
    for index in indexes:
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index.name)))
    return indexes


def _tables(model: EmbeddingModel) -> tuple[str, str]:
    return f"turn_vectors_{model.id}", f"memory_vectors_{model.id}"


def _found(connection: Connection, model: EmbeddingModel) -> list[Index]:
    with connection.cursor(row_factory=class_row(Index)) as cursor:
        return cursor.execute(admin_statement("indexes/find"), _tables(model)).fetchall()


@contextmanager
def _alone(dsn: str) -> Iterator[tuple[Connection, EmbeddingModel]]:
    """Connect, as one command at a time: a second one fails at once, as waiting inside Postgres would block the first.

    Whoever was interrupted holds the lock for as long as Postgres goes on building.
    """
    with owner.connected(dsn, "hermes-pgvector-index") as connection:
        schema.verify(connection)
        # Each bucket has a row of it.
        model = next(current_model(connection) for _ in _buckets(connection))
        if model is None:
            raise SchemaError(f"there are no vector tables yet; run: {MIGRATE_COMMAND}")
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
