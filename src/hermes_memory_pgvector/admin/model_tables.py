"""Vector tables of an embedding model: registered and created by an administrator, once per model and dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.admin.sql_functions import model_functions
from hermes_memory_pgvector.store.statements import FOLDER, vector_tables


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The embedding model whose vector tables are to exist."""

    name: str
    dim: int
    min_similarity: float = 0.30


def model_sql(model_id: int, dim: int) -> sql.Composed:
    """The DDL of a model's vector tables."""
    text: LiteralString = FOLDER.joinpath("model.sql").read_text(encoding="utf-8")
    return sql.SQL(text).format(
        **vector_tables(model_id),
        turn_codes=sql.Identifier(f"turn_vectors_{model_id}_codes"),
        memory_codes=sql.Identifier(f"memory_vectors_{model_id}_codes"),
        dim=sql.Literal(dim),
    )


def ensure_model(connection: psycopg.Connection, model: ModelSpec, *, is_current: bool) -> int:
    """Register an embedding model and create its vector tables; return its id."""
    row = connection.execute(
        "SELECT id FROM embedding_models WHERE name = %s AND dim = %s", (model.name, model.dim)
    ).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO embedding_models (name, dim, min_similarity) VALUES (%s, %s, %s) RETURNING id",
            (model.name, model.dim, model.min_similarity),
        ).fetchone()
        assert row is not None
        connection.execute(model_sql(int(row[0]), model.dim))
        connection.execute(model_functions(int(row[0])))
    model_id = int(row[0])
    if is_current:
        connection.execute("UPDATE embedding_models SET is_current = false WHERE is_current AND id <> %s", (model_id,))
        connection.execute(
            "UPDATE embedding_models SET is_current = true WHERE NOT is_current AND id = %s", (model_id,)
        )
    return model_id


ENQUEUE: LiteralString = """
INSERT INTO pending_vectors (agent_identity, kind, id)
SELECT agent_identity, 'memory', id FROM memory_entries AS entry
WHERE muted_at IS NULL
  AND NOT EXISTS (SELECT FROM {memory_vectors} AS v WHERE v.agent_identity = entry.agent_identity AND v.id = entry.id)
UNION ALL
SELECT agent_identity, 'turn', id FROM conversations AS turn
WHERE muted_at IS NULL
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS v WHERE v.agent_identity = turn.agent_identity AND v.id = turn.id)
ON CONFLICT DO NOTHING"""


def ask_for_vectors(connection: psycopg.Connection, model_id: int) -> int:
    """Enqueue every row that has no vector of this model; return how many there are."""
    return connection.execute(sql.SQL(ENQUEUE).format(**vector_tables(model_id))).rowcount
