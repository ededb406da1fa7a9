"""`import peer`: another database of ours, or one of the published package, read as lines of an export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import carried, schema, taking_along
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.text.clean import clean
from hermes_memory_pgvector.transfer import export
from hermes_memory_pgvector.values import RowOrigin

Line = tuple[int, dict[str, Any]]


def lines(connection: Connection, theme: str | None = None) -> Iterator[Line]:
    """Every row of the other database, or of one theme; vectors come along where both use the same model.

    Both databases are the operator's, so what was forgotten there stays forgotten here, if the login may see it.
    """
    version = _version(connection)
    if version is not None:
        rows = export.documents(
            connection,
            theme,
            schema=version,
            model=current_model(connection),
            with_forgotten=carried.may_read(connection),
        )
    else:
        rows = (row for row in _published(connection) if theme in (None, row["theme"]))
    yield from enumerate(rows, start=1)


def _version(connection: Connection) -> int | None:
    """The schema's version where it is ours; a login that may only read will do."""
    try:
        return schema.readable_version(connection)
    except SchemaError as error:
        if "may not write" in str(error):
            return schema.wanted_version()
        if "no schema of ours" in str(error):
            return None
        raise


def _published(connection: Connection) -> Iterator[dict[str, Any]]:
    if not taking_along.has_tables(connection):
        raise SchemaError(
            "the other database has neither our tables nor those of the published package in its search_path"
        )
    for theme, target, content, created, updated, metadata in taking_along.peer_memories(connection):
        yield {
            "kind": "memory", "theme": theme, "target": target, "content": clean(content),
            "created_at": export.time_text(created), "updated_at": export.time_text(updated), "metadata": metadata,
            "origin": RowOrigin.IMPORT.value,
        }  # fmt: skip
    for theme, session_id, role, content, at, metadata, ordinal in taking_along.peer_turns(connection):
        if content:
            yield {
                "kind": "turn", "theme": theme, "session": session_id, "role": role, "content": clean(content),
                "at": export.time_text(at), "ordinal": ordinal, "metadata": metadata,
                "origin": RowOrigin.IMPORT.value,
            }  # fmt: skip
