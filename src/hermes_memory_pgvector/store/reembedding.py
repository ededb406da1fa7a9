"""The change of the embedding model that is under way, and the rows that still want a vector of the new model.

A row wants one if it has a vector of the former model or waits for one: the new set becomes what the old one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store.vectors import Key
from hermes_memory_pgvector.values import EmbeddingModel, Kind

START: tuple[str, int] = ("", 0)
"""Before the first key of all."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the model, as whoever works on it last described it."""

    model: EmbeddingModel
    started_at: datetime
    seen_at: datetime
    done: int
    total: int
    rate: float
    """Rows per second."""
    problem: str
    """What it waits for; empty while it goes on."""
    silent_seconds: float
    """How long nobody has been heard of who works on it."""

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at the present rate; None when that cannot be told."""
        return max(0, self.total - self.done) / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model of the database and the room its vectors take."""

    id: int
    name: str
    dim: int
    is_current: bool
    created_at: datetime
    bytes: int


def under_way(connection: Connection) -> Change | None:
    """The change that has begun and is neither finished nor cancelled."""
    row: Any = connection.execute(statement("reembed/state")).fetchone()
    return None if row is None else Change(EmbeddingModel(*row[:7]), *row[7:])


def note_progress(
    connection: Connection, model: EmbeddingModel, *, done: int, total: int, rate: float, problem: str = ""
) -> bool:
    """Say how far the change has come; False when it was cancelled."""
    values = {"model_id": model.id, "done": done, "total": total, "rate": rate, "problem": problem}
    return connection.execute(statement("reembed/note_progress"), values).fetchone() is not None


def wanting(
    connection: Connection,
    former: EmbeddingModel,
    model: EmbeddingModel,
    kind: Kind,
    after: tuple[str, int],
    limit: int,
) -> Sequence[Key]:
    """The next rows that want a vector of the new model, in the order of their keys."""
    name = "reembed/wanting_turns" if kind is Kind.TURN else "reembed/wanting_memories"
    values = {"theme": after[0], "id": after[1], "limit": limit}
    rows: list[Any] = connection.execute(model_statement(name, model.id, former.id), values).fetchall()
    return [(str(theme), kind.value, int(row_id)) for theme, row_id in rows]


def count(connection: Connection, former: EmbeddingModel, model: EmbeddingModel) -> tuple[int, int]:
    """(rows that have a vector of the new model, rows that want one)."""
    row: Any = connection.execute(model_statement("reembed/count", model.id, former.id)).fetchone()
    return int(row[0]), int(row[1])


def models(connection: Connection) -> list[StoredModel]:
    """All models whose vectors the database holds, the current one first."""
    rows: list[Any] = connection.execute(statement("reembed/models")).fetchall()
    return [StoredModel(*row) for row in rows]
