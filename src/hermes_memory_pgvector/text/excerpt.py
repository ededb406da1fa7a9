"""The part of a text that shows why it was found: the window around the densest words of the question. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hermes_memory_pgvector.text.words import UNSPACED, fold

CUT = "…"
"""Stands where text was left out."""
LEAD = 3
"""One part in so many of the spare room goes before the words found, the rest after them, where answers stand."""
REPEATED = 0.1
"""What a word counts for that the window already shows."""
LOOKED_AT = 65_536
"""So much of a text is searched for the words of the question, because somebody waits for it."""
SHORTEST_STEM = 3
LONGEST_ENDING = 5
MAX_MATCHES = 400
"""Where the words stand this often, a later window is hardly better than one before."""

_SPACE = re.compile(r"\s+")
# As text: made into patterns when a question comes, not when the package is loaded.
_WORD = rf"[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|[\u0300-\u036f])*(?:['’][^\W\d_{UNSPACED}]+)?"
_RUN = f"[{UNSPACED}]+"
_JOINER = "\u200d"


class Match(NamedTuple):
    """A word of the question in a text."""

    start: int
    end: int
    word: str


def one_line(text: str) -> str:
    """The text with every run of blanks made one space."""
    return _SPACE.sub(" ", text).strip()


def excerpt(text: str, words: Sequence[str], max_chars: int) -> str:
    """At most so many characters around the words of a question, or the beginning where there are none.

    It is cut between words where there are any near, never between a letter and its accents, and marked there.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - 2 * len(CUT)
    if room <= 0:
        return CUT[:max_chars]
    first, last = _densest(matches(text[:LOOKED_AT], words)[:MAX_MATCHES], room)
    spare = room - (last - first)
    start = max(0, min(first - spare // LEAD, len(text) - room))
    # What stands at an edge needs no mark there, which leaves room for one more sign.
    if start <= len(CUT):
        start, end = 0, max_chars - len(CUT)
    elif start + room + len(CUT) >= len(text):
        start, end = len(text) - max_chars + len(CUT), len(text)
    else:
        end = start + room
    start, end = _start_at_border(text, start, first), _end_at_border(text, end, max(last, start))
    shown = text[start:end].strip()
    return f"{CUT if start > 0 else ''}{shown}{CUT if end < len(text) else ''}"


def matches(text: str, words: Sequence[str]) -> list[Match]:
    """Where words stand in a text, in order, also with another ending: words as they are compared, or what is left of
    them without their ending."""
    known: dict[str, str | None] = {}
    found = []
    for word in re.finditer(_WORD, text) if words else ():
        typed = word.group()
        if typed not in known:
            folded = fold(typed)
            known[typed] = next((each for each in words if _is_form_of(folded, each)), None)
        if (wanted := known[typed]) is not None:
            found.append(Match(word.start(), word.end(), wanted))
    if not text.isascii():
        found += _in_runs(text, words)
        found.sort(key=lambda match: match.start)
    return found


def _is_form_of(word: str, wanted: str) -> bool:
    if word == wanted:
        return True
    stem = wanted[:-1] if len(wanted) > 3 and wanted[-1] in "eiy" else wanted
    return len(stem) >= SHORTEST_STEM and word.startswith(stem) and len(word) - len(stem) <= LONGEST_ENDING


def _in_runs(text: str, words: Sequence[str]) -> Iterator[Match]:
    """Pairs of signs, and single signs where no pair begins, in scripts written without spaces."""
    # Single signs first: a pair that begins at the same place takes its place.
    looked_for = sorted((lexeme for lexeme in words if len(lexeme) <= 2 and re.fullmatch(_RUN, lexeme)), key=len)
    if not looked_for:
        return
    for run in re.finditer(_RUN, text):
        signs = run.group()
        folded = fold(signs)
        found: dict[int, str] = {}
        for lexeme in looked_for:
            place = folded.find(lexeme)
            for _ in range(MAX_MATCHES):
                if place < 0:
                    break
                found[place] = lexeme
                place = folded.find(lexeme, place + 1)
        for place, lexeme in found.items():
            # Signs that fold into one, or into several, put it a little aside.
            start = place * len(signs) // len(folded)
            yield Match(run.start() + start, run.start() + min(start + len(lexeme), len(signs)), lexeme)


def _densest(found: Sequence[Match], room: int) -> tuple[int, int]:
    """From where to where the most words of the question stand within the room; the first such place."""
    best, best_weight = (0, 0), 0.0
    for number, first in enumerate(found):
        end = first.start + room
        shown = [match for match in found[number : number + room] if match.end <= end]
        if not shown:
            continue
        distinct = len({match.word for match in shown})
        weight = distinct + REPEATED * (len(shown) - distinct)
        if weight > best_weight + 1e-9:
            best, best_weight = (first.start, shown[-1].end), weight
    return best


def _start_at_border(text: str, start: int, first: int) -> int:
    """The first border between words from `start` on, if one comes before the words to show."""
    if start == 0 or text[start - 1].isspace():
        return start
    for place in range(start, first):
        if text[place].isspace():
            return place + 1
    while start < first and _is_inside_a_sign(text, start):
        start += 1
    return start


def _end_at_border(text: str, end: int, last: int) -> int:
    """The last border between words up to `end`, if one comes after the words to show."""
    if end >= len(text) or text[end].isspace():
        return end
    # A border far back would throw away more than a cut word costs.
    for place in range(end - 1, max(last, end // 2) - 1, -1):
        if text[place].isspace():
            return place
    while end > last and _is_inside_a_sign(text, end):
        end -= 1
    return end


def _is_inside_a_sign(text: str, place: int) -> bool:
    """Whether what stands after a place belongs to the sign before it: accents, vowel signs, joined emoji."""
    before, after = text[place - 1], text[place]
    return unicodedata.category(after)[0] == "M" or _JOINER in (before, after)
