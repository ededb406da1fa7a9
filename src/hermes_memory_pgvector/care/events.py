"""Who made an event of the history, and where; the same in commands and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_memory_pgvector.values import MCP_HOLDER, RowOrigin

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.history import Event


def by(event: Event) -> str:
    """Who made an event: an agent's tool, an edited file, an operator's command, or another agent."""
    command = event.metadata.get("command")
    if event.home_id == MCP_HOLDER:
        return RowOrigin.MCP.value
    return str(command) if event.writer.startswith("operator:") and command else event.origin.value


def session_of(event: Event) -> str | None:
    """The session an agent was in, if the host said so."""
    session = event.metadata.get("session_id")
    return str(session) if session else None
