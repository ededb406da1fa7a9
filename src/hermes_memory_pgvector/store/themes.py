"""The themes of a database."""

from __future__ import annotations

from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement


def theme_names(connection: Connection) -> list[str]:
    """Every theme that holds rows."""
    rows: list[Any] = connection.execute(statement("browse/theme_names")).fetchall()
    return [str(row[0]) for row in rows]
