"""Which lines of a stored session were said there."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hermes_memory_pgvector.ops.carry.said import Line, SaidBefore, own_words

_ids = count(1)
MINUTE = 60_000_000


def line(word: str, *, is_rewound: bool = False) -> Line:
    """A line a minute after the one before; a note is written as '*'."""
    number = next(_ids)
    is_note = word == "*"
    return Line(number, "user", word, "" if is_note else word, number * MINUTE, is_note, is_rewound)


def lines(words: str) -> list[Line]:
    return [line(word) for word in words.split()]


def said(given: list[Line], before: list[SaidBefore] | None = None) -> str:
    found, _ = own_words(given, before or [])
    return " ".join(each.key for each in found)


def past(given: list[Line], before: list[SaidBefore] | None = None) -> list[SaidBefore]:
    return own_words(given, before or [])[1]


def at_once(words: str, after: Line) -> list[Line]:
    """Lines that the host writes in one go, a minute after another."""
    return [replace(each, at_us=after.at_us + MINUTE + place) for place, each in enumerate(lines(words))]


def test_what_was_undone_before_a_branch_was_made_may_be_said_again_in_it() -> None:
    before = past([*lines("a b"), line("c", is_rewound=True)])
    assert said(lines("a b c d"), before) == "c d"


def test_what_its_parent_says_later_is_not_in_a_branch() -> None:
    shared = lines("a b")
    branch = lines("a b c")
    before = past([*shared, *lines("d b c")])
    assert said(branch, before) == "c"


def test_two_compressions_in_place_and_a_branch_of_them() -> None:
    first = lines("a b c d")
    second, third = at_once("a * c d", first[-1]), lines("e f")
    whole = [*first, *second, *third, *at_once("a * e f", third[-1]), *lines("g a")]
    assert said(whole) == "a b c d e f g a"
    assert said([*at_once("a * e f", whole[-1]), *lines("g h")], past(whole)) == "g h"


def test_a_copy_that_keeps_its_time_is_a_copy_in_whichever_session() -> None:
    first = lines("a b c d")
    copies = [replace(line(each.key), at_us=each.at_us) for each in first]
    assert said([*first, *copies, *lines("a")]) == "a b c d a"
    assert said([copies[0], line("*"), *copies[2:], line("e")], past(first)) == "e"
