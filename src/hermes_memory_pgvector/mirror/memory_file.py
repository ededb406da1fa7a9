"""MEMORY.md and USER.md: reading them, and comparing two readings. Pure apart from the reading."""

from __future__ import annotations

import codecs
import difflib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector.text.clean import entries_of
from hermes_memory_pgvector.text.secrets import NOTHING, Masker
from hermes_memory_pgvector.values import Target

FILE_NAMES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
MAX_FILE_BYTES = 4 * 1024 * 1024
"""A thousand times what the host lets a file grow to; a prompt waits while it is read."""
MAX_ALIGNED_ENTRIES = 2000
"""Pairing edited entries takes time that grows with the square of their number."""


class Stamp(NamedTuple):
    """A cheap sign of whether a file has changed."""

    modified_ns: int
    size: int
    inode: int


class Change(NamedTuple):
    """One difference between the file and the rows that came from it; `old` is None for an add, `new` for a remove."""

    theme: str
    old: str | None
    new: str | None


def stamp(path: Path) -> Stamp | None:
    """The file's stamp, or None when there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)


def read(path: Path, max_chars: int, masker: Masker = NOTHING) -> list[str] | None:
    """The entries of a file in order, without what the masker masks; None when it cannot be read."""
    try:
        data = _content(path)
    except FileNotFoundError:
        # A missing file is an emptied memory only while its folder is there; a missing folder says nothing, and neither
        # does a symbolic link to what is away, as a disk that is not mounted.
        return [] if os.access(path.parent, os.R_OK | os.X_OK) and not path.is_symlink() else None
    except OSError:
        return None
    if data is None:
        return None
    entries = entries_of(data.decode("utf-8", errors="replace"), max_chars)
    return list(dict.fromkeys(masker.mask(entry).text for entry in entries))


def emptied_at(path: Path) -> float | None:
    """The latest time at which a missing file can have been deleted; None when its folder cannot be read."""
    try:
        return path.parent.stat().st_mtime
    except OSError:
        return None


def _content(path: Path) -> bytes | None:
    """The bytes of a plain file; None for one that is too large or UTF-16, and for pipes and devices, which never end.

    Some editors save as UTF-16, which begins with a mark. Taken for UTF-8 it would be one entry in place of all others.
    Single bytes that are damaged change only the entry they are in.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES or data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    return data


def compare(
    before: Sequence[str], now: Sequence[str], held: Mapping[str, Sequence[str]], own_theme: str
) -> list[Change]:
    """The changes that make the rows equal to the file.

    `before` is the file as last compared, `held` maps the content of this home's rows to their themes. An entry edited
    in place stays in its themes; a new entry belongs to the profile's own theme. One that was there before and that no
    row holds any more is no news: somebody has taken the row away.
    """
    present, seen = set(now), set(before)
    fresh = [content for content in now if content not in held and content not in seen]
    gone = [content for content in held if content not in present]
    edited: dict[str, str] = {}
    wanted = set(fresh)
    for old, new in _aligned(before, now):
        if old in held and old not in present and new in wanted:
            edited[old] = new
            wanted.discard(new)
    changes = [
        Change(theme, content, edited.get(content)) for content in gone for theme in dict.fromkeys(held[content])
    ]
    return changes + [Change(own_theme, None, content) for content in fresh if content in wanted]


def _aligned(before: Sequence[str], now: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of an old entry and the entry now in its place."""
    first = 0
    while first < min(len(before), len(now)) and before[first] == now[first]:
        first += 1
    before, now = before[first:], now[first:]
    if max(len(before), len(now)) > MAX_ALIGNED_ENTRIES:
        return
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if tag == "replace" and end - start == new_end - new_start:
            yield from zip(before[start:end], now[new_start:new_end], strict=True)
