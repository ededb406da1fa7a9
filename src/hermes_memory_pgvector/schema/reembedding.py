"""A change of the embedding model, as the owner of the tables: begun, switched, and vectors dropped.

Everybody reads from one row which model is in use, so that one transaction switches every process. Before it changes
that row, it keeps writers waiting for a moment and has the last rows embedded: at no time does the model in use lack a
vector that the former one had.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import CareError, DatabaseDenied, DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.errors import MIGRATE_COMMAND
from hermes_memory_pgvector.postgres.pool import TRANSACTION_TIMEOUT_SINCE
from hermes_memory_pgvector.postgres.statements import vector_tables
from hermes_memory_pgvector.schema import owner
from hermes_memory_pgvector.schema.migrate import fleet_roles, make_views_and_grants
from hermes_memory_pgvector.schema.model_tables import ModelSpec, ensure_model, make_current
from hermes_memory_pgvector.schema.statements import admin_statement
from hermes_memory_pgvector.store import audit_log, reembedding, schema
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.values import EmbeddingModel

NAME = "hermes-pgvector-reembed"
LOCK_MS = 700
"""Less than the second after which Postgres looks for a deadlock: if somebody has to give way, it is us."""
DROP_LOCK_MS = 250
"""Dropping a table that refers to others locks these too, against readers as well: better often than long."""
MOST_TRIES = 120
PAUSE_SECONDS = 0.25
LOCK_STATES = ("55P03", "40P01")
DEPENDED_ON = "2BP01"

T = TypeVar("T")


def begin(dsn: str, spec: ModelSpec) -> EmbeddingModel:
    """Make a model's tables where there are none; may be said again."""

    def attempt(connection: psycopg.Connection) -> EmbeddingModel:
        with owner.transaction(connection, lock_ms=LOCK_MS):
            current = current_model(connection)
            if current is None:
                raise SchemaError(f"the database has no vectors yet; run: {MIGRATE_COMMAND}")
            model_id = ensure_model(connection, spec, is_current=False)
            connection.execute(admin_statement("reembed/copy_grants").format(**_names(model_id, current.id)))
            return dataclasses.replace(
                current, id=model_id, name=spec.name, dim=spec.dim, is_current=False,
                unrelated_mean=spec.unrelated_mean, unrelated_sd=spec.unrelated_sd,
            )  # fmt: skip

    return _persistently(dsn, attempt)


@contextmanager
def alone(dsn: str) -> Iterator[None]:
    """Only one process at a time works on a change; CareError when another one does.

    The lock belongs to a transaction that does nothing else, so it also holds behind a pooler, and goes with us.
    """
    with owner.connected(dsn, NAME) as connection:
        connection.execute("BEGIN")
        for limit in ("idle_in_transaction_session_timeout", "transaction_timeout"):
            if limit != "transaction_timeout" or connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
                connection.execute("SELECT set_config(%s, '0', true)", (limit,))
        row = connection.execute(
            "SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-reembed ' || current_schema(), 7))"
        ).fetchone()
        if row != (True,):
            raise CareError("another process is at it already; see: hermes-pgvector reembed --status")
        try:
            yield
        finally:
            # A server that went away meanwhile has taken the lock with it, which is no failure of the work.
            connection.close()


def settle(dsn: str, model: EmbeddingModel) -> None:
    """Have the new model's tables read as fast as those that have been in use for long."""
    with owner.connected(dsn, NAME) as connection:
        connection.execute("SELECT set_config('statement_timeout', '0', false)")
        for table in vector_tables(model.id).values():
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))


def switch(
    dsn: str, model: EmbeddingModel, finish: Callable[[psycopg.Connection], bool], *, actor: str, home_id: str
) -> bool:
    """Make the new model the one in use, for everybody at once; False when `finish` says that too much is left.

    `finish` embeds the last rows on the connection it is given, while nobody else can store any.
    """

    def attempt(connection: psycopg.Connection) -> bool:
        with owner.transaction(connection, lock_ms=LOCK_MS) as whole:
            connection.execute("LOCK TABLE conversations, memory_entries IN SHARE MODE")
            if not reembedding.exists(connection, model):
                raise CareError("the change of the model was cancelled: its vectors are gone")
            if not finish(connection):
                raise psycopg.Rollback(whole)
            make_current(connection, model.id)
            connection.execute(admin_statement("reembed/finish_pending").format(**vector_tables(model.id)))
            make_views_and_grants(connection, fleet_roles(connection))
            _record(connection, actor, home_id, "switch model", model, {})
            return True
        return False

    return _persistently(dsn, attempt)


def drop(dsn: str, model_ids: Sequence[int], *, actor: str, home_id: str) -> None:
    """Drop the vectors of these models, of which none may be in use; whoever makes some stops."""
    for model_id in model_ids:
        _persistently(dsn, functools.partial(_drop, model_id=model_id, actor=actor, home_id=home_id))


def _drop(connection: psycopg.Connection, *, model_id: int, actor: str, home_id: str) -> None:
    with owner.transaction(connection, lock_ms=DROP_LOCK_MS):
        found = next((each for each in reembedding.models(connection) if each.id == model_id), None)
        if found is None or found.is_current:
            raise CareError(f"model {model_id} is in use by now, or gone; nothing of it was dropped")
        tables = vector_tables(model_id)
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.SQL(", ").join(tables.values())))
        connection.execute("DELETE FROM embedding_models WHERE id = %s AND NOT is_current", (model_id,))
        model = EmbeddingModel(found.id, found.name, found.dim)
        _record(connection, actor, home_id, "drop vectors", model, {"bytes": found.bytes})


def _names(model_id: int, former_id: int | None = None) -> dict[str, sql.Literal]:
    """The names of a model's vector tables, and of a former one's, as texts."""
    ids = {"": model_id, "former_": former_id or model_id}
    return {
        f"{head}{name}": sql.Literal(f"{name}_{each}") for head, each in ids.items() for name in vector_tables(each)
    }


def _record(
    connection: psycopg.Connection, actor: str, home_id: str, action: str, model: EmbeddingModel, counts: dict[str, int]
) -> None:
    subject = f"{model.name}, {model.dim} dimensions"[:200]
    audit_log.insert(connection, actor=actor, home_id=home_id, action=action, theme="", subject=subject, counts=counts)


def _persistently(dsn: str, attempt: Callable[[psycopg.Connection], T]) -> T:
    """Run a short transaction, again while others hold the locks it needs."""
    with owner.connected(dsn, NAME) as connection:
        schema.verify(connection)
        for tries in range(MOST_TRIES):
            try:
                with owner.translating():
                    return attempt(connection)
            except DatabaseUnavailable as error:
                if error.sqlstate not in LOCK_STATES or tries == MOST_TRIES - 1:
                    raise
            except DatabaseDenied as error:
                if error.sqlstate != DEPENDED_ON:
                    raise
                raise CareError(
                    "something that is not ours depends on these tables, a view for instance; drop that first"
                ) from None
            # Not at the rhythm of somebody else's transactions.
            time.sleep(PAUSE_SECONDS * (0.5 + random.random()))  # noqa: S311 - no secret
    raise AssertionError
