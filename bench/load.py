"""Puts a corpus into each system's own tables: ours by the statements of its writer, the peer's by COPY."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from bench.adapter import ROW
from bench.corpus import Corpus
from bench.stage import Seat
from hermes_memory_pgvector.store import memories as memory_rows
from hermes_memory_pgvector.store import turns as turn_rows
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.store.vectors import Made
from hermes_memory_pgvector.values import AddMemory, AddTurn, Kind, Moment

START = 1_750_000_000
BATCH = 1000
Connection = psycopg.Connection[tuple[Any, ...]]


def theme_name(number: int) -> str:
    """What a theme is called."""
    return f"theme-{number:05d}"


def load(seat: Seat, turns: Corpus, memories: Corpus) -> float:
    """Fill both tables and bring indexes and statistics up to date; seconds it took."""
    begin = time.monotonic()
    with seat.connect() as connection:
        if seat.system.name == "ours":
            _load_ours(connection, turns, memories)
        else:
            _load_peer(connection, turns, memories)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    return time.monotonic() - begin


def size_of(seat: Seat) -> int:
    """Bytes of the database: tables, their indexes and their TOAST."""
    with seat.connect() as connection:
        return seat.count(connection, "SELECT pg_database_size(current_database())")


def _load_ours(connection: Connection, turns: Corpus, memories: Corpus) -> None:
    for rows in _batches(turns):
        with connection.transaction():
            said = [_turn(turns, row) for row in rows]
            keys = turn_rows.insert(connection, said, retry_window=0, wants_vector=lambda _: False)
            _store_vectors(connection, turns, Kind.TURN, keys)
    for rows in _batches(memories):
        with connection.transaction():
            added = [Placed(_memory(memories, row), "bench", row + 1, 0) for row in rows]
            _store_vectors(connection, memories, Kind.MEMORY, memory_rows.store(connection, added))
    # Like the peer's graph, the key is built over the finished table.
    connection.execute("REINDEX TABLE turn_vectors_1")
    connection.execute("REINDEX TABLE memory_vectors_1")


def _store_vectors(connection: Connection, corpus: Corpus, kind: Kind, keys: list[tuple[str, int]]) -> None:
    model = current_model(connection)
    assert model is not None
    stored = vectors.texts(connection, [(theme, kind.value, row_id) for theme, row_id in keys])
    numbers = [int(ROW.findall(row.content)[0]) for row in stored]
    made = corpus.vectors[numbers].astype(np.float32).tolist()
    vectors.insert(connection, model, [Made(row, 0, vector) for row, vector in zip(stored, made, strict=True)])


def _batches(corpus: Corpus) -> Iterator[range]:
    for start in range(0, corpus.rows, BATCH):
        yield range(start, min(start + BATCH, corpus.rows))


def _role(row: int) -> Any:
    return "assistant" if row % 2 else "user"


def _session(row: int) -> str:
    # One each: ours lets further hits of the same session give way a little, which is not what is measured here.
    return f"session-{row}"


def _theme(corpus: Corpus, row: int) -> str:
    return theme_name(int(corpus.theme_of[row]))


def _turn(corpus: Corpus, row: int) -> AddTurn:
    when = Moment(*[(START + row) * 1_000_000] * 2)
    return AddTurn(_theme(corpus, row), _session(row), _role(row), corpus.content(row), 1, when, is_live=False)


def _memory(corpus: Corpus, row: int) -> AddMemory:
    when = Moment(*[(START + row) * 1_000_000] * 2)
    return AddMemory(_theme(corpus, row), "memory", corpus.content(row), when, "")


def _load_peer(connection: Connection, turns: Corpus, memories: Corpus) -> None:
    # Its graph is built over the finished table: faster than row by row, and if anything better connected.
    connection.execute("SET maintenance_work_mem = '4GB'")
    connection.execute("SET max_parallel_maintenance_workers = 2")
    with _without_indexes(connection), connection.cursor() as cursor:
        with cursor.copy(
            "COPY conversations (session_id, agent_identity, role, content, ts, embedding) FROM STDIN"
        ) as copy:
            for row in range(turns.rows):
                copy.write_row(
                    (_session(row), _theme(turns, row), _role(row), turns.content(row), *_when_and_vector(turns, row))
                )
        with cursor.copy(
            "COPY memory_entries (agent_identity, target, content, updated_at, embedding) FROM STDIN"
        ) as copy:
            for row in range(memories.rows):
                copy.write_row(
                    (_theme(memories, row), "memory", memories.content(row), *_when_and_vector(memories, row))
                )


def _when_and_vector(corpus: Corpus, row: int) -> tuple[str, str]:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + row))
    return when, str(corpus.vectors[row].tolist())


@contextmanager
def _without_indexes(connection: Connection) -> Iterator[None]:
    """Drops the vector and word indexes of the two text tables and makes them again, word for word, at the end."""
    rows = connection.execute(
        "SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam"
        " JOIN pg_index AS i ON i.indexrelid = c.oid WHERE m.amname IN ('hnsw', 'gin')"
        " AND i.indrelid IN ('conversations'::regclass, 'memory_entries'::regclass)"
    ).fetchall()
    for name, _ in rows:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    for _, definition in rows:
        connection.execute(definition.encode())
