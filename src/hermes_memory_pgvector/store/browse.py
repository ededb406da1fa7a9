"""What is stored, as people look through it: themes, lists, sessions, single rows. Reads, and adds up counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.values import EmbeddingModel, Kind, Role, Target


@dataclass(frozen=True, slots=True)
class Theme:
    """How much a theme holds, how it grows, and when it was last used."""

    theme: str
    memories: int
    turns: int
    new_today: int
    """Rows of both kinds with a time of today; UTC."""
    new_this_week: int
    """The same for the last seven days."""
    last_write: datetime | None
    last_recall: datetime | None
    """As far as the recall log goes back."""
    is_private: bool
    hidden: int


@dataclass(frozen=True, slots=True)
class DayCount:
    """What came on a day; UTC."""

    day: date
    memories: int
    turns: int
    untrusted: int
    """Of both kinds, those that a stranger's text may have shaped, and that are not hidden."""
    hidden: int


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

    theme: str
    session_id: str
    turns: int
    first: datetime
    last: datetime
    parent_session_id: str | None
    begins_with: str
    """The beginning of the first thing the user said."""
    delegations: int
    last_id: int
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
    rows: list[Any] = connection.execute(statement("browse/themes"), {"theme": theme}).fetchall()
    return [Theme(*row) for row in rows]


def days(connection: Connection, since: datetime, theme: str | None) -> list[DayCount]:
    """The days from a time on that something came, in a theme or in all."""
    rows: list[Any] = connection.execute(statement("browse/days"), {"since": since, "theme": theme}).fetchall()
    return [DayCount(*row) for row in rows]


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
    values = {
        **_range(theme, since, before, limit),
        "kinds": [kind.value for kind in kinds],
        "before_kind": before.kind.value if before and before.kind else "",
        "origin": origin,
    }
    return [_row(row) for row in connection.execute(statement("browse/rows"), values).fetchall()]


def sessions(
    connection: Connection, theme: str | None, since: datetime | None, before: ListPlace | None, limit: int
) -> list[SessionRow]:
    """The sessions of a theme or of all, last used first."""
    values = _range(theme, since, before, limit)
    rows: list[Any] = connection.execute(statement("browse/sessions"), values).fetchall()
    return [SessionRow(*row) for row in rows]


def session_themes(connection: Connection, session_id: str) -> list[str]:
    """The themes a session has been in."""
    rows: list[Any] = connection.execute(statement("browse/session_themes"), {"session_id": session_id}).fetchall()
    return [str(row[0]) for row in rows]


def transcript(
    connection: Connection, theme: str, session_id: str, after: ListPlace | None, limit: int
) -> list[StoredTurn]:
    """What was said in a session, in order."""
    values = {
        "theme": theme,
        "session_id": session_id,
        "after": after.at if after else None,
        "after_id": after.id if after else None,
        "limit": limit,
    }
    rows: list[Any] = connection.execute(statement("browse/transcript"), values).fetchall()
    return [StoredTurn(*row) for row in rows]


def delegations(connection: Connection, theme: str, session_id: str) -> list[Delegation]:
    """The subagents of a session, and whose subagent it was."""
    values = {"theme": theme, "session_id": session_id}
    rows: list[Any] = connection.execute(statement("browse/delegations"), values).fetchall()
    return [Delegation(*row) for row in rows]


def find_memory(connection: Connection, row_id: int, theme: str | None = None) -> StoredMemory | None:
    """A memory by its id."""
    values = {"id": row_id, "theme": theme}
    row: Any = connection.execute(statement("browse/find_memory"), values).fetchone()
    return None if row is None else StoredMemory(*row)


def find_turn(connection: Connection, row_id: int, theme: str | None = None) -> StoredTurn | None:
    """A turn by its id."""
    values = {"id": row_id, "theme": theme}
    row: Any = connection.execute(statement("browse/find_turn"), values).fetchone()
    return None if row is None else StoredTurn(*row)


def count_vectors(connection: Connection, model: EmbeddingModel, kind: Kind, theme: str, row_id: int) -> int:
    """How many vectors of a model a row has."""
    name = "browse/vectors_of_memory" if kind is Kind.MEMORY else "browse/vectors_of_turn"
    row: Any = connection.execute(model_statement(name, model.id), {"theme": theme, "id": row_id}).fetchone()
    return int(row[0])


def last_numbers(connection: Connection) -> tuple[int, int]:
    """The last number of a turn, and of an operation on memories."""
    row: Any = connection.execute(statement("browse/last_numbers")).fetchone()
    return int(row[0]), int(row[1])


def turns_after(connection: Connection, theme: str | None, after_id: int) -> list[Row]:
    """Turns stored lately, in the order of their ids."""
    values = {"theme": theme, "after_id": after_id}
    return [_row(row) for row in connection.execute(statement("browse/tail_turns"), values).fetchall()]


def _row(row: Any) -> Row:
    kind, *values = row
    return Row(Kind(kind), *values)


def _range(theme: str | None, since: datetime | None, before: ListPlace | None, limit: int) -> dict[str, Any]:
    return {
        "theme": theme,
        "since": since,
        "before": before.at if before else None,
        "before_id": before.id if before else None,
        "limit": limit,
    }
