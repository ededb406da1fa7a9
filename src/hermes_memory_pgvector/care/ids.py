"""How people name what is stored: m12 is a memory, t34 a turn, e56 an event of the history."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.values import Kind

_FORM = re.compile(r"([mt]?)(\d{1,18})", re.IGNORECASE)
_EVENT = re.compile(r"e?(\d{1,18})", re.IGNORECASE)
_LETTERS = {Kind.MEMORY: "m", Kind.TURN: "t"}


@dataclass(frozen=True, slots=True)
class RowName:
    """What somebody typed to name a row; without a letter it may be of either kind."""

    id: int
    kind: Kind | None = None

    def __str__(self) -> str:
        return f"{_LETTERS[self.kind] if self.kind else ''}{self.id}"


def name_of(kind: Kind, row_id: int) -> str:
    """How a row is named."""
    return f"{_LETTERS[kind]}{row_id}"


def parse_row(text: str) -> RowName:
    """Read a row's name."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise CareError(f"{text!r} names no row; `list` shows them: m12 is a memory, t34 is a turn")
    kinds = {letter: kind for kind, letter in _LETTERS.items()}
    return RowName(int(match.group(2)), kinds.get(match.group(1).lower()))
