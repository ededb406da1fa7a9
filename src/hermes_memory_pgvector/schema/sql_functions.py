"""The SQL functions: one file each in sql/functions, created anew by every migration.

functions/*.sql are created once, before the tables, because indexes and triggers use some of them. per_kind/*.sql are
created twice, for turns and for memories; per_model/*.sql twice for every embedding model. The type of the first
argument says which one is meant: NULL::conversations, NULL::turn_vectors_1. Searches are functions so that Postgres
plans their statements once per connection, and callers need no settings around them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.postgres.statements import FOLDER, read_sql


@dataclass(frozen=True, slots=True)
class Kind:
    """What differs between turns and memories, as the files name it."""

    table: LiteralString
    ts: LiteralString
    place: LiteralString
    """The column that `narrow` filters by."""
    role: LiteralString
    """Who said row `r`."""
    step: LiteralString
    """How much each further hit from the same place loses."""
    session_bits: LiteralString
    """The terms that the session of candidate `m` contains, where there are sessions."""
    vectors: LiteralString
    content_hash: LiteralString
    """Equal for vectors `v` of the same text."""
    narrowed: LiteralString
    """Whether vector `v` lies in one of the places asked for."""


TURNS = Kind(
    table="conversations",
    ts="ts",
    place="session_id",
    role="r.role",
    step="0.007",
    session_bits="bit_or(m.bits) OVER (PARTITION BY m.agent_identity, m.place)",
    vectors="turn_vectors",
    content_hash="v.content_hash",
    narrowed="""(narrow IS NULL OR v.id = ANY (ARRAY(
                        SELECT c.id FROM {table} AS c
                        WHERE c.agent_identity = theme AND c.session_id = ANY (narrow))))""",
)
MEMORIES = Kind(
    table="memory_entries",
    ts="updated_at",
    place="target",
    role="NULL::text",
    step="0",
    session_bits="0",
    vectors="memory_vectors",
    content_hash="v.id",
    narrowed="(narrow IS NULL OR v.target = ANY (narrow))",
)


def shared_functions(schema: str) -> sql.Composed:
    """The functions that do not depend on a kind of row or a model; they need no table yet."""
    return sql.SQL("\n").join(_rendered("", _schema_names(schema)))


def kind_functions(schema: str) -> sql.Composed:
    """Keyword search, for turns and for memories."""
    return sql.SQL("\n").join(
        file for kind in (TURNS, MEMORIES) for file in _rendered("per_kind", {**_names(kind), **_schema_names(schema)})
    )


def model_functions(model_id: int) -> sql.Composed:
    """Vector search in a model's tables."""
    return sql.SQL("\n").join(
        file
        for kind in (TURNS, MEMORIES)
        for file in _rendered("per_model", {**_names(kind), **_vector_names(kind, model_id)})
    )


def drop_functions(connection: psycopg.Connection, only: Collection[str] = ()) -> None:
    """Drop the functions that will be created anew, whatever their arguments; those a table depends on are replaced."""
    names = only or {
        f"hermes_{file.removesuffix('.sql')}" for folder in ("", "per_kind", "per_model") for file in _files(folder)
    }
    connection.execute(sql.SQL(read_sql("drop_functions.sql")).format(names=sql.Literal(sorted(names))))


def _schema_names(schema: str) -> dict[str, sql.Composable]:
    return {"schema": sql.Identifier(schema), "schema_name": sql.Literal(schema)}


def _vector_names(kind: Kind, model_id: int) -> dict[str, sql.Composable]:
    name = sql.Identifier(f"{kind.vectors}_{model_id}")
    return {"vector_row": name, "vectors": name}


def _names(kind: Kind) -> dict[str, sql.Composable]:
    """`text_row` is the type that says which function is meant, `table` is what it reads."""
    return {
        "text_row": sql.Identifier(kind.table),
        "table": sql.Identifier(kind.table),
        "table_name": sql.Literal(kind.table),
        "ts": sql.Identifier(kind.ts),
        "place": sql.Identifier(kind.place),
        "role": sql.SQL(kind.role),
        "step": sql.SQL(kind.step),
        "session_bits": sql.SQL(kind.session_bits),
        "content_hash": sql.SQL(kind.content_hash),
        "narrowed": sql.SQL(kind.narrowed).format(table=sql.Identifier(kind.table)),
    }


def _rendered(folder: str, names: dict[str, sql.Composable]) -> list[sql.Composed]:
    return [sql.SQL(read_sql(f"functions/{folder}/{file}")).format(**names) for file in _files(folder)]


def _files(folder: str) -> list[str]:
    names = (file.name for file in FOLDER.joinpath("functions", folder).iterdir())
    return sorted(name for name in names if name.endswith(".sql"))
