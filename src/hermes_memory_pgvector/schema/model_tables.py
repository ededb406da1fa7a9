"""The vector tables of an embedding model, created once per model and dimension."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from hermes_memory_pgvector.postgres.statements import read_sql, vector_tables
from hermes_memory_pgvector.schema.statements import admin_statement

MOST_COVERED = 1_152
"""A vector of more numbers does not fit into an entry of an index beside the longest name of a theme."""
MOST_IN_PAGE = 3_072
"""A vector of more numbers does not fit into a row of a page."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """An embedding model that needs vector tables."""

    name: str
    dim: int
    unrelated_mean: float | None = None
    """The cosine of unrelated texts in it; None where whoever embeds first measures it."""
    unrelated_sd: float | None = None


def model_sql(model_id: int, dim: int) -> sql.Composed:
    """The DDL of a model's vector tables."""
    return sql.SQL(read_sql("model.sql")).format(
        **vector_tables(model_id),
        dim=sql.Literal(dim),
        cover=sql.SQL(", embedding" if dim <= MOST_COVERED else ""),
        storage=sql.SQL("PLAIN" if dim <= MOST_IN_PAGE else "EXTERNAL"),
    )


def ensure_model(connection: psycopg.Connection, model: ModelSpec, *, is_current: bool) -> int:
    """Register an embedding model and create its vector tables; return its id."""
    row = connection.execute(admin_statement("models/find"), (model.name, model.dim)).fetchone()
    if row is None:
        row = connection.execute(
            admin_statement("models/register"), (model.name, model.dim, model.unrelated_mean, model.unrelated_sd)
        ).fetchone()
        assert row is not None
        connection.execute(model_sql(int(row[0]), model.dim))
    model_id = int(row[0])
    if is_current:
        make_current(connection, model_id)
    return model_id


def make_current(connection: psycopg.Connection, model_id: int) -> None:
    """Make this the model whose vectors new rows get and recall compares, for everybody once the transaction ends."""
    connection.execute("UPDATE embedding_models SET is_current = false WHERE is_current AND id <> %s", (model_id,))
    connection.execute("UPDATE embedding_models SET is_current = true WHERE NOT is_current AND id = %s", (model_id,))


def ask_for_vectors(connection: psycopg.Connection, model_id: int) -> int:
    """Enqueue every row that has no vector of this model; return how many there are."""
    return connection.execute(
        admin_statement("models/enqueue_missing_vectors").format(**vector_tables(model_id))
    ).rowcount
