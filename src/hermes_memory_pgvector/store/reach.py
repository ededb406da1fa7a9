"""What a transaction is about: some themes, or a purpose that concerns them all.

Every transaction says it, and row-level security shows it nothing else (`sql/policies.sql`). So a statement that has
lost its theme predicate finds the rows of the transaction's themes, and a transaction that says nothing finds none. It
is a net under the statements, not a lock: whoever has the agents' password can name any theme. The lock is a login of
its own (`hermes-pgvector grant`), whose themes stand in a table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """The rows a transaction may touch."""

    purpose: str = ""
    """One of those below; empty when the themes say everything."""
    themes: tuple[str, ...] = ()
    """Also under the names they have now."""
    own: str = ""
    """The one of these themes that is the asker's: only it may have become a private theme since."""


NOTHING = Reach()
"""No tenant's row: models, receipts, watermarks, what belongs to nobody."""
WRITER = Reach("writer")
"""Stores what journals, files and imports bring, whichever themes that is about."""
UPKEEP = Reach("upkeep")
"""Vectors, counts, retention, checks: what a process does for all rows that its login may see."""
OVERVIEW = Reach("overview")
"""Looks at everything and changes nothing."""
OPERATOR = Reach("operator")
"""A command changes what its caller named."""


def within(*themes: str, own: str = "") -> Reach:
    """These themes alone."""
    return Reach(themes=tuple(dict.fromkeys(themes)), own=own)


def everywhere(own: str) -> Reach:
    """Reading in every theme that is not private, and in one's own."""
    return Reach("everywhere", (own,), own)
