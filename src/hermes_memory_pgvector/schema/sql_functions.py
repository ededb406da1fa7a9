"""The SQL functions that triggers use: one file each in sql/functions, created anew by every migration."""

from __future__ import annotations

from collections.abc import Collection

import psycopg
from psycopg import sql

from hermes_memory_pgvector.postgres.statements import FOLDER, read_sql


def shared_functions(schema: str) -> sql.Composed:
    """The functions; they need no table yet."""
    names = {"schema": sql.Identifier(schema), "schema_name": sql.Literal(schema)}
    return sql.SQL("\n").join(sql.SQL(read_sql(f"functions/{file}")).format(**names) for file in _files())


def drop_functions(connection: psycopg.Connection, only: Collection[str] = ()) -> None:
    """Drop the functions that will be created anew, whatever their arguments; those a table depends on are replaced."""
    names = only or {f"hermes_{file.removesuffix('.sql')}" for file in _files()}
    connection.execute(sql.SQL(read_sql("drop_functions.sql")).format(names=sql.Literal(sorted(names))))


def _files() -> list[str]:
    names = (file.name for file in FOLDER.joinpath("functions").iterdir())
    return sorted(name for name in names if name.endswith(".sql"))
