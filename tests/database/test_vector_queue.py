"""A row that changes while its vector is made keeps no vector of its former words, and gets one of its new words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import browse, memories, vectors
from hermes_memory_pgvector.store.browse import StoredTurn
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.store.vectors import Made, Wanting
from hermes_memory_pgvector.values import AddMemory, Kind, Moment, ReplaceMemory
from testing.postgres import DIM, Database


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with psycopg.connect(database.runtime_dsn, autocommit=True) as opened:
        yield opened


def say(connection: Connection, content: str) -> StoredTurn:
    row: Any = connection.execute(
        "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('t', 's', 'user', %s)"
        " RETURNING id",
        (content,),
    ).fetchone()
    vectors.enqueue(connection, [("t", "turn", row[0])])
    found = browse.find_turn(connection, row[0], "t")
    assert found is not None
    return found


def claim(connection: Connection) -> list[Wanting]:
    return vectors.claim(connection, limit=10, lease_seconds=60)[0]


def store(connection: Connection, rows: Sequence[Wanting]) -> None:
    model = current_model(connection)
    assert model is not None
    vectors.store(connection, model, [Made(row, 0, [1.0] * DIM) for row in rows], [])


def counts(connection: Connection, kind: str) -> tuple[int, int]:
    """How many rows have vectors, and how many wait for one."""
    table = "turn_vectors_1" if kind == "turn" else "memory_vectors_1"
    row: Any = connection.execute(
        f"SELECT (SELECT count(*) FROM {table}), (SELECT count(*) FROM pending_vectors)".encode()
    ).fetchone()
    return row[0], row[1]


def test_a_memory_replaced_while_its_vector_is_made_is_embedded_anew(connection: Connection) -> None:
    added = AddMemory("t", "memory", "Tea is green", Moment(1_000, 1_000), "")
    changed = memories.store(connection, [Placed(added, "w", 1, 0)])
    vectors.enqueue(connection, [(theme, Kind.MEMORY.value, row_id) for theme, row_id in changed])
    claimed = claim(connection)
    replaced = ReplaceMemory("t", "memory", "Tea is black", "green", Moment(2_000, 2_000), "")
    changed = memories.store(connection, [Placed(replaced, "w", 2, 0)])
    vectors.enqueue(connection, [(theme, Kind.MEMORY.value, row_id) for theme, row_id in changed])
    store(connection, claimed)
    assert counts(connection, "memory") == (0, 1)
    store(connection, claim(connection))
    assert counts(connection, "memory") == (1, 0)
