"""What somebody names to be forgotten. Whether words are meant is decided here; SQL only narrows. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.store import marks
from hermes_memory_pgvector.store.marks import MICROSECOND, Marker
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.text.folding import alike, folded, readings
from hermes_memory_pgvector.values import AddTurn, MemoryOperation, WriteItem

LEAST_CHARS: Final = 3
SESSIONS: Final = frozenset({"session_id", "parent_session_id", "delegated_to"})
"""Metadata that name a session: a session is forgotten by its name, not by a text that happens to be in it."""
_WORD = re.compile("[a-z0-9]+")


class Needle:
    """A text as a part of others, however they are written."""

    def __init__(self, text: str) -> None:
        self._written, self._folded = folded(text), alike(text)
        if len(self._folded) < LEAST_CHARS:
            raise UsageError(f"--match needs at least {LEAST_CHARS} characters")

    @property
    def word(self) -> str:
        """What a text that holds this has in it in small letters, if it reads as it is written, line by line."""
        return max(_WORD.findall(self._folded), key=len, default="")

    def is_in(self, text: str | None) -> bool:
        """Whether a text holds it, as it is written or as it reads."""
        return bool(text) and any(map(self._says, readings(str(text))))

    def _says(self, text: str) -> bool:
        # A part of a word with letters of two scripts looks like nothing else by itself.
        return self._folded in alike(text) or (not self._written.isascii() and self._written in folded(text))

    def without(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Metadata without the values that hold it; names of sessions stay."""
        return {key: value for key, value in metadata.items() if key in SESSIONS or not self._holds((key, value))}

    def _holds(self, value: Any) -> bool:
        if isinstance(value, Mapping):
            return any(map(self._holds, value.items()))
        if isinstance(value, list | tuple):
            return any(map(self._holds, value))
        return value is not None and self.is_in(str(value))


@dataclass(frozen=True)
class Named:
    """What is meant; whatever is given must all hold."""

    theme: str | None = None
    session_id: str | None = None
    before: datetime | None = None
    needle: Needle | None = None
    authors: tuple[str, ...] | None = None
    """Who said it, by what the metadata of a turn name."""
    ids: tuple[RecordName, ...] = ()
    """Single rows, and nothing else."""

    @cached_property
    def by_letter(self) -> Mapping[str, list[int]]:
        """The numbers of single rows."""
        return {letter: [each.number for each in self.ids if each.letter == letter] for letter in "mted"}

    @property
    def is_place(self) -> bool:
        """Whether all that is in a place is meant, whatever its words."""
        return self.needle is None and not self.ids

    @property
    def is_everywhere(self) -> bool:
        """Whether words are meant wherever they stand."""
        return self.needle is not None and not (self.session_id or self.before or self.authors)

    def says(self, text: str) -> bool:
        """Whether a text of the place is meant."""
        return self.needle is None or self.needle.is_in(text)

    def covers(self, item: WriteItem) -> bool:
        """Whether an item that is not stored yet is meant; it has the name that its theme has now."""
        if self.ids or not isinstance(item, AddTurn | MemoryOperation):
            return False
        if self.theme not in (None, item.theme) or self.session_id not in (None, marks.session_of(item)):
            return False
        if self.before is not None and item.when.wall_us >= marks.micros(self.before):
            return False
        if self.authors is not None and not set(self.authors) & set(marks.authors_of(item)):
            return False
        return self.needle is None or any(map(self.needle.is_in, [*marks.texts_of(item), *marks.quotes_of(item)]))

    def until(self, now: datetime) -> datetime:
        """What was said later is new."""
        return now if self.before is None else min(self.before - MICROSECOND, now)

    def places(self, marker: Marker, themes: Sequence[str]) -> list[bytes]:
        """The marks of the places that are meant as a whole; `themes` are the names of the theme, or all themes."""
        if not self.is_place:
            return []
        names = themes if self.theme is not None or not (self.session_id or self.authors) else [""]
        return [
            marker.of_place(name, self.session_id or "", author) for name in names for author in self.authors or ("",)
        ]

    def values(self, letter: str = "") -> dict[str, Any] | None:
        """What the statements take for rows with this letter; None where none are meant."""
        numbers = self.by_letter.get(letter) if self.ids else None
        if self.ids and not numbers:
            return None
        return {
            "theme": self.theme, "session_id": self.session_id, "before": self.before, "ids": numbers,
            "authors": None if self.authors is None else list(self.authors),
            "word": None if self.needle is None else self.needle.word,
        }  # fmt: skip
