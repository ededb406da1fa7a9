"""Where a page begins: behind a row that the page before has named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.terminal import parse

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection


def place_of(connection: Connection, page: str | None, theme: str | None) -> str | None:
    """The place behind a memory or turn, with its time; None for the first page."""
    from hermes_memory_pgvector.care import ids, see
    from hermes_memory_pgvector.store.browse import StoredMemory

    if page is None:
        return None
    name = parse.record_name(page)
    if name is None or name.letter not in "mt":
        raise UsageError(f"{page!r} is no page; take it from the end of the page before")
    row = see.find(connection, ids.parse_row(str(name)), theme)
    at = row.updated_at if isinstance(row, StoredMemory) else row.at
    return f"{at.isoformat()}~{name}"


def name_of_place(place: str | None) -> str | None:
    """The name of the row that a place stands behind."""
    return None if place is None else place.rpartition("~")[2]
