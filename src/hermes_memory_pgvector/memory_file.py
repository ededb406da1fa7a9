"""MEMORY.md and USER.md: how they are read, and what changed between two readings. Pure but for the reading."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.capture import entries_of
from hermes_memory_pgvector.model import Target

FILE_NAMES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
MAX_FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells cheaply whether a file has changed."""

    modified_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Change:
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


def read(path: Path, max_chars: int) -> list[str] | None:
    """The entries of a file in order; None when it cannot be told what it holds."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        # A missing file is an emptied memory only while its folder is there; a missing folder says nothing.
        return [] if os.access(path.parent, os.R_OK | os.X_OK) else None
    except OSError:
        return None
    return entries_of(text, max_chars)


def compare(
    before: Sequence[str], now: Sequence[str], held: Mapping[str, Sequence[str]], own_theme: str
) -> list[Change]:
    """What makes the rows equal to the file.

    `before` is the file as last compared, `held` maps the content of this home's rows to their themes. An entry edited
    in its place stays in the themes that held it; a new entry belongs to the profile's own theme.
    """
    present = set(now)
    fresh = [content for content in now if content not in held]
    gone = [content for content in held if content not in present]
    edited: dict[str, str] = {}
    wanted = set(fresh)
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if tag != "replace" or end - start != new_end - new_start:
            continue
        for old, new in zip(before[start:end], now[new_start:new_end], strict=True):
            if old in held and old not in present and new in wanted:
                edited[old] = new
                wanted.discard(new)
    changes = [
        Change(theme, content, edited.get(content)) for content in gone for theme in dict.fromkeys(held[content])
    ]
    return changes + [Change(own_theme, None, content) for content in fresh if content in wanted]
