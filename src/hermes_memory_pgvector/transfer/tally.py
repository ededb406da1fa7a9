"""What an import has found and stored, theme by theme."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

FORGOTTEN = "that were forgotten here"
NAME_IN_USE = "that are old names of themes, but are in use here"
ALIASES = "old names of themes"
RECEIPTS = "receipts of what was forgotten"


@dataclass(slots=True)
class ThemeTally:
    """What was found for one theme."""

    new: int = 0
    """Rows stored, or in a dry run: rows that would be."""
    known: int = 0
    """Rows that were there already."""


@dataclass(slots=True)
class Tally:
    """Counts of one import."""

    themes: defaultdict[str, ThemeTally] = field(default_factory=lambda: defaultdict(ThemeTally))
    left_out: Counter[str] = field(default_factory=Counter)
    """How many of the source's items were not for storing, by reason."""
    also: Counter[str] = field(default_factory=Counter)
    """What came along beside rows: other names of themes, and receipts of what was forgotten."""

    @property
    def new(self) -> int:
        """Rows stored, in all themes."""
        return sum(each.new for each in self.themes.values())

    @property
    def known(self) -> int:
        """Rows that were there already, in all themes."""
        return sum(each.known for each in self.themes.values())
