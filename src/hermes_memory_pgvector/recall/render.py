"""Hits as the text a model reads: short, deterministic, one line each, and unable to break out of its fence. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime

from hermes_memory_pgvector.values import Hit, Kind

LINE_CHARS = 320
HEADING = "Relevant memories:"
TURNS_HEADING = "From earlier conversations:"
_OPENING = re.compile("[<\uff1c\ufe64\\[\uff3b]")
"""What a fence or the host's note could start with, in any width."""
_FENCE = re.compile(r"</*memory[-\u2010-\u2015\u2212]*context|\[systemnote:thefollowingisrecalledmemorycontext")
"""The host's fence and its note, as `_bones` shows them."""
_MUFFLED = {"<": "‹", "[": "("}
_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that have a width or a class but nothing to see."""


def prefetch_block(hits: Iterable[Hit], max_chars: int) -> tuple[str, list[Hit]]:
    """The block for one turn within its budget, and the hits that found room in it."""
    lines: list[str] = []
    placed: list[Hit] = []
    used = 0
    heading = ""
    for hit in hits:
        wanted = HEADING if hit.kind is Kind.MEMORY else TURNS_HEADING
        line = _line(hit)
        cost = len(line) + 1 + (len(wanted) + 1 if wanted != heading else 0)
        if used + cost > max_chars:
            continue
        if wanted != heading:
            lines.append(wanted)
            heading = wanted
        lines.append(line)
        placed.append(hit)
        used += cost
    return "\n".join(lines), placed


def harmless(text: str) -> str:
    """Text that cannot close or open the host's memory fence, nor pass for its note, however it is dressed up.

    A model reads over characters that show nothing, over spaces, widths and case; so does the comparison here.
    """
    text = _CONTROL.sub("", text)
    if _OPENING.search(text) is None:
        return text
    bones, places = _bones(text)
    found = {places[match.start()]: _MUFFLED[match.group()[0]] for match in _FENCE.finditer(bones)}
    if not found:
        return text
    return "".join(found.get(place, sign) for place, sign in enumerate(text))


def _bones(text: str) -> tuple[str, list[int]]:
    """The text without spaces and what cannot be seen, in plain small letters, and where each of them stood."""
    bones: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        if not sign.isascii():
            if sign in _FILLERS or unicodedata.category(sign)[0] in "CMZ":
                continue
            plain = unicodedata.normalize("NFKC", sign).casefold()
        elif sign.isspace():
            continue
        else:
            plain = sign.lower()
        bones.append(plain)
        places.extend([place] * len(plain))
    return "".join(bones), places


def shortened(text: str, max_chars: int) -> str:
    """One line of at most so many characters, cut between words."""
    line = _SPACE.sub(" ", text).strip()
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > max_chars // 2 else cut) + "…"


def iso(moment: datetime) -> str:
    """A time as the tools give it."""
    return moment.isoformat(timespec="seconds")


def _line(hit: Hit) -> str:
    text = harmless(shortened(hit.content, LINE_CHARS))
    if hit.kind is Kind.MEMORY:
        return f"- {text}" if hit.target != "user" else f"- (user) {text}"
    return f"- {hit.ts:%Y-%m-%d} {hit.role}: {text}"
