"""What a database holds as counts and checksums, theme by theme, so that a copy of it can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from psycopg import IsolationLevel

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement

Sums = Mapping[str, Mapping[str, list[Any]]]
"""By table and theme, the number of rows and the sum of their checksums; tables without themes have one, ""."""


@contextmanager
def exported_snapshot(connection: Connection) -> Iterator[str]:
    """A state of the database that does not change, and the name by which pg_dump sees the same one."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        with connection.transaction():
            row: Any = connection.execute(statement("backup/snapshot")).fetchone()
            yield str(row[0])
    finally:
        connection.isolation_level = None
        connection.read_only = None


def of(connection: Connection) -> dict[str, dict[str, list[Any]]]:
    """The sums of every table that holds what was stored."""
    found: dict[str, dict[str, list[Any]]] = {}
    rows: list[Any] = connection.execute(statement("backup/theme_sums")).fetchall()
    models: list[Any] = connection.execute(statement("backup/models")).fetchall()
    for (model_id,) in models:
        more: list[Any] = connection.execute(model_statement("backup/vector_sums", int(model_id))).fetchall()
        rows += [(f"{table}_{model_id}", theme, count, total) for table, theme, count, total in more]
    for table, theme, count, total in rows:
        found.setdefault(table, {})[theme] = [int(count), total]
    others: list[Any] = connection.execute(statement("backup/other_sums")).fetchall()
    for table, count, total in others:
        found[table] = {"": [int(count), total]}
    return found


def differences(before: Sums, after: Sums) -> list[str]:
    """Where two databases differ, as table and theme; empty when they hold the same."""
    return [
        f"{table}, {theme}" if theme else table
        for table in sorted({*before, *after})
        for theme in sorted({*before.get(table, {}), *after.get(table, {})})
        if list(before.get(table, {}).get(theme, [])) != list(after.get(table, {}).get(theme, []))
    ]
