"""The name of a theme that exists, and what to say when it does not."""

from __future__ import annotations

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import gate
from hermes_memory_pgvector.terminal.program import did_you_mean


def require(connection: Connection, theme: str) -> str:
    """The theme itself if it exists; otherwise an error that names those spelled like it."""
    names = gate.theme_names(connection)
    if theme in names:
        return theme
    gone_to = gate.look(connection).aliases.get(theme)
    if gone_to is not None:
        raise CareError(f"theme {theme!r} is called {gone_to!r} now")
    raise CareError(f"there is no theme {theme!r}{did_you_mean(theme, names) or '; `list themes` shows them'}")
