"""What an operator wants to know: sizes, roles, extensions, the state of the vector tables. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import admin_statement, one, run


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
    is_standby, is_read_only = one(connection, "overview/read_only")
    if is_standby:
        return "it is a standby"
    return "transactions are read-only there" if is_read_only else ""


def server_facts(connection: Connection) -> ServerFacts:
    """The server, its extensions and our role; works before any migration."""
    return ServerFacts(*one(connection, "overview/server"))


def workers(connection: Connection) -> int:
    """How many servers of a Citus cluster take buckets of this database."""
    installed: Any = connection.execute(admin_statement("cluster/is_installed")).fetchone()
    counted: Any = connection.execute(admin_statement("cluster/workers")).fetchone() if installed[0] else (0,)
    return int(counted[0])


def not_handed_out(connection: Connection, schemas: Sequence[str]) -> int:
    """How many of these buckets lie on the coordinator although it has workers."""
    return len(connection.execute(admin_statement("cluster/undistributed"), (list(schemas),)).fetchall())


def contents(connection: Connection, limit: int) -> Contents:
    """How much there is, and the themes that hold the most of it."""
    rows = run(connection, "overview/themes", limit=limit).fetchall()
    memories, turns, theme_count = rows[0][4:7] if rows else (0, 0, 0)
    return Contents(memories, turns, theme_count, tuple(ThemeRows(*row[:4]) for row in rows))


def masked_secrets(connection: Connection) -> dict[str, int]:
    """How many secrets were masked in what is stored, by kind; the most frequent first."""
    return dict(run(connection, "overview/redacted").fetchall())
