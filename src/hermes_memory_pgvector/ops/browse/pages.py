"""Lists and transcripts in pages: a page begins behind the row that the page before has named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops import known_themes, row
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import browse
from hermes_memory_pgvector.store.browse import Delegation, ListPlace, Row, SessionRow, StoredMemory, StoredTurn
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.values import Kind

BOTH = (Kind.MEMORY, Kind.TURN)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session in order, with the sessions that worked for it and those it worked for."""

    theme: str
    session_id: str
    turns: tuple[StoredTurn, ...]
    children: tuple[Delegation, ...]
    parents: tuple[Delegation, ...]
    following: str | None


def rows(
    connection: Connection,
    *,
    kinds: Sequence[Kind] = BOTH,
    theme: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    page: str | None = None,
    limit: int = 20,
    origin: str | None = None,
) -> tuple[list[Row], str | None]:
    """Memories and turns, newest first, and the next page; `origin` is one of values.NAMED_ORIGINS."""
    if theme is not None:
        known_themes.require(connection, theme)
    start = _start(connection, page, theme, until)
    found = browse.rows(connection, kinds=kinds, theme=theme, since=since, before=start, limit=limit + 1, origin=origin)
    shown = found[:limit]
    return shown, row.name_of(shown[-1].kind, shown[-1].id) if len(found) > limit else None


def sessions(
    connection: Connection,
    theme: str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    page: str | None = None,
    limit: int = 20,
) -> tuple[list[SessionRow], str | None]:
    """The sessions of a theme or of all, last used first, and the next page."""
    if theme is not None:
        known_themes.require(connection, theme)
    found = browse.sessions(connection, theme, since, _start(connection, page, theme, until), limit + 1)
    shown = found[:limit]
    return shown, row.name_of(Kind.TURN, shown[-1].last_id) if len(found) > limit else None


def transcript(connection: Connection, session_id: str, theme: str | None, page: str | None, limit: int) -> Transcript:
    """A session in order; sessions of the same name in several themes must be told apart."""
    if theme is not None:
        known_themes.require(connection, theme)
    found = browse.session_themes(connection, session_id)
    if theme is None and len(found) > 1:
        raise CareError(f"session {session_id} is in several themes; add --theme {' or --theme '.join(found)}")
    if not found or (theme is not None and theme not in found):
        where = f" in theme {theme}" if theme is not None else ""
        raise CareError(f"there is no session {session_id}{where}; `list sessions` shows them")
    inside = theme or found[0]
    turns = browse.transcript(connection, inside, session_id, _start(connection, page, theme), limit + 1)
    edges = browse.delegations(connection, inside, session_id)
    shown = tuple(turns[:limit])
    return Transcript(
        inside,
        session_id,
        shown,
        tuple(edge for edge in edges if edge.session_id == session_id),
        tuple(edge for edge in edges if edge.child_session_id == session_id),
        row.name_of(Kind.TURN, shown[-1].id) if len(turns) > limit else None,
    )


def _start(
    connection: Connection, page: str | None, theme: str | None, until: datetime | None = None
) -> ListPlace | None:
    """The place of the row that a page stands behind; the first page begins where the list does."""
    if page is None:
        return None if until is None else ListPlace(until)
    name = parse.record_name(page)
    if name is None or name.letter not in "mt":
        raise UsageError(f"{page!r} is no page; take it from the end of the page before")
    found = row.find(connection, name, theme)
    if isinstance(found, StoredMemory):
        return ListPlace(found.updated_at, found.id, Kind.MEMORY)
    return ListPlace(found.at, found.id, Kind.TURN)
