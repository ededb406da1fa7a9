"""The owner's SQL lives in files under sql/admin, one statement each; the first line says what it does.

A statement's name is its path there: `admin_statement("schema/ledger")`. Names that vary stand in braces. Only
statements of a few words stay beside the code that runs them.
"""

from __future__ import annotations

from functools import cache
from typing import LiteralString

from psycopg import sql

from hermes_memory_pgvector.store.statements import FOLDER


@cache
def admin_statement(name: str) -> sql.SQL:
    """The statement in admin/<name>.sql."""
    return sql.SQL(sql_text(f"admin/{name}.sql"))


def sql_text(path: str) -> LiteralString:
    """A file under sql/."""
    # The files ship with the package and are reviewed like code, which is what LiteralString asks for.
    return FOLDER.joinpath(path).read_text(encoding="utf-8")
