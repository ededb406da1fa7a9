"""SQL lives in files: one statement each, its first line saying what it answers.

No statement is assembled in Python. The only thing that varies is the pair of vector tables, which belong to an
embedding model: a file names them `{memory_vectors}` and `{turn_vectors}`; a search names what it searches `{source}`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import LiteralString

from psycopg import sql

FOLDER = resources.files("hermes_memory_pgvector") / "sql"

SEARCHED = {"search_turns": ("conversations", "turn_vectors"), "search_memories": ("memory_entries", "memory_vectors")}
"""What a search looks at: texts for words alone, else a model's vectors."""


@cache
def statement(name: str) -> sql.SQL:
    """The statement in queries/<name>.sql."""
    return sql.SQL(_read(f"queries/{name}.sql"))


@cache
def model_statement(name: str, model_id: int) -> sql.Composed:
    """The statement in queries/<name>.sql, for the vector tables of one embedding model."""
    return sql.SQL(_read(f"queries/{name}.sql")).format(**vector_tables(model_id))


@cache
def search_statement(name: str, model_id: int | None) -> sql.Composed:
    """The search in queries/<name>.sql, in a model's vectors, or by words alone where there is no model."""
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
