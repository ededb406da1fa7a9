"""The operations on memories as people name them: each with its number, in the order they were made or arrived."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store.turns import EPOCH
from hermes_memory_pgvector.values import (
    MCP_HOLDER,
    AddMemory,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
)

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Event:
    """One operation on memories."""

    theme: str
    id: int
    target: Target
    action: str
    content: str
    """What an add or replace wrote; empty for a remove."""
    old_text: str
    previous: str | None
    home_id: str
    origin: Origin
    at: datetime
    metadata: Mapping[str, Any]
    written_by: RowOrigin | None = None
    untrusted: bool = False

    @property
    def by(self) -> str:
        """Who made it: an agent's tool, an edited file, an operator's command, or another agent."""
        if self.home_id == MCP_HOLDER:
            return RowOrigin.MCP.value
        command = self.metadata.get("command") if self.written_by is RowOrigin.OPERATOR else None
        return str(command or self.origin.value)

    @property
    def session_id(self) -> str | None:
        """The session an agent was in, if the host said so."""
        session = self.metadata.get("session_id")
        return str(session) if session else None

    def operation(self, order_us: int = 0) -> MemoryOperation:
        """The same as the rules of memory_state take it."""
        common: dict[str, Any] = {
            "when": Moment((self.at - EPOCH) // MICROSECOND, order_us),
            "home_id": self.home_id,
            "origin": self.origin,
            "metadata": self.metadata,
            "written_by": self.written_by,
            "untrusted": self.untrusted,
        }
        if self.action == "add":
            return AddMemory(self.theme, self.target, self.content, **common)
        if self.action == "replace":
            return ReplaceMemory(self.theme, self.target, self.content, self.old_text, previous=self.previous, **common)
        return RemoveMemory(self.theme, self.target, self.old_text, previous=self.previous, **common)


def newest(
    connection: Connection,
    *,
    theme: str | None,
    since: datetime | None,
    until: datetime | None,
    before_id: int | None,
    limit: int,
) -> list[Event]:
    """Operations of a theme and a time, or of all, the last to arrive first."""
    values = {"theme": theme, "since": since, "until": until, "before_id": before_id, "limit": limit}
    rows: list[Any] = connection.execute(statement("history/list"), values).fetchall()
    return [_event(row) for row in rows]


def after(connection: Connection, theme: str | None, after_id: int) -> list[Event]:
    """Operations with higher numbers, in the order they arrived."""
    values = {"theme": theme, "after_id": after_id}
    return [_event(row) for row in connection.execute(statement("history/tail"), values).fetchall()]


def of_theme(connection: Connection, theme: str, target: Target) -> tuple[list[Event], int]:
    """Every operation on a theme's memories in the order they were made, and the place of the last one."""
    rows: list[Any] = connection.execute(statement("history/of_theme"), {"theme": theme, "target": target}).fetchall()
    return [_event(row[:-1]) for row in rows], int(rows[-1][-1]) if rows else 0


def find(connection: Connection, event_id: int, theme: str | None = None) -> tuple[str, Target] | None:
    """The theme and target an operation belongs to."""
    values = {"id": event_id, "theme": theme}
    row: Any = connection.execute(statement("history/find"), values).fetchone()
    return None if row is None else (str(row[0]), row[1])


def lock(connection: Connection, theme: str, targets: Collection[Target], home_ids: Collection[str]) -> None:
    """Let nobody else change a theme's memories until the transaction ends.

    All homes first, and the targets in the order of every writer: a mirror that compares at this moment holds its home
    and waits for the theme.
    """
    connection.execute(statement("memories/lock_homes"), {"home_ids": sorted({"", *home_ids})})
    for target in sorted(targets):
        connection.execute(statement("memories/lock"), {"theme": theme, "target": target})


def heard_of(connection: Connection, home_ids: Sequence[str], since: datetime) -> list[str]:
    """Those of these homes that somebody has heard of since a time."""
    values = {"home_ids": list(home_ids), "since": since}
    rows: list[Any] = connection.execute(statement("history/heard_of"), values).fetchall()
    return [str(home_id) for (home_id,) in rows]


def _event(row: Any) -> Event:
    theme, event_id, target, action, content, old_text, previous, home_id, origin, at, metadata, by, untrusted = row
    return Event(
        theme, event_id, target, action, content, old_text, previous, home_id, Origin(origin), at, metadata,
        by and RowOrigin(by), untrusted,
    )  # fmt: skip
