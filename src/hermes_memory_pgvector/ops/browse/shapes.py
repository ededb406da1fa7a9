"""The rows of lists: a memory, a turn, an event and the others, each with the name that it can be asked for by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.values import Kind

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.browse import Row
    from hermes_memory_pgvector.store.hidden import Hiding
    from hermes_memory_pgvector.store.history import Event

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
USUAL_ORIGINS = ("", "unknown", "memory_tool")


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A memory or a turn."""

    id: str = column("id")
    ts: datetime | None = column("when (UTC)")
    agent_identity: str = column("theme")
    told_whose: str = column("whose", is_aside=True)
    state: str = column("state", rare=True)
    content: str = column("text", text=True)
    whose: str = ""
    kind: str = ""
    session_id: str | None = None
    origin: str = ""
    untrusted: bool = False
    hidden_by: int | None = None
    home_id: str | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """One change of a memory."""

    id: str = column("event")
    ts: datetime | None = column("when (UTC)")
    agent_identity: str = column("theme")
    action: str = column("what")
    target: str = column("file", show=FILES.get)
    by: str = column("by")
    session_id: str | None = column("session", rare=True)
    told: str = column("text", text=True, is_aside=True)
    kind: str = "event"
    home_id: str | None = None
    content: str | None = None
    old_text: str | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HiddenLine:
    """A rule that hides rows: the number that takes it back, whose it is, and what it hides."""

    id: int = column("rule", right=True)
    at: datetime | None = column("since (UTC)")
    rule: str = column("how")
    actor: str = column("by")
    what: str = column("what")
    turns: int = column("turns", right=True, rare=True, default=0)
    memories: int = column("memories", right=True, rare=True, default=0)
    reason: str = column("reason", rare=True)
    content: str = column("text", text=True)
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A record that Postgres has refused for good."""

    id: str = column("id")
    at: datetime | None = column("rejected (UTC)")
    size: int = column("size", right=True, default=0, show=amounts.size)
    reason: str = column("reason", text=True)
    writer: str = ""
    position: int = 0


def row_of(row: Row) -> StoredRow:
    """A memory or a turn as lists show it."""
    from hermes_memory_pgvector.ops.row import name_of

    states = [
        "hidden" if row.hidden_by is not None else "",
        "untrusted" if row.untrusted else "",
        "" if row.origin in (row.whose, *USUAL_ORIGINS) or row.untrusted else row.origin.replace("_", " "),
    ]
    return StoredRow(
        name_of(row.kind, row.id), row.at, row.theme,
        FILES[row.whose] if row.kind is Kind.MEMORY else row.whose, ", ".join(filter(None, states)), row.content,
        row.whose, row.kind.value, row.session_id, row.origin, row.untrusted, row.hidden_by, row.home_id,
    )  # fmt: skip


def hidden_of(hiding: Hiding) -> HiddenLine:
    """A rule that hides rows as lists show it."""
    bounds = hiding.bounds
    told = [f"{name} {value}" for name, value in (("session", bounds.session_id), ("origin", bounds.origin)) if value]
    told += [f"{word} {at:%Y-%m-%d %H:%M}" for word, at in (("since", bounds.since), ("until", bounds.until)) if at]
    told += [f"in {bounds.theme}"] if bounds.theme else []
    more = hiding.turns + hiding.memories - len(hiding.names)
    rows = ", ".join(hiding.names) + (f" and {more} more" if more > 0 else "")
    return HiddenLine(
        hiding.id, hiding.at, hiding.rule, hiding.actor, ", ".join(told) or rows, hiding.turns, hiding.memories,
        hiding.reason, hiding.content or "", hiding.is_open,
    )  # fmt: skip


def event_of(event: Event) -> EventRow:
    """A change of a memory as lists show it."""
    old = event.previous or event.old_text
    told = old if event.action == "remove" else event.content
    if event.action == "replace" and old:
        told = f"{_beginning(old)} → {event.content}"
    return EventRow(
        f"e{event.id}", event.at, event.theme, event.action, event.target, event.by, event.session_id,
        told, "event", event.home_id or None, event.content or None, old or None, dict(event.metadata),
    )  # fmt: skip


def _beginning(text: str, chars: int = 60) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
