"""What is stored, as people look through it: themes, lists, sessions, single rows. Reads, and adds up counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.values import EmbeddingModel, Kind, Role, Target


@dataclass(frozen=True, slots=True)
class Theme:
    """How much a theme holds, how it grows, and when it was last used."""

    theme: str = column("theme")
    memories: int = column("memories", right=True, default=0)
    turns: int = column("turns", right=True, default=0)
    new_today: int = column("today", right=True, default=0, show=lambda value: f"{value:+,}" if value else None)
    """Rows of both kinds with a time of today; UTC."""
    new_this_week: int = column("7 days", right=True, default=0, show=lambda value: f"{value:+,}" if value else None)
    """The same for the last seven days."""
    last_write: datetime | None = column("last write", show=amounts.ago)
    last_recall: datetime | None = column("last recall", show=amounts.ago)
    """As far as the recall log goes back."""
    is_private: bool = column("private", rare=True, default=False)
    hidden: int = column("hidden", right=True, rare=True, default=0)


@dataclass(frozen=True, slots=True)
class DayCount:
    """What came on a day; UTC."""

    day: date = column("day")
    memories: int = column("memories", right=True, default=0)
    turns: int = column("turns", right=True, default=0)
    untrusted: int = aside(0)
    """Of both kinds, those that a stranger's text may have shaped, and that are not hidden."""
    hidden: int = aside(0)


@dataclass(frozen=True, slots=True)
class Row:
    """A memory or a turn, as the view hermes_rows has it."""

    kind: Kind
    id: int
    theme: str
    at: datetime
    """When a turn was said; when a memory was last changed."""
    content: str
    whose: str
    """memory or user; of a turn, who said it."""
    session_id: str | None = None
    hidden_by: int | None = None
    origin: str = "unknown"
    untrusted: bool = False
    home_id: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in a list."""

    session_id: str = column("session")
    theme: str = column("theme")
    turns: int = column("turns", right=True, default=0)
    last: datetime | None = column("last (UTC)")
    delegations: int = column("subagents", right=True, rare=True, default=0)
    begins_with: str = column("begins with", text=True)
    """The beginning of the first thing the user said."""
    first: datetime | None = None
    parent_session_id: str | None = None
    last_id: int = aside(0)
    """The turn it was last used with."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """One session that worked for another."""

    session_id: str
    child_session_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """Everything about one memory but its history."""

    theme: str
    id: int
    target: Target
    content: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any]
    hidden_by: int | None
    pending_attempts: int | None
    """How often a vector was tried for; None when none is waited for."""
    origin: str
    untrusted: bool
    home_id: str | None
    """The home that wrote it first, where that is known."""
    homes: Mapping[str, str]
    """The homes that hold it, and whether each reported it by tool or by file."""


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """Everything about one turn."""

    theme: str
    id: int
    session_id: str
    role: Role
    content: str
    at: datetime
    metadata: Mapping[str, Any]
    hidden_by: int | None
    parent_session_id: str | None
    pending_attempts: int | None
    origin: str
    untrusted: bool
    home_id: str | None


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A place in a list that goes back in time: rows before it follow."""

    at: datetime
    id: int = 0
    kind: Kind | None = None


def themes(connection: Connection, theme: str | None = None) -> list[Theme]:
    """The themes that hold rows, the largest first."""
    return [Theme(*row) for row in run(connection, "browse/themes", theme=theme)]


def days(connection: Connection, since: datetime, theme: str | None) -> list[DayCount]:
    """The days from a time on that something came, in a theme or in all."""
    return [DayCount(*row) for row in run(connection, "browse/days", since=since, theme=theme)]


def rows(
    connection: Connection,
    *,
    kinds: Sequence[Kind],
    theme: str | None,
    since: datetime | None,
    before: ListPlace | None,
    limit: int,
    origin: str | None = None,
) -> list[Row]:
    """Memories and turns, newest first."""
    values = {"theme": theme, "since": since, "limit": limit, "kinds": [kind.value for kind in kinds], "origin": origin}
    return list(map(_row, run(connection, "browse/rows", **values, **_place("before", before))))


def sessions(
    connection: Connection, theme: str | None, since: datetime | None, before: ListPlace | None, limit: int
) -> list[SessionRow]:
    """The sessions of a theme or of all, last used first."""
    values = {"theme": theme, "since": since, "limit": limit}
    return [SessionRow(*row) for row in run(connection, "browse/sessions", **values, **_place("before", before))]


def session_themes(connection: Connection, session_id: str) -> list[str]:
    """The themes a session has been in."""
    return [theme for (theme,) in run(connection, "browse/session_themes", session_id=session_id)]


def transcript(
    connection: Connection, theme: str, session_id: str, after: ListPlace | None, limit: int
) -> list[StoredTurn]:
    """What was said in a session, in order."""
    values = {"theme": theme, "session_id": session_id, "limit": limit}
    return [StoredTurn(*row) for row in run(connection, "browse/transcript", **values, **_place("after", after))]


def delegations(connection: Connection, theme: str, session_id: str) -> list[Delegation]:
    """The subagents of a session, and whose subagent it was."""
    return [Delegation(*row) for row in run(connection, "browse/delegations", theme=theme, session_id=session_id)]


def find_memory(connection: Connection, row_id: int, theme: str | None = None) -> StoredMemory | None:
    """A memory by its id."""
    row = one(connection, "browse/find_memory", id=row_id, theme=theme)
    return None if row is None else StoredMemory(*row)


def find_turn(connection: Connection, row_id: int, theme: str | None = None) -> StoredTurn | None:
    """A turn by its id."""
    row = one(connection, "browse/find_turn", id=row_id, theme=theme)
    return None if row is None else StoredTurn(*row)


def count_vectors(connection: Connection, model: EmbeddingModel, kind: Kind, theme: str, row_id: int) -> int:
    """How many vectors of a model a row has."""
    name = "browse/vectors_of_memory" if kind is Kind.MEMORY else "browse/vectors_of_turn"
    return int(one(connection, name, model.id, theme=theme, id=row_id)[0])


def last_numbers(connection: Connection) -> tuple[int, int]:
    """The last number of a turn, and of an operation on memories."""
    numbers: tuple[int, int] = one(connection, "browse/last_numbers")
    return numbers


def turns_after(connection: Connection, theme: str | None, after_id: int) -> list[Row]:
    """Turns stored lately, in the order of their ids."""
    return list(map(_row, run(connection, "browse/tail_turns", theme=theme, after_id=after_id)))


def _row(row: Any) -> Row:
    kind, *values = row
    return Row(Kind(kind), *values)


def _place(name: str, place: ListPlace | None) -> dict[str, Any]:
    kind = place.kind.value if place and place.kind else ""
    return {name: place and place.at, f"{name}_id": place and place.id, f"{name}_kind": kind}
