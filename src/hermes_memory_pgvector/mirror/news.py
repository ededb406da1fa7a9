"""What is new in MEMORY.md and USER.md when a hook tells that somebody has written, but not what.

Some hosts report a write without its words, others mask what they hand over. Then the hook says who and when, and the
file says what: the entries that this process has not seen there yet, paired with the words of the hook as far as these
say anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hermes_memory_pgvector.mirror import memory_file
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
from hermes_memory_pgvector.text.masks import MASK
from hermes_memory_pgvector.text.secrets import Masker
from hermes_memory_pgvector.values import FileSays, Target


class FileNews:
    """Knows what this process has seen in the files of a home; thread-safe."""

    def __init__(self, folder: Path, max_chars: int, masker: Masker) -> None:
        self._folder = folder
        self._max_chars = max_chars
        self._masker = masker
        self._lock = threading.Lock()
        self._known: dict[Target, list[str]] = {}
        self._told: dict[Target, list[str]] = {}
        """What hooks have told since then, as they said it: they do not wait for a mask."""

    def has_mask(self, text: str) -> bool:
        """Whether something in a text is hidden."""
        return MASK.search(text) is not None

    def begin(self) -> None:
        """A session begins: what stands there now is no news."""
        if not self._known:
            for target in FILE_NAMES:
                self.seen(target, self._read(target) or [])

    def seen(self, target: Target, entries: Iterable[str]) -> None:
        """A file was read and compared."""
        with self._lock:
            self._known[target] = list(entries)
            self._told.pop(target, None)

    def told(self, target: Target, entries: Iterable[str]) -> None:
        """A hook has told of these entries in clear words."""
        with self._lock:
            self._told.setdefault(target, []).extend(entries)

    def take(self, target: Target, new: Sequence[str], old: Sequence[str]) -> FileSays | None:
        """What a hook has written, by its words for it and for the entry before, any of which may be masked or missing.

        None when the file cannot be read.
        """
        with self._lock:
            now = self._read(target)
            if now is None:
                return None
            told = [self._masker.mask(entry).text for entry in self._told.pop(target, ())]
            known = [*self._known.get(target, [] if told else now), *told]
            fresh = [entry for entry in now if entry not in known]
            gone = [entry for entry in known if entry not in now]
            entries = fresh
            if new:
                found = (self._only(text, fresh, fits) or self._only(text, now, fits) for text in new)
                entries = [entry for entry in found if entry is not None]
            previous = next((entry for text in old if (entry := self._only(text, gone, stands_in)) is not None), None)
            self._known[target] = [entry for entry in (*known, *entries) if entry != previous]
            return FileSays(entries, previous)

    def _only(self, text: str, entries: Sequence[str], is_meant: Callable[[str, str], bool]) -> str | None:
        """The one entry that a text means."""
        text = self._masker.mask(text).text
        meant = [entry for entry in entries if is_meant(text, entry)]
        return meant[0] if len(meant) == 1 else None

    def _read(self, target: Target) -> list[str] | None:
        return memory_file.read(self._folder / FILE_NAMES[target], self._max_chars, self._masker)


def fits(text: str, entry: str) -> bool:
    """Whether a text may be the entry: what is hidden in it stands for anything."""
    first, *others = MASK.split(text)
    if not others:
        return text == entry
    last = others.pop()
    return (
        len(entry) >= len(first) + len(last)
        and entry.startswith(first)
        and entry.endswith(last)
        and _follow(others, entry[len(first) : len(entry) - len(last)])
    )


def stands_in(text: str, entry: str) -> bool:
    """Whether a text may be a part of the entry."""
    return _follow(MASK.split(text), entry)


def _follow(parts: Sequence[str], entry: str) -> bool:
    """Whether these parts stand in the entry one after the other."""
    at = 0
    for part in parts:
        place = entry.find(part, at)
        if place < 0:
            return False
        at = place + len(part)
    return True
