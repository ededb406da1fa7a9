"""Giving a turn other words. Within the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.browse import StoredTurn
from hermes_memory_pgvector.store.turn_context import TurnPlace, mend_following
from hermes_memory_pgvector.values import Kind


def edit_turn(
    connection: Connection, row: StoredTurn, content: str, metadata: Mapping[str, Any], *, wants_vector: bool
) -> bool:
    """Give a turn other words; False when it has changed or gone since it was read."""
    values = {
        **_key(row),
        "content": content,
        "former": row.content,
        "metadata": json.dumps(dict(metadata)),
    }
    if connection.execute(statement("correct/edit_turn"), values).rowcount != 1:
        return False
    drop_vectors(connection, Kind.TURN, row.theme, row.id)
    if wants_vector and row.hidden_by is None:
        vectors.enqueue(connection, [(row.theme, Kind.TURN.value, row.id)])
    mend_following(connection, [TurnPlace(row.theme, row.session_id, row.at, row.id)])
    return True


def drop_vectors(connection: Connection, kind: Kind, theme: str, row_id: int) -> None:
    """Take a row out of the search by meaning."""
    name = "memories/drop_vectors" if kind is Kind.MEMORY else "correct/drop_vectors_of_turn"
    for model_id in vectors.model_ids(connection):
        connection.execute(model_statement(name, model_id), {"theme": theme, "id": row_id})
    vectors.finish(connection, [(theme, kind.value, row_id)])


def _key(row: StoredTurn) -> dict[str, Any]:
    return {"theme": row.theme, "id": row.id}
