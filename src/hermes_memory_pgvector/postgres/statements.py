"""SQL lives in files under sql/, one per area. A block in it is a statement; its first line says what it does.

A block begins with a line `-- insert --`, and `statement("turns/insert")` is that of queries/turns.sql. No statement is
assembled in Python. Only the vector tables vary, because each embedding model has its own: a statement names them
`{memory_vectors}` and `{turn_vectors}`. Searching has one statement made of parts, see
store/search_statement.py.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any, LiteralString, cast

import psycopg
from psycopg import sql

FOLDER = resources.files("hermes_memory_pgvector") / "sql"

_HEAD = re.compile(r"^-- (\w+) --$", re.MULTILINE)


@cache
def statement(name: str) -> sql.SQL:
    """A statement of sql/queries, by area and name."""
    return sql.SQL(text_of(f"queries/{name}"))


@cache
def admin_statement(name: str) -> sql.SQL:
    """A statement of sql/admin, which takes the owner's login; names that vary stand in braces."""
    return sql.SQL(text_of(f"admin/{name}"))


@cache
def model_statement(name: str, model_id: int) -> sql.Composed:
    """A statement of sql/queries, on the vector tables of one embedding model."""
    return sql.SQL(text_of(f"queries/{name}")).format(**vector_tables(model_id))


def run(
    connection: psycopg.Connection[Any], name: str, model_id: int | None = None, /, **values: Any
) -> psycopg.Cursor[Any]:
    """Send a statement of sql/queries with these values; its rows are in the cursor."""
    text = statement(name) if model_id is None else model_statement(name, model_id)
    return connection.execute(text, values or None)


def one(connection: psycopg.Connection[Any], name: str, model_id: int | None = None, /, **values: Any) -> Any:
    """The first row that a statement answers; None without one."""
    return run(connection, name, model_id, **values).fetchone()


def vector_tables(model_id: int) -> dict[str, sql.Identifier]:
    """The names of a model's vector tables."""
    return {
        "memory_vectors": sql.Identifier(f"memory_vectors_{model_id}"),
        "turn_vectors": sql.Identifier(f"turn_vectors_{model_id}"),
    }


def text_of(name: str) -> LiteralString:
    """The text of a statement: queries/turns/insert is the block `insert` of queries/turns.sql."""
    area, _, block = name.rpartition("/")
    return blocks(area)[block]


@cache
def blocks(area: str) -> dict[str, LiteralString]:
    """The statements of a file, by name."""
    _, *named = cast("list[LiteralString]", _HEAD.split(read_sql(f"{area}.sql")))
    return {str(name): text.strip() for name, text in zip(named[::2], named[1::2], strict=True)}


def read_sql(path: str) -> LiteralString:
    """A file under sql/."""
    # The files ship with the package and are reviewed like code, which is what LiteralString asks for.
    return FOLDER.joinpath(path).read_text(encoding="utf-8")
