"""Looking into the memory: lists in pages, single rows with all that is known of them, sessions, transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hermes_memory_pgvector.care import ids, themes
from hermes_memory_pgvector.care.ids import RowName, name_of
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import browse, hidden, history, timeline
from hermes_memory_pgvector.store.browse import Delegation, Place, Row, Said, SessionRow, StoredMemory, StoredTurn
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.hidden import Hiding
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.values import Kind

LAST_ID = 2**63 - 1
TURNS_BEFORE = 10
"""How much of a long session stands before the turn that somebody wants to see."""
BOTH = (Kind.MEMORY, Kind.TURN)


class AmbiguousName(CareError):
    """A number that a memory and a turn both have."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list, and where the next page begins; None when this is the last."""

    rows: tuple[Row, ...]
    following: str | None


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, and where the next page begins."""

    rows: tuple[SessionRow, ...]
    following: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is known of one memory or turn."""

    row: StoredMemory | StoredTurn
    model: str | None
    """The model in use, if there is one."""
    vectors: int
    """How many vectors of that model it has."""
    history: tuple[Event, ...]
    """What happened to a memory, oldest first; a turn has none."""
    hiding: Hiding | None = None
    """What hides it."""

    @property
    def name(self) -> str:
        """How people name it."""
        return name_of(Kind.MEMORY if isinstance(self.row, StoredMemory) else Kind.TURN, self.row.id)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session in order, with the sessions that worked for it and those it worked for."""

    theme: str
    session_id: str
    turns: tuple[Said, ...]
    children: tuple[Delegation, ...]
    parents: tuple[Delegation, ...]
    following: str | None
    begins_later: bool = False
    """Whether turns before the first of these were left out, to show the one that was asked for."""


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
    is_hidden: bool | None = None,
) -> Page:
    """Memories and turns, newest first; `origin` is one of values.NAMED_ORIGINS."""
    if theme is not None:
        themes.require(connection, theme)
    start = None if until is None else Place(until)
    if page is not None:
        kind, place = _parse_page(page)
        start = Place(place.at, place.id, kind)
    found = browse.rows(
        connection, kinds=kinds, theme=theme, since=since, before=start, limit=limit + 1, origin=origin,
        is_hidden=is_hidden,
    )  # fmt: skip
    shown = tuple(found[:limit])
    return Page(shown, _page_text(shown[-1].at, shown[-1].kind, shown[-1].id) if len(found) > limit else None)


def sessions(
    connection: Connection,
    theme: str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    page: str | None = None,
    limit: int = 20,
) -> SessionPage:
    """The sessions of a theme or of all, last used first."""
    if theme is not None:
        themes.require(connection, theme)
    before = _before(Kind.TURN, None if page is None else _parse_page(page), until)
    found = browse.sessions(connection, theme, since, before, limit + 1)
    shown = tuple(found[:limit])
    return SessionPage(shown, _page_text(shown[-1].last, Kind.TURN, shown[-1].last_id) if len(found) > limit else None)


def transcript(
    connection: Connection,
    session_id: str,
    *,
    theme: str | None = None,
    page: str | None = None,
    limit: int = 200,
    showing: RowName | None = None,
) -> Transcript:
    """A session in order; sessions of the same name in several themes must be told apart.

    `showing` names a turn that the first page has to hold: in a long session it begins a little before that turn.
    """
    if theme is not None:
        themes.require(connection, theme)
    found = browse.session_themes(connection, session_id)
    if theme is None and len(found) > 1:
        raise CareError(f"session {session_id} is in several themes; add --theme {' or --theme '.join(found)}")
    if not found or (theme is not None and theme not in found):
        where = f" in theme {theme}" if theme is not None else ""
        raise CareError(f"there is no session {session_id}{where}; `list sessions` shows them")
    inside = theme or found[0]
    start = None
    if page is not None:
        _, start = _parse_page(page)
    elif showing is not None:
        start = _start_before(connection, inside, session_id, showing, limit)
    turns = browse.transcript(connection, inside, session_id, start, limit + 1)
    edges = browse.delegations(connection, inside, session_id)
    shown = tuple(turns[:limit])
    return Transcript(
        inside,
        session_id,
        shown,
        tuple(edge for edge in edges if edge.session_id == session_id),
        tuple(edge for edge in edges if edge.child_session_id == session_id),
        _page_text(shown[-1].at, Kind.TURN, shown[-1].id) if len(turns) > limit else None,
        page is None and start is not None,
    )


def find(connection: Connection, name: RowName, theme: str | None = None) -> StoredMemory | StoredTurn:
    """The row that a name means; an error when there is none, or one of each kind."""
    if theme is not None:
        themes.require(connection, theme)
    memory = browse.find_memory(connection, name.id, theme) if name.kind is not Kind.TURN else None
    turn = browse.find_turn(connection, name.id, theme) if name.kind is not Kind.MEMORY else None
    if memory is not None and turn is not None:
        raise AmbiguousName(f"{name} may be memory m{name.id} or turn t{name.id}: say which")
    found = memory or turn
    if found is None:
        where = f" in theme {theme}" if theme is not None else ""
        raise CareError(f"there is no {_noun(name.kind)} {name}{where}; it may have been deleted")
    return found


def show(connection: Connection, name: RowName, theme: str | None = None) -> Shown:
    """Everything about one row."""
    row = find(connection, name, theme)
    model = current_model(connection)
    kind = Kind.MEMORY if isinstance(row, StoredMemory) else Kind.TURN
    vectors = 0 if model is None else browse.count_vectors(connection, model, kind, row.theme, row.id)
    told: tuple[Event, ...] = ()
    if isinstance(row, StoredMemory):
        events, _ = history.of_theme(connection, row.theme, row.target)
        told = timeline.lineage(events, row.content)
    hiding = None if row.hidden_by is None else hidden.find(connection, row.hidden_by)
    return Shown(row, None if model is None else model.name, vectors, told, hiding)


def _start_before(connection: Connection, theme: str, session_id: str, turn: RowName, limit: int) -> Place | None:
    """The place after which a page begins that holds a turn; None for the beginning of the session."""
    before = browse.places_before(connection, theme, session_id, turn.id, limit)
    return before[TURNS_BEFORE] if len(before) == limit > TURNS_BEFORE else None


def _noun(kind: Kind | None) -> str:
    return "row" if kind is None else kind.value


def _before(kind: Kind, start: tuple[Kind, Place] | None, until: datetime | None) -> Place | None:
    """Where the rows of a kind begin: at the same time, turns stand before memories."""
    if start is None:
        return None if until is None else Place(until, 0)
    of, place = start
    if kind is of:
        return place
    return Place(place.at, 0 if kind is Kind.TURN else LAST_ID)


def _page_text(at: datetime, kind: Kind, row_id: int) -> str:
    return f"{_time_text(at)}~{name_of(kind, row_id)}"


def _parse_page(text: str) -> tuple[Kind, Place]:
    when, _, name = text.partition("~")
    row = ids.parse_row(name or "?")
    if row.kind is None:
        raise CareError(f"{text!r} is no page; take it from the end of the page before")
    return row.kind, Place(_parse_time(when), row.id)


def _parse_time(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise CareError(f"{text!r} is no page; take it from the end of the page before") from None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def _time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
