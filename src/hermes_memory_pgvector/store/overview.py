"""What an operator wants to know: sizes, roles, extensions, the state of the vector tables. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store.vectors import Key
from hermes_memory_pgvector.values import EmbeddingModel

CONTRIB = ("pg_trgm", "unaccent", "btree_gin")


@dataclass(frozen=True, slots=True)
class ThemeRows:
    """How much one theme holds."""

    theme: str
    memories: int
    turns: int
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class Contents:
    """How much the database holds."""

    memories: int
    turns: int
    theme_count: int
    themes: tuple[ThemeRows, ...]
    """Those with the most rows."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says of itself and of the role we are."""

    version: str
    database: str
    role: str
    is_superuser: bool
    owns_tables: bool
    pgvector: str | None
    contrib: tuple[str, ...]
    """Which of the optional extensions are available."""
    now: datetime
    database_bytes: int
    may_make_temporary: bool
    """Whether the role may make temporary tables, which it never needs."""
    may_create_in: str | None
    """The schema of our tables, if the role may create anything beside them."""


@dataclass(frozen=True, slots=True)
class Similarities:
    """How near unrelated texts are to each other under the current model."""

    pairs: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Visibility:
    """How much of a vector table an index-only scan can read without visiting the table."""

    table: str
    pages: int
    visible: int

    @property
    def share(self) -> float:
        """From 0 to 1; an empty table has nothing hidden."""
        return min(1.0, self.visible / self.pages) if self.pages else 1.0


def ping(connection: Connection) -> None:
    """One round trip."""
    connection.execute("SELECT 1").fetchone()


def check_transactions(connection: Connection) -> None:
    """Fail where a pooler refuses transactions of more than one statement."""
    with connection.transaction():
        ping(connection)
        ping(connection)


def server_facts(connection: Connection) -> ServerFacts:
    """The server, its extensions and our role; works before any migration."""
    row: Any = connection.execute(statement("overview/server"), {"contrib": list(CONTRIB)}).fetchone()
    version, database, role, is_superuser, owns_tables, pgvector, contrib, now, size, temporary, schema = row
    return ServerFacts(
        version, database, role, is_superuser, owns_tables, pgvector, tuple(contrib), now, int(size), temporary, schema
    )


def contents(connection: Connection, limit: int) -> Contents:
    """How much there is, and the themes that hold the most of it."""
    rows: list[Any] = connection.execute(statement("overview/themes"), {"limit": limit}).fetchall()
    memories, turns, theme_count = rows[0][4:7] if rows else (0, 0, 0)
    return Contents(memories, turns, theme_count, tuple(ThemeRows(*row[:4]) for row in rows))


def similarities(connection: Connection, model: EmbeddingModel, sample: int) -> Similarities | None:
    """The similarity of random pairs of stored texts; None when there are too few to tell."""
    values = {"sample": sample}
    row: Any = connection.execute(model_statement("overview/similarities", model.id), values).fetchone()
    return Similarities(int(row[0]), *(float(value) for value in row[1:4])) if row is not None else None


def visibility(connection: Connection, model: EmbeddingModel) -> list[Visibility]:
    """The visibility maps of the current model's tables."""
    names = [f"memory_vectors_{model.id}", f"turn_vectors_{model.id}"]
    rows: list[Any] = connection.execute(statement("overview/visibility"), {"tables": names}).fetchall()
    return [Visibility(*row) for row in rows]


def count_missing(connection: Connection, model: EmbeddingModel, most: int) -> int:
    """How many rows have no vector of this model, counted up to a bound."""
    row: Any = connection.execute(model_statement("overview/missing_vectors", model.id), {"most": most}).fetchone()
    return int(row[0])


def missing_memories(
    connection: Connection, model: EmbeddingModel, theme: str | None, before_id: int | None, limit: int
) -> list[Key]:
    """Memories without a vector of this model, newest first, below an id."""
    values = {"theme": theme, "before_id": before_id, "limit": limit}
    rows: list[Any] = connection.execute(model_statement("vectors/missing_of_memories", model.id), values).fetchall()
    return [(str(theme), "memory", int(row_id)) for theme, row_id in rows]


def missing_turns(
    connection: Connection, model: EmbeddingModel, theme: str | None, before_id: int | None, limit: int
) -> list[tuple[Key, int]]:
    """Turns without a vector of this model, with their lengths, newest first, below an id."""
    values = {"theme": theme, "before_id": before_id, "limit": limit}
    rows: list[Any] = connection.execute(model_statement("vectors/missing_of_turns", model.id), values).fetchall()
    return [((str(theme), "turn", int(row_id)), int(length)) for theme, row_id, length in rows]


def count_pending(connection: Connection, theme: str | None) -> int:
    """How many rows of a theme, or of all, are waiting for a vector."""
    row: Any = connection.execute(statement("overview/pending_vectors"), {"theme": theme}).fetchone()
    return int(row[0])


def entries_held(connection: Connection, home_id: str, target: str) -> set[str]:
    """The memories that came from this home's file of that kind."""
    values = {"home_id": home_id, "target": target}
    return {str(row[1]) for row in connection.execute(statement("mirror/held"), values).fetchall()}


def theme_names(connection: Connection) -> list[str]:
    """The themes that have turns."""
    rows: list[Any] = connection.execute(statement("overview/theme_names")).fetchall()
    return [str(theme) for (theme,) in rows]


def masked_secrets(connection: Connection) -> dict[str, int]:
    """How many secrets were masked in what is stored, by kind; the most frequent first."""
    rows: list[Any] = connection.execute(statement("overview/redacted")).fetchall()
    return {str(kind): int(found) for kind, found in rows}
