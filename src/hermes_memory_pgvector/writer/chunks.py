"""Which rows get vectors, and of which texts: a row's own words after the end of the turn before it, in pieces.

Pure. The stored text stays as it was; only the vectors are made from these pieces.
"""

from __future__ import annotations

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.embedding.base import fitting_end
from hermes_memory_pgvector.embedding.known_models import spec_of
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


def wants_vector(settings: Settings, turn: AddTurn) -> bool:
    """Whether a turn gets a vector."""
    policy = settings.conversation_embed_policy
    if not settings.embed_on_write or policy == "none":
        return False
    return policy == "all" or len(turn.content) >= SUBSTANTIVE_CHARS


def piece_chars(model: str) -> int:
    """How long pieces are, so that the longest one, with what leads into it, is within what the model reads."""
    return min(PIECE_CHARS, (spec_of(model).max_chars - BEFORE_CHARS) * 2 // 3)


def document_pieces(content: str, before: str = "", size: int = PIECE_CHARS) -> tuple[str, ...]:
    """The texts to embed for a memory, or a turn after another one, one vector each; none for a blank one."""
    pieces = split(content, size)
    lead = before.strip()[-BEFORE_CHARS:]
    if not pieces or not lead:
        return pieces
    return (f"{lead}\n{pieces[0]}", *pieces[1:])


def split(text: str, size: int = PIECE_CHARS) -> tuple[str, ...]:
    """A text in overlapping pieces, cut at blanks where there are any."""
    text = text.strip()
    if fitting_end(text, 0, size * 3 // 2) == len(text):
        return (text,) if text else ()
    pieces: list[str] = []
    start = 0
    while start < len(text) and len(pieces) < MAX_PIECES:
        end = fitting_end(text, start, size)
        if end < len(text):
            blank = text.rfind(" ", (start + end) // 2, end)
            end = blank if blank > 0 else end
        pieces.append(text[start:end].strip())
        if end >= len(text):
            break
        # Of a short piece the overlap takes at most a quarter, so that each goes on.
        start = end - min(OVERLAP_CHARS, (end - start) // 4)
    return tuple(piece for piece in pieces if piece)
