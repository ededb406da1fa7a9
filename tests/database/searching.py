"""A store to search, filled by the statements that fill it in life."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.postgres.vector_types import vector_array
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel, ensure_model
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.store.search import Meaning, search
from hermes_memory_pgvector.values import EmbeddingModel, Hit, Kind, Question, Scope
from testing.postgres import Database, new_database

START = datetime(2026, 1, 1, tzinfo=UTC)
Vector = list[float]


@dataclass(slots=True)
class Said:
    """A turn to store."""

    content: str
    theme: str = "fleet"
    session: str = "s1"
    role: str = "user"
    vector: Sequence[float] | None = None
    before: Sequence[str] = ()
    ts: datetime | None = None
    author: str = ""
    untrusted: bool = False


@dataclass
class Store:
    """One connection as the runtime role, and what it stored."""

    connection: psycopg.Connection[TupleRow]
    model: EmbeddingModel
    said: int = field(default=0)

    def say(self, *turns: Said | str) -> list[int]:
        """Store turns; their ids in order."""
        items = [Said(turn) if isinstance(turn, str) else turn for turn in turns]
        numbers = range(self.said + 1, self.said + len(items) + 1)
        self.said += len(items)
        rows: list[Any] = self.connection.execute(
            statement("turns/insert"),
            {
                "themes": [item.theme for item in items],
                "session_ids": [item.session for item in items],
                "roles": [item.role for item in items],
                "contents": [item.content for item in items],
                "ts": [
                    item.ts or START + timedelta(minutes=number - 1)
                    for item, number in zip(items, numbers, strict=True)
                ],
                "metadata": [json.dumps({"author": {"name": item.author}} if item.author else {}) for item in items],
                "parent_session_ids": [None] * len(items),
                "digests": [""] * len(items),
                "ordinals": list(numbers),
                "befores": ["\n".join(item.before) for item in items],
                "lives": [False] * len(items),
                "window": 0.0,
                "home_ids": [""] * len(items),
                "origins": [""] * len(items),
                "untrusted": [item.untrusted for item in items],
            },
        ).fetchall()
        ids = [row[-1] for row in rows]
        self.embed([(item.theme, row_id, item.vector) for item, row_id in zip(items, ids, strict=True)])
        return ids

    def embed(self, rows: Sequence[tuple[str, int, Sequence[float] | None]]) -> None:
        """Store vectors of turns."""
        made = [(theme, row_id, vector) for theme, row_id, vector in rows if vector is not None]
        digests: dict[Any, Any] = dict(
            self.connection.execute(
                "SELECT id, hermes_digest(content) FROM conversations WHERE id = ANY (%s)", ([row[1] for row in made],)
            ).fetchall()
        )
        self.connection.execute(
            model_statement("vectors/insert_of_turns", self.model.id),
            {
                "digests": [digests.get(row_id, b"") for _, row_id, _ in made],
                "themes": [theme for theme, _, _ in made],
                "ids": [row_id for _, row_id, _ in made],
                "chunks": [0] * len(made),
                "vectors": vector_array(self.model, [vector for _, _, vector in made]),
            },
        )

    def remember(self, theme: str, target: str, content: str, vector: Sequence[float] | None = None) -> int:
        """Store a memory; its id."""
        row: Any = self.connection.execute(
            "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, %s, %s)"
            " RETURNING id, hermes_digest(content)",
            (theme, target, content),
        ).fetchone()
        if vector is not None:
            self.connection.execute(
                model_statement("vectors/insert_of_memories", self.model.id),
                {
                    "themes": [theme],
                    "ids": [row[0]],
                    "chunks": [0],
                    "digests": [row[1]],
                    "vectors": vector_array(self.model, [vector]),
                },
            )
        return int(row[0])

    def ask(
        self,
        text: str,
        vector: Sequence[float] | None = None,
        *,
        theme: str = "fleet",
        kind: Kind = Kind.TURN,
        is_open: bool = False,
        half_life_days: float = 0.0,
        **more: Any,
    ) -> list[Hit]:
        """Hits for a question; where it is open, whatever is compared is a hit."""
        question = Question(text, kind, theme, **{"limit": 10, "now": START, **more})
        model = opened_up(self.model) if is_open else self.model
        meaning = None if vector is None else Meaning(model, vector)
        with self.connection.transaction():
            return search(self.connection, question, meaning, read_wording(question), half_life_days)

    @contextmanager
    def reading(self, _: Deadline) -> Iterator[Any]:
        """The connection, as recall borrows it."""
        with self.connection.transaction():
            yield self.connection


def spec_of(name: str, dim: int) -> NewModel:
    """A model whose unrelated texts have random directions."""
    return NewModel(name, dim, 0.0, dim**-0.5)


def opened_up(model: EmbeddingModel) -> EmbeddingModel:
    """A model in which everything is near, and in which nothing but nearness counts."""
    return replace(model, unrelated_mean=-2.0, unrelated_sd=0.001)


def opened(database: Database) -> psycopg.Connection[TupleRow]:
    """A connection as the runtime role uses it."""
    return psycopg.connect(database.runtime_dsn, autocommit=True, prepare_threshold=None)


@contextmanager
def store_of(database: Database, dim: int | None = None) -> Iterator[Store]:
    """A store with vectors of that dimension."""
    if dim is not None:
        with psycopg.connect(database.owner_dsn) as owner:
            model_id = ensure_model(owner, spec_of(f"model-{dim}", dim), is_current=True)
            tables = f"memory_vectors_{model_id}, turn_vectors_{model_id}"
            owner.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO hermes".encode())
    with opened(database) as connection:
        model = current_model(connection)
        assert model is not None
        yield Store(connection, model)


@contextmanager
def new_store(server: ConnectionInfo, dim: int) -> Iterator[tuple[Database, Store]]:
    """A database of its own, for a module whose tests share what they search."""
    with new_database(server) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=spec_of("model", dim))
        with store_of(database) as store:
            yield database, store


def settle(database: Database) -> None:
    """What autovacuum and upkeep do in time."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        deadline = Deadline.after(30)
        # A background worker's snapshot may keep pages from being marked visible: try until they all are.
        while _unseen_pages(owner) > 0:
            deadline.check()
            owner.execute("VACUUM ANALYZE")


def _unseen_pages(owner: psycopg.Connection[TupleRow]) -> int:
    row: Any = owner.execute(
        "SELECT sum(pg_relation_size(oid) / 8192 - relallvisible)::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relname ~ '^(turn|memory)_vectors_|^conversations$'"
    ).fetchone()
    return int(row[0])


def unit(generator: random.Random, dim: int, toward: Sequence[float] = (), pull: float = 0.0) -> Vector:
    """A random direction, pulled toward another."""
    values = [generator.gauss(0, 1) for _ in range(dim)]
    if toward:
        length = math.sqrt(sum(value * value for value in values))
        values = [value / length * (1 - pull) + other * pull for value, other in zip(values, toward, strict=True)]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def everywhere(store: Store, text: str, vector: Sequence[float] | None = None, **more: Any) -> list[Hit]:
    """Hits of scope `all`."""
    return store.ask(text, vector, scope=Scope.ALL, **more)
