"""Memories, turns and events as lines of a table and as JSON: the same in every command that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.care.events import by, session_of
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.values import Kind

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.browse import Row
    from hermes_memory_pgvector.store.history import Event

LINE_CHARS = 160


def line(text: str, chars: int = LINE_CHARS) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(terminal.one_line(text[: 4 * chars]).split())
    return flat if len(flat) <= chars else flat[: chars - 1] + "…"


def row_document(row: Row) -> dict[str, Any]:
    """A row for --json, with the names that recall uses."""
    is_memory = row.kind is Kind.MEMORY
    own = {"target": row.whose} if is_memory else {"session_id": row.session_id, "role": row.whose}
    return {
        "kind": row.kind.value,
        "id": row.id or None,
        "agent_identity": row.theme,
        **own,
        "ts": row.at,
        "origin": row.origin,
        "trust": row.trust,
        "hidden_by": row.hidden_by,
        "content": row.content,
    }


def _odd_origin(row: Row) -> str:
    """What is worth saying of where a row comes from; that a user's turn comes from the user is not."""
    if row.trust == "untrusted":
        return "untrusted"
    return "" if row.origin in (row.whose, "unknown", "memory_tool") else row.origin.replace("_", " ")


def event_document(event: Event) -> dict[str, Any]:
    """An event for --json."""
    return {
        "event": event.id,
        "at": event.at,
        "agent_identity": event.theme,
        "target": event.target,
        "action": event.action,
        "by": by(event),
        "home_id": event.home_id or None,
        "session_id": session_of(event),
        "content": event.content or None,
        "old_text": event.old_text or event.previous or None,
        "metadata": dict(event.metadata),
    }


def event_text(event: Event) -> str:
    """What an event wrote or took away, on one line."""
    old = event.previous or event.old_text
    if event.action == "remove":
        return line(old)
    return line(f"{line(old, 60)} → {event.content}" if event.action == "replace" and old else event.content)
