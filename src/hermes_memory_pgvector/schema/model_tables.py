"""The vector tables of an embedding model, created once per model and dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres.statements import read_sql, vector_tables
from hermes_memory_pgvector.schema import owner
from hermes_memory_pgvector.schema.owner import value

MOST_COVERED = 1_152
"""A vector of more numbers does not fit into an entry of an index beside the longest name of a theme."""
MOST_IN_PAGE = 3_072
"""A vector of more numbers does not fit into a row of a page."""


@dataclass(frozen=True, slots=True)
class NewModel:
    """An embedding model that needs vector tables."""

    name: str
    dim: int
    unrelated_mean: float | None = None
    """The cosine of unrelated texts in it; None where whoever embeds first measures it."""
    unrelated_sd: float | None = None


def model_sql(model_id: int, dim: int, schema: str) -> sql.Composed:
    """The DDL of a model's vector tables in a bucket; run where names mean the tables of the whole installation."""
    return sql.SQL(read_sql("model.sql")).format(
        **vector_tables(model_id),
        schema=sql.Identifier(schema),
        dim=sql.Literal(dim),
        cover=sql.SQL(", embedding" if dim <= MOST_COVERED else ""),
        storage=sql.SQL("PLAIN" if dim <= MOST_IN_PAGE else "EXTERNAL"),
    )


def ensure_model(connection: psycopg.Connection[Any], model: NewModel, *, is_current: bool) -> int:
    """Register an embedding model and create its vector tables, in every bucket under one number; return that."""
    model_id, without = None, []
    for schema in owner.within_buckets(connection):
        known = value(connection, "models/find", (model.name, model.dim))
        if known is None:
            spec = (model_id, model.name, model.dim, model.unrelated_mean, model.unrelated_sd)
            known = value(connection, "models/register", spec)
            without.append(schema)
        model_id = int(known)
    if model_id is None:
        raise SchemaError("there is no bucket")
    for schema in without:
        connection.execute(model_sql(model_id, model.dim, schema))
    if is_current:
        make_current(connection, model_id)
    return model_id


def make_current(connection: psycopg.Connection[Any], model_id: int) -> None:
    """Make this the model whose vectors new rows get and recall compares, for everybody once the transaction ends."""
    for _ in owner.within_buckets(connection):
        connection.execute("UPDATE embedding_models SET is_current = false WHERE is_current AND id <> %s", (model_id,))
        connection.execute(
            "UPDATE embedding_models SET is_current = true WHERE NOT is_current AND id = %s", (model_id,)
        )
