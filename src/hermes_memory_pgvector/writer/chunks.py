"""Which rows get vectors, and of which texts: a row's own words after the end of the turn before it, in pieces.

Pure. The stored text stays as it was; only the vectors are made from these pieces.
"""

from __future__ import annotations

from typing import Protocol

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.values import AddTurn

SUBSTANTIVE_CHARS = 200
"""Shorter turns get no vector under the policy `substantive_only`."""
BEFORE_CHARS = 200
"""How much of the turn before leads into a turn: answers often name their subject only there."""
PIECE_CHARS = 2_000
"""A text up to half as long again stays whole: pieces blur less, but say less about the whole."""
OVERLAP_CHARS = 200
MAX_PIECES = 12
"""More of one text would crowd out the others; its words are found in full all the same."""


class Row(Protocol):
    """What is embedded: a memory, or a turn with the turn before it."""

    @property
    def content(self) -> str:
        """The text as stored."""

    @property
    def before(self) -> str:
        """The turn before, or nothing."""


def wants_vector(settings: Settings, turn: AddTurn) -> bool:
    """Whether a turn gets a vector."""
    policy = settings.conversation_embed_policy
    if not settings.embed_on_write or policy == "none":
        return False
    return policy == "all" or len(turn.content) >= SUBSTANTIVE_CHARS


def document_pieces(row: Row) -> tuple[str, ...]:
    """The texts to embed for a row, one vector each; none for a blank one."""
    pieces = split(row.content)
    lead = row.before.strip()[-BEFORE_CHARS:]
    if not pieces or not lead:
        return pieces
    return (f"{lead}\n{pieces[0]}", *pieces[1:])


def split(text: str) -> tuple[str, ...]:
    """A text in overlapping pieces, cut at blanks where there are any."""
    text = text.strip()
    if len(text) <= PIECE_CHARS * 3 // 2:
        return (text,) if text else ()
    pieces: list[str] = []
    start = 0
    while start < len(text) and len(pieces) < MAX_PIECES:
        end = min(start + PIECE_CHARS, len(text))
        if end < len(text):
            blank = text.rfind(" ", start + PIECE_CHARS // 2, end)
            end = blank if blank > 0 else end
        pieces.append(text[start:end].strip())
        if end >= len(text):
            break
        start = end - OVERLAP_CHARS
    return tuple(piece for piece in pieces if piece)
