"""Which messages of a stored session were said there, and which the host has only copied. Pure.

A branch starts with a copy of the session it leaves. A compressed session goes on with the host's summary and a copy of
some messages around it, under a new id or in place. Live traffic stores what was said where it was said, so does this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple

AT_ONCE_US = 10_000
"""What the host writes in one go lies closer together than this."""


@dataclass(frozen=True, slots=True)
class Line:
    """A message of user or assistant, with the words that live traffic would store."""

    message_id: int
    role: Literal["user", "assistant"]
    content: str
    key: str
    """What identifies its words; empty for what the host wrote itself."""
    at_us: int
    is_note: bool = False
    """Whether it is the host's summary of earlier messages."""
    is_rewound: bool = False
    """Whether the user has taken it back."""
    tools: tuple[str, ...] = ()
    """The kinds of tools that make it untrusted."""


class SaidBefore(NamedTuple):
    """Words that were said, for the sessions that go on from there."""

    message_id: int
    key: str


def own_words(lines: Sequence[Line], before: Sequence[SaidBefore] = ()) -> tuple[list[Line], list[SaidBefore]]:
    """The lines said in a session, in order; and all that was said in it and before it."""
    shown = [line for line in lines if not line.is_rewound]
    # What the session before said after this one began is not in the copy.
    told = [each for each in before if shown and each.message_id < shown[0].message_id]
    counts = Counter(each.key for each in told)
    copied = _copied_from_start(shown, told)
    said: list[Line] = []
    known: set[tuple[str, int]] = set()
    for place, line in enumerate(shown):
        if line.is_note:
            nearest = line
            # Messages from the beginning, copied to stand before the summary.
            while said and nearest.at_us - said[-1].at_us < AT_ONCE_US and counts[said[-1].key] > 1:
                nearest = said.pop()
                told.pop()
                counts[nearest.key] -= 1
            copied = place + _kept_after(line, shown[place + 1 :], told, counts) + 1
        # A copy may keep the time of its original.
        if line.is_note or place < copied or (line.key, line.at_us) in known:
            continue
        known.add((line.key, line.at_us))
        said.append(line)
        told.append(SaidBefore(line.message_id, line.key))
        counts[line.key] += 1
    return said, told


def _copied_from_start(shown: Sequence[Line], told: Sequence[SaidBefore]) -> int:
    """How many lines at the start of a session are a copy of the session it leaves."""
    pairs = zip(shown, told, strict=False)
    return sum(1 for _ in takewhile(lambda pair: not pair[0].is_note and pair[0].key == pair[1].key, pairs))


def _kept_after(note: Line, behind: Sequence[Line], told: Sequence[SaidBefore], counts: Counter[str]) -> int:
    """How many lines after a summary repeat the end of what was said before it."""
    following = list(takewhile(lambda line: not line.is_note, behind))
    keys, ends = [line.key for line in following], [each.key for each in told]
    for length in range(min(len(keys), len(ends)), 0, -1):
        if keys[0] == ends[-length] and keys[:length] == ends[-length:]:
            return length
    kept, nearest = 0, note
    for line in following:
        if line.at_us - nearest.at_us >= AT_ONCE_US or not counts[line.key]:
            break
        kept, nearest = kept + 1, line
    return kept
