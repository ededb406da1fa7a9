"""The owner's SQL lives in files under sql/admin, a block for each statement; its first line says what it does.

`admin_statement("schema/ledger")` is the block `ledger` of admin/schema.sql. Names that vary stand in braces. Only
statements of a few words stay beside the code that runs them.
"""

from __future__ import annotations

from functools import cache

from psycopg import sql

from hermes_memory_pgvector.postgres.statements import text_of


@cache
def admin_statement(name: str) -> sql.SQL:
    """A statement of sql/admin, by area and name."""
    return sql.SQL(text_of(f"admin/{name}"))
