"""Which messages of a stored session were said there, and which the host has only copied. Pure.

A branch starts with a copy of the session it leaves. A compressed session goes on with the host's summary and a copy of
some messages around it, under a new id or in place: what it writes with its summary, and was said before, is a copy. So
is what has the words and the time of an earlier message. Live traffic stores what was said where it was said, so does
this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    at_us: int


def own_words(lines: Sequence[Line], before: Sequence[SaidBefore] = ()) -> tuple[list[Line], list[SaidBefore]]:
    """The lines said in a session, in order; and all that was said in it and before it."""
    shown = [line for line in lines if not line.is_rewound]
    # What the session before said after this one began is not in the copy.
    told = [each for each in before if shown and each.message_id < shown[0].message_id]
    pairs = zip(shown, told, strict=False)
    copied = {line.message_id for line, _ in takewhile(lambda pair: pair[0].key == pair[1].key, pairs)}
    said: list[Line] = []
    known = {each.key for each in told}
    dated = {(each.key, each.at_us) for each in told}
    for batch in _written_at_once(shown):
        is_summary = any(line.is_note for line in batch)
        for line in batch:
            # A copy may keep the time of its original.
            is_copy = line.message_id in copied or (line.key, line.at_us) in dated
            if line.is_note or is_copy or (is_summary and line.key in known):
                continue
            said.append(line)
            known.add(line.key)
            dated.add((line.key, line.at_us))
    return said, [*told, *(SaidBefore(line.message_id, line.key, line.at_us) for line in said)]


def _written_at_once(lines: Sequence[Line]) -> Iterator[list[Line]]:
    batch: list[Line] = []
    for line in lines:
        if batch and line.at_us - batch[-1].at_us >= AT_ONCE_US:
            yield batch
            batch = []
        batch.append(line)
    if batch:
        yield batch
