"""A change of the embedding model, as the owner of the tables: begun, switched, and vectors dropped.

Everybody reads from one row which model is in use, so that one transaction switches every process. Before it changes
that row, it keeps writers waiting for a moment and has the last rows embedded: at no time does the model in use lack a
vector that the former one had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import CareError, DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.errors import MIGRATE_COMMAND, translated
from hermes_memory_pgvector.postgres.statements import admin_statement, statement, vector_tables
from hermes_memory_pgvector.schema import owner
from hermes_memory_pgvector.schema.buckets import tidy
from hermes_memory_pgvector.schema.migrate import make_views_and_grants
from hermes_memory_pgvector.schema.model_tables import NewModel, ensure_model, make_current
from hermes_memory_pgvector.store import audit_log, models, schema
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.values import EmbeddingModel

NAME = "hermes-pgvector-reembed"
LOCK_MS = 2_000
"""Who wants these tables meanwhile waits as long as we do."""
LOCK_STATES = ("55P03", "40P01")
LOCK: LiteralString = "hashtextextended('hermes-reembed ' || current_schema(), 7)"

Connection = psycopg.Connection[Any]


def begin(dsn: str, spec: NewModel) -> EmbeddingModel:
    """Make a model's tables where there are none; may be said again."""
    with _changing(dsn) as connection:
        current = current_model(connection)
        if current is None:
            raise SchemaError(f"the database has no vectors yet; run: {MIGRATE_COMMAND}")
        model_id = ensure_model(connection, spec, is_current=False)
        make_views_and_grants(connection)
        return dataclasses.replace(
            current, id=model_id, name=spec.name, dim=spec.dim, is_current=False,
            unrelated_mean=spec.unrelated_mean, unrelated_sd=spec.unrelated_sd,
        )  # fmt: skip


@contextmanager
def alone(dsn: str) -> Iterator[None]:
    """Only one process at a time works on a change; CareError when another one does."""
    with owner.connected(dsn, NAME) as connection:
        if not owner.value(connection, sql.SQL(f"SELECT pg_try_advisory_lock({LOCK})")):
            raise CareError("another process is at it already; see: hermes-pgvector reembed --status")
        try:
            yield
        finally:
            # A server that went away meanwhile has taken the lock with it, which is no failure of the work.
            connection.close()


def settle(dsn: str) -> None:
    """Have the new model's tables read as fast as those that have been in use for long."""
    with owner.connected(dsn, NAME) as connection:
        tidy(connection)


def switch(dsn: str, model: EmbeddingModel, finish: Callable[[Connection], bool], *, actor: str, home_id: str) -> bool:
    """Make the new model the one in use, for everybody at once; False when it is to be tried again.

    `finish` embeds the last rows on the connection it is given, while nobody else can store any; it says whether there
    were few enough.
    """
    try:
        with _changing(dsn) as connection:
            connection.execute("LOCK TABLE conversations, memory_entries IN SHARE MODE")
            if not models.exists(connection, model):
                raise CareError("the change of the model was cancelled: its vectors are gone")
            if not finish(connection):
                return False
            make_current(connection, model.id)
            for _ in owner.within_buckets(connection):
                connection.execute(admin_statement("models/finish_pending").format(**vector_tables(model.id)))
            make_views_and_grants(connection)
            _record(connection, actor, home_id, "switch model", model, {})
    except DatabaseUnavailable as error:
        if error.sqlstate not in LOCK_STATES:
            raise
        return False
    return True


def drop(dsn: str, model_ids: Sequence[int], *, actor: str, home_id: str) -> None:
    """Drop the vectors of these models, of which none may be in use; whoever makes some stops."""
    for model_id in model_ids:
        with _changing(dsn) as connection:
            found = next((each for each in models.listed(connection) if each.id == model_id), None)
            if found is None or found.is_current:
                raise CareError(f"model {model_id} is in use by now, or gone; nothing of it was dropped")
            tables = sql.SQL(", ").join(vector_tables(model_id).values())
            if len(owner.buckets(connection)) > 1:
                connection.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(tables))
            for _ in owner.within_buckets(connection):
                connection.execute(sql.SQL("DROP TABLE {}").format(tables))
                connection.execute("DELETE FROM embedding_models WHERE id = %s AND NOT is_current", (model_id,))
            model = EmbeddingModel(found.id, found.name, found.dim)
            _record(connection, actor, home_id, "drop vectors", model, {"bytes": found.bytes})


@contextmanager
def _changing(dsn: str) -> Iterator[Connection]:
    """A transaction in which no writer is inside the gate: nobody holds one of the tables and waits for another."""
    with owner.connected(dsn, NAME) as connection:
        schema.verify(connection)
        with translated(), owner.transaction(connection, lock_ms=LOCK_MS):
            connection.execute(statement("gate/close"))
            yield connection


def _record(
    connection: Connection, actor: str, home_id: str, action: str, model: EmbeddingModel, counts: dict[str, int]
) -> None:
    subject = f"{model.name}, {model.dim} dimensions"[:200]
    audit_log.insert(connection, actor=actor, home_id=home_id, action=action, theme="", subject=subject, counts=counts)
