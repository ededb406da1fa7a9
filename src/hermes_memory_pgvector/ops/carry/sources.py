"""Memories and turns that lie in files of a home, in another memory's store, or in another database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.capture.transcript import metadata_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import ConfigError, SchemaError
from hermes_memory_pgvector.mirror import memory_file
from hermes_memory_pgvector.ops.carry import export
from hermes_memory_pgvector.ops.carry.intake import Found
from hermes_memory_pgvector.ops.carry.lines import memory
from hermes_memory_pgvector.ops.carry.past import PAGE_ROWS
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.text.clean import capped, text_of
from hermes_memory_pgvector.values import Target

FACTS = (
    "SELECT fact_id, content, category, tags, trust_score, coalesce(created_at, updated_at) FROM facts"
    " WHERE fact_id > ? ORDER BY fact_id LIMIT ?"
)


def entries(folder: Path, theme: str, settings: Settings) -> Iterator[Found]:
    """The entries of a MEMORY.md and a USER.md, as old as their file."""
    for target, name in memory_file.FILE_NAMES.items():
        path = folder / name
        if not path.is_file():
            continue
        found = memory_file.read(path, settings.memory_max_chars)
        if found is None:
            raise ConfigError(f"{path} cannot be read")
        at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        yield from (Found(memory(theme, target, entry, at, {})) for entry in found)


def facts(store: sqlite3.Connection, theme: str, settings: Settings) -> Iterator[Found]:
    """The facts of the Holographic memory."""
    last = -1
    while page := store.execute(FACTS, (last, PAGE_ROWS)).fetchall():
        last = page[-1][0]
        for _, content, category, tags, trust, created in page:
            kept = {"category": category, "tags": tags, "trust_score": trust}
            words = capped(text_of(content), settings.memory_max_chars)
            told = {"imported_from": "holographic", **{key: each for key, each in kept.items() if each}}
            if words:
                target: Target = "user" if str(category).startswith("user") else "memory"
                yield Found(memory(theme, target, words, _time(created), metadata_of(told)))


def rows(connection: Connection, theme: str | None) -> Iterator[dict[str, Any]]:
    """The memories and turns of another database, ours or the published package's, as lines of an export."""
    found: Any = connection.execute(statement("carry/tables")).fetchone()
    is_ours, is_known = found
    if is_ours:
        yield from export.documents(connection, theme, with_hidden=True)
        return
    if not is_known:
        raise SchemaError("the database has neither our tables nor those of the published package in its search_path")
    with connection.cursor(name="hermes_import") as cursor:
        cursor.itersize = PAGE_ROWS
        rows_: Any = cursor.execute(statement("carry/published_rows"), {"theme": theme})
        yield from (export.document(*row) for row in rows_)


def _time(value: Any) -> datetime:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return datetime.now(UTC)
    return min(at if at.tzinfo is not None else at.replace(tzinfo=UTC), datetime.now(UTC))
