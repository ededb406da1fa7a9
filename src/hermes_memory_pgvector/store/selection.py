"""What somebody names to be forgotten: rows by theme, session, time, text, number or speaker. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermes_memory_pgvector.store import tombstones
from hermes_memory_pgvector.values import AddTurn, WriteItem

NAMES = frozenset({"session_id", "parent_session_id", "delegated_to"})
"""Metadata that name a session: a session is forgotten by its name, not by a text that happens to be in it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What somebody names; whatever is given must all hold."""

    theme: str | None = None
    session_id: str | None = None
    before: datetime | None = None
    match: str | None = None
    """A text that is part of what is meant, in any spelling of case."""
    turn_ids: tuple[int, ...] | None = None
    memory_ids: tuple[int, ...] | None = None
    authors: tuple[str, ...] | None = None
    """Who said it, by what the metadata of a turn name."""

    @property
    def needles(self) -> list[str] | None:
        """The text in the spellings that databases without a language's rules tell apart."""
        return None if self.match is None else spellings(self.match)

    @property
    def by_id(self) -> bool:
        """Whether single rows are named."""
        return self.turn_ids is not None or self.memory_ids is not None

    @property
    def names_rows(self) -> bool:
        """Whether single sayings are meant, and nobody else's that happen to have the same words."""
        return self.by_id or self.authors is not None

    @property
    def names_words(self) -> bool:
        """Whether the words are meant wherever the theme has them, and not only those of a session, speaker or time."""
        return self.session_id is None and self.before is None and not self.names_rows

    @property
    def is_scope(self) -> bool:
        """Whether a theme, a session or a time is meant as a whole."""
        return self.match is None and not self.names_rows

    @property
    def whole_theme(self) -> str | None:
        """The theme that is meant with all it has."""
        return self.theme if self.is_scope and self.session_id is None and self.before is None else None

    def cut(self, forgotten_at: datetime) -> datetime:
        """What was said later is not meant."""
        return forgotten_at if self.before is None else min(self.before - timedelta(microseconds=1), forgotten_at)

    def tells(self, text: str) -> bool:
        """Whether a text contains what is looked for."""
        return self.match is not None and contains(text, self.match)

    def covers(self, item: WriteItem) -> bool:
        """Whether an item in a file is meant, its time apart."""
        if self.by_id or not self.is_about(item):
            return False
        return self.match is None or any(self.tells(text) for text in texts_of(item))

    def is_about(self, item: WriteItem) -> bool:
        """Whether an item is of the theme, the session and the speaker that are named."""
        if self.theme is not None and item.theme != self.theme:
            return False
        if self.session_id is not None and tombstones.session_of(item) != self.session_id:
            return False
        return self.authors is None or (isinstance(item, AddTurn) and _is_by(item.metadata, self.authors))

    def values(self, forgotten_at: datetime) -> dict[str, Any]:
        """What the statements take."""
        return {
            "theme": self.theme,
            "session_id": self.session_id,
            "before": self.before,
            "needles": self.needles,
            "authors": None if self.authors is None else list(self.authors),
            "names": sorted(NAMES),
            "cut": forgotten_at,
        }

    def words(self) -> list[str]:
        """The selection as words, the same for the same request: for a keyed hash, never to be stored."""
        told = (self.theme, self.session_id, self.before and self.before.isoformat(), self.match)
        return [repr(each) for each in (*told, self.turn_ids, self.memory_ids, self.authors)]


def spellings(text: str) -> list[str]:
    """The forms of a text that a search without regard to case has to look for."""
    forms = (text, text.lower(), text.upper(), text.title(), text.casefold())
    return list(dict.fromkeys(unicodedata.normalize(form, each) for each in forms for form in ("NFC", "NFD")))


def contains(text: str, part: str) -> bool:
    """Whether a text has another one in it, in any spelling of case."""
    return bool(part) and any(each.lower() in text.lower() for each in spellings(part))


def texts_of(item: WriteItem) -> list[str]:
    """The words of an item; not its metadata, nor what it quotes of an entry that it takes away."""
    told = [getattr(item, name, None) for name in ("content", "task", "result")]
    return [text for text in told if isinstance(text, str) and text]


def stamps_of(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Every text in metadata, except names of sessions."""
    for key, value in metadata.items():
        if key not in NAMES:
            yield str(key)
            yield from _texts_in(value)


def without_stamps(metadata: Mapping[str, Any], match: str) -> dict[str, Any]:
    """Metadata without the values that contain a text; names of sessions stay."""
    return {key: value for key, value in metadata.items()
            if key in NAMES or not any(contains(text, match) for text in stamps_of({key: value}))}  # fmt: skip


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts_in(each)
    elif value is not None:
        yield str(value)


def _is_by(metadata: Mapping[str, Any], authors: Collection[str]) -> bool:
    return any(each in authors for each in tombstones.authors_of(metadata))
