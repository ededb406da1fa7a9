"""SQL lives in files under sql/queries, one statement each, in a folder per area; the first line says what it does.

A statement's name is its path there: `statement("turns/insert")`. No statement is assembled in Python. Only the vector
tables vary, because each embedding model has its own: a file names them `{memory_vectors}` and `{turn_vectors}`; a
search names the table it searches `{source}`. A change from one model to another names the former one's
`{former_turn_vectors}` and `{former_memory_vectors}`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import LiteralString

from psycopg import sql

FOLDER = resources.files("hermes_memory_pgvector") / "sql"

SEARCHED = {"search/turns": ("conversations", "turn_vectors"), "search/memories": ("memory_entries", "memory_vectors")}
"""Which table a search by words alone reads, and which of a model's vector tables every other search."""


@cache
def statement(name: str) -> sql.SQL:
    """The statement in queries/<name>.sql."""
    return sql.SQL(_read(f"queries/{name}.sql"))


@cache
def model_statement(name: str, model_id: int, former_id: int | None = None) -> sql.Composed:
    """The statement in queries/<name>.sql, on the vector tables of one embedding model, or of that and a former one."""
    former = {f"former_{table}": each for table, each in vector_tables(former_id or model_id).items()}
    return sql.SQL(_read(f"queries/{name}.sql")).format(**vector_tables(model_id), **former)


@cache
def search_statement(name: str, model_id: int | None) -> sql.Composed:
    """The search in queries/<name>.sql, in a model's vectors, or by words alone without a model."""
    texts, vectors = SEARCHED[name]
    source = sql.Identifier(texts) if model_id is None else vector_tables(model_id)[vectors]
    return sql.SQL(_read(f"queries/{name}.sql")).format(source=source)


def vector_tables(model_id: int) -> dict[str, sql.Identifier]:
    """The names of a model's vector tables."""
    return {
        "memory_vectors": sql.Identifier(f"memory_vectors_{model_id}"),
        "turn_vectors": sql.Identifier(f"turn_vectors_{model_id}"),
    }


def _read(path: str) -> LiteralString:
    # The files ship with the package and are reviewed like code, which is what LiteralString asks for.
    return FOLDER.joinpath(path).read_text(encoding="utf-8")
