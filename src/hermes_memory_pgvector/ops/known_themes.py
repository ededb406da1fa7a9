"""The name of a theme that exists, and what to say when it does not."""

from __future__ import annotations

import difflib

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store.gate import theme_names

NEAR = 0.6
MOST_NEAR = 3


def require(connection: Connection, theme: str) -> str:
    """The theme itself if it exists; otherwise an error that names those spelled like it."""
    names = theme_names(connection)
    if theme in names:
        return theme
    near = [name for name in names if name == theme.casefold()] or difflib.get_close_matches(
        theme.casefold(), names, n=MOST_NEAR, cutoff=NEAR
    )
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `list themes` shows them"
    raise CareError(f"there is no theme {theme!r}{hint}")
