"""What an operator wants to know: sizes, roles, extensions, the state of the vector tables. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.values import EmbeddingModel


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
    owns_tables: bool
    pgvector: str | None
    now: datetime
    database_bytes: int


def ping(connection: Connection) -> None:
    """One round trip."""
    connection.execute("SELECT 1").fetchone()


def check_transactions(connection: Connection) -> None:
    """Fail where a pooler refuses transactions of more than one statement."""
    with connection.transaction():
        ping(connection)
        ping(connection)


def read_only_reason(connection: Connection) -> str:
    """Why the database takes no writes; empty where it does."""
    row: Any = connection.execute(statement("overview/read_only")).fetchone()
    is_standby, is_read_only = row
    if is_standby:
        return "it is a standby"
    return "transactions are read-only there" if is_read_only else ""


def server_facts(connection: Connection) -> ServerFacts:
    """The server, its extensions and our role; works before any migration."""
    row: Any = connection.execute(statement("overview/server")).fetchone()
    return ServerFacts(*row)


def contents(connection: Connection, limit: int) -> Contents:
    """How much there is, and the themes that hold the most of it."""
    rows: list[Any] = connection.execute(statement("overview/themes"), {"limit": limit}).fetchall()
    memories, turns, theme_count = rows[0][4:7] if rows else (0, 0, 0)
    return Contents(memories, turns, theme_count, tuple(ThemeRows(*row[:4]) for row in rows))


def count_missing(connection: Connection, model: EmbeddingModel, most: int) -> int:
    """How many rows have no vector of this model, counted up to a bound."""
    row: Any = connection.execute(model_statement("overview/missing_vectors", model.id), {"most": most}).fetchone()
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
