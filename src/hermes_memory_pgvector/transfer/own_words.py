"""Which messages of a stored session were said there, and which the host has only copied. Pure.

A branch starts with a copy of the session it leaves. A compressed session goes on with the host's summary and a copy of
its last messages, under a new id or in place. Live traffic stores what was said where it was said, so does this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from hermes_memory_pgvector.values import Trust

WRITTEN_AT_ONCE_US = 10_000
"""What the host writes in one go lies closer together than this."""


class Origin(Enum):
    """How a session began."""

    NEW = "new"
    BRANCH = "branch"
    COMPRESSION = "compression"


@dataclass(frozen=True, slots=True)
class Line:
    """A message of user or assistant, without its text."""

    message_id: int
    role: Literal["user", "assistant"]
    digests: tuple[str, ...]
    """Of each form in which it may be stored, the usual one first; empty for what the host wrote itself."""
    at_us: int
    is_note: bool = False
    """Whether it is the host's summary of earlier messages."""
    is_rewound: bool = False
    """Whether the user has taken it back."""
    is_hidden: bool = False
    """Whether it is rewound or summarised, and so not in what the host copies."""
    is_noise: bool = False
    """Whether it is too short to be stored."""
    trust: Trust | None = None
    tools: tuple[str, ...] = ()
    """The kinds of tools that make it untrusted."""

    @property
    def key(self) -> str:
        """What identifies its words."""
        return self.digests[0] if self.digests else ""


@dataclass(frozen=True, slots=True)
class Past:
    """What the sessions that go on from this one need to know of it."""

    lines: tuple[Line, ...] = ()
    """All its messages, also those undone."""
    visible: tuple[str, ...] = ()
    """The keys of everything said in it and before it, in order."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often each key was said up to its end."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line that was said in its session, and which occurrence of its words it is."""

    line: Line
    ordinal: int


def own_words(lines: Sequence[Line], origin: Origin, before: Past) -> tuple[list[Said], Past]:
    """The lines said in this session in order, and the session as a past of others."""
    shown = [line for line in lines if not line.is_rewound]
    visible: list[str] = []
    counts: Counter[str] = Counter()
    start = 0
    if origin is Origin.COMPRESSION:
        visible.extend(before.visible)
        counts.update(before.counts)
        if not any(line.is_note for line in shown):
            start = _copied_from(shown, before)
    elif origin is Origin.BRANCH:
        start = _copied_from(shown, before)
        visible.extend(line.key for line in shown[:start] if line.digests)
        counts.update(visible)
    copies = set(range(start)) | _protected(shown, before if origin is Origin.COMPRESSION else Past())
    said: list[Said] = []
    known: set[tuple[str, int]] = set()
    for place, line in enumerate(shown):
        if line.is_note:
            copies.update(_kept_after(shown, place, visible))
        if place in copies or not line.digests or (line.key, line.at_us) in known:
            continue
        known.add((line.key, line.at_us))
        visible.append(line.key)
        counts[line.key] += 1
        said.append(Said(line, counts[line.key]))
    return said, Past(tuple(lines), tuple(visible), dict(counts))


def _copied_from(shown: Sequence[Line], before: Past) -> int:
    """How many lines at the start of a session are a copy of the session it leaves."""
    if not shown:
        return 0
    theirs = [line for line in before.lines if line.message_id < shown[0].message_id]
    at = _common_start(shown, [line for line in theirs if not line.is_hidden])
    # What was undone or summarised only after the copy was made is in it. What was undone before, and is said again
    # here, was not written in one go with the copy.
    end = _common_start(shown, theirs)
    known = {(line.digests, line.at_us) for line in theirs}
    while at < end and (_is_written_with_its_neighbour(shown, at) or (shown[at].digests, shown[at].at_us) in known):
        at += 1
    return at


def _is_written_with_its_neighbour(shown: Sequence[Line], at: int) -> bool:
    other = at - 1 if at else 1
    return other < len(shown) and abs(shown[at].at_us - shown[other].at_us) < WRITTEN_AT_ONCE_US


def _common_start(shown: Sequence[Line], theirs: Sequence[Line]) -> int:
    place = 0
    for count, line in enumerate(shown):
        while place < len(theirs) and theirs[place].is_hidden and theirs[place].digests != line.digests:
            place += 1
        if place == len(theirs) or theirs[place].digests != line.digests:
            return count
        place += 1
    return len(shown)


def _protected(shown: Sequence[Line], before: Past) -> set[int]:
    """The places of lines that a compression has copied from the beginning, to stand before its summary."""
    found: set[int] = set()
    begun = set(before.visible)
    for place, note in enumerate(shown):
        if not note.is_note:
            continue
        is_first = not any(line.is_note for line in shown[:place])
        earlier = {line.key for line in shown[:place]}
        for at in range(place - 1, -1, -1):
            line = shown[at]
            is_opening = is_first and line.key in begun
            is_written_with_it = 0 <= note.at_us - line.at_us < WRITTEN_AT_ONCE_US and _is_again(shown, at, earlier)
            if not (is_opening or is_written_with_it):
                break
            found.add(at)
    return found


def _is_again(shown: Sequence[Line], at: int, earlier: set[str]) -> bool:
    key = shown[at].key
    return key in earlier and any(line.key == key for line in shown[:at])


def _kept_after(shown: Sequence[Line], place: int, visible: Sequence[str]) -> list[int]:
    """The places of lines after a summary that repeat the end of what was said before it."""
    following: list[int] = []
    for at in range(place + 1, len(shown)):
        if shown[at].is_note:
            break
        if shown[at].digests:
            following.append(at)
    keys = [shown[at].key for at in following]
    for length in range(min(len(keys), len(visible)), 0, -1):
        if keys[0] == visible[-length] and keys[:length] == list(visible[-length:]):
            return following[:length]
    known = set(visible)
    kept = []
    for at in following:
        if shown[at].at_us - shown[place].at_us >= WRITTEN_AT_ONCE_US or shown[at].key not in known:
            break
        kept.append(at)
    return kept
