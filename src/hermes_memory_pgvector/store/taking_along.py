"""Every row in a fixed order, for whoever takes everything along; and rows that were brought along."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import IsolationLevel
from psycopg.sql import SQL, Composed

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store import gate
from hermes_memory_pgvector.store.turns import EPOCH, time_of
from hermes_memory_pgvector.values import EmbeddingModel, Moment, RecordDelegation

PAGE_ROWS = 200


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows are wanted; None is no limit."""

    theme: str | None = None
    session_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    origin: str | None = None

    @property
    def is_partial(self) -> bool:
        """Whether a theme is not taken whole."""
        return any(each is not None for each in (self.session_id, self.since, self.until, self.origin))


class TurnVector(NamedTuple):
    """A vector of a turn, named as it is in an export."""

    theme: str
    session_id: str
    digest: str
    words: str
    """Hex digest of the content that the vector is of."""
    ordinal: int
    chunk: int
    vector: str


class MemoryVector(NamedTuple):
    """A vector of a memory, named as it is in an export."""

    theme: str
    target: str
    content: str
    chunk: int
    vector: str


class Edge(NamedTuple):
    """A delegation, named as it is in an export."""

    theme: str
    session_id: str
    child_session_id: str
    task_digest: str
    at: datetime
    metadata: Mapping[str, Any]
    home_id: str = ""


@contextmanager
def snapshot(pool: Pool, deadline: Deadline) -> Iterator[Connection]:
    """A connection to the database as it is at this moment, however long the reading takes."""
    with pool.connection(deadline) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        try:
            with connection.transaction():
                yield connection
        finally:
            connection.isolation_level = None
            connection.read_only = None


def turns(connection: Connection, wanted: Selection, model: EmbeddingModel | None) -> Iterator[Sequence[Any]]:
    """(theme, session, role, content, time, metadata, parent, ordinal, hidden, origin, home, trust, digest, vectors).

    The digest is null where it is that of the content.
    """
    if model is None:
        return _rows(connection, statement("transfer/turns"), wanted)
    return _rows(connection, model_statement("transfer/turns_with_vectors", model.id), wanted)


def memories(connection: Connection, wanted: Selection, model: EmbeddingModel | None) -> Iterator[Sequence[Any]]:
    """(theme, target, content, created, updated, metadata, hidden, origin, home, trust, homes, vectors)."""
    if model is None:
        return _rows(connection, statement("transfer/memories"), wanted)
    return _rows(connection, model_statement("transfer/memories_with_vectors", model.id), wanted)


def events(connection: Connection, wanted: Selection) -> Iterator[Sequence[Any]]:
    """Each memory operation in the order of its making, with the columns of its table."""
    return _rows(connection, statement("transfer/events"), wanted)


def delegations(connection: Connection, wanted: Selection) -> Iterator[Sequence[Any]]:
    """(theme, session, subagent's session, hex digest of the task, time, metadata, home) of each edge."""
    return _rows(connection, statement("transfer/delegations"), wanted)


def store_edges(connection: Connection, edges: Sequence[Edge]) -> list[str]:
    """Note edges, each once; return the themes of those that were new."""
    moments = [Moment(_microseconds(edge.at), 0) for edge in edges]
    items = [
        RecordDelegation(
            edge.theme, edge.session_id, edge.child_session_id, "", edge.task_digest, when, edge.metadata, edge.home_id
        )
        for edge, when in zip(edges, moments, strict=True)
    ]
    # The words of the task are not in an export; a theme or session that was forgotten is refused all the same.
    admitted = gate.enter(connection).admitted(connection, items)
    rows: list[Any] = connection.execute(
        statement("transfer/insert_delegations"),
        {
            "themes": [item.theme for item in admitted],
            "session_ids": [item.session_id for item in admitted],
            "child_session_ids": [item.child_session_id for item in admitted],
            "digests": [item.result for item in admitted],
            "ts": [time_of(item.when) for item in admitted],
            "metadata": [json.dumps(dict(item.metadata)) for item in admitted],
            "home_ids": [item.home_id for item in admitted],
        },
    ).fetchall()
    return [str(theme) for (theme,) in rows]


def store_turn_vectors(connection: Connection, model: EmbeddingModel, made: Sequence[TurnVector]) -> None:
    """Give stored turns the vectors they came with."""
    columns = list(zip(*made, strict=True))
    names = ("themes", "session_ids", "digests", "words", "ordinals", "chunks", "vectors")
    values = {name: list(column) for name, column in zip(names, columns, strict=True)}
    connection.execute(model_statement("transfer/vectors_of_turns", model.id), values)


def store_memory_vectors(connection: Connection, model: EmbeddingModel, made: Sequence[MemoryVector]) -> None:
    """Give stored memories the vectors they came with."""
    columns = list(zip(*made, strict=True))
    names = ("themes", "targets", "contents", "chunks", "vectors")
    values = {name: list(column) for name, column in zip(names, columns, strict=True)}
    connection.execute(model_statement("transfer/vectors_of_memories", model.id), values)


def held(connection: Connection, memories: Sequence[tuple[str, str, str]]) -> dict[int, int]:
    """The ids of those memories (theme, target, content) that are stored, by their places in the list."""
    rows: list[Any] = connection.execute(
        statement("transfer/held_memories"),
        {
            "themes": [theme for theme, _, _ in memories],
            "targets": [target for _, target, _ in memories],
            "contents": [content for _, _, content in memories],
        },
    ).fetchall()
    return {int(place) - 1: int(row_id) for place, row_id in rows}


def held_turns(connection: Connection, turns: Sequence[tuple[str, str, str, int]]) -> dict[int, int]:
    """The ids of those turns (theme, session, digest, ordinal) that are stored, by their places in the list."""
    names = ("themes", "session_ids", "digests", "ordinals")
    values = {name: list(column) for name, column in zip(names, zip(*turns, strict=True), strict=True)}
    rows: list[Any] = connection.execute(statement("transfer/held_turns"), values).fetchall()
    return {int(place) - 1: int(row_id) for place, row_id in rows}


def _microseconds(at: datetime) -> int:
    delta = at - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _rows(connection: Connection, query: SQL | Composed, wanted: Selection) -> Iterator[Sequence[Any]]:
    values = {
        "theme": wanted.theme,
        "session_id": wanted.session_id,
        "since": wanted.since,
        "until": wanted.until,
        "origin": wanted.origin,
    }
    with connection.cursor(name="hermes_export") as cursor:
        cursor.itersize = PAGE_ROWS
        cursor.execute(query, values)
        yield from cursor


def has_tables(connection: Connection) -> bool:
    """Whether there are tables of memories and turns, whoever made them."""
    row: Any = connection.execute(statement("transfer/peer_tables")).fetchone()
    return bool(row[0])


def peer_memories(connection: Connection) -> Iterator[Sequence[Any]]:
    """(theme, target, content, created, updated, metadata) of each memory in a database of the published package."""
    return _rows(connection, statement("transfer/peer_memories"), Selection())


def peer_turns(connection: Connection) -> Iterator[Sequence[Any]]:
    """(theme, session, role, content, time, metadata, ordinal) of each turn in a database of the published package."""
    return _rows(connection, statement("transfer/peer_turns"), Selection())
