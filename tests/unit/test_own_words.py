"""Which lines of a stored session were said there."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hermes_memory_pgvector.capture.scaffolding import typed_by_user
from hermes_memory_pgvector.ops.carry.said import Line, SaidBefore, own_words

_ids = count(1)
SECOND = 1_000_000


def line(word: str, *, is_rewound: bool = False) -> Line:
    """A line a second after the one before; a note is written as '*'."""
    number = next(_ids)
    is_note = word == "*"
    return Line(number, "user", word, "" if is_note else word, number * SECOND, is_note, is_rewound)


def lines(words: str) -> list[Line]:
    return [line(word) for word in words.split()]


def said(given: list[Line], before: list[SaidBefore] | None = None) -> str:
    found, _ = own_words(given, before or [])
    return " ".join(each.key for each in found)


def past(given: list[Line], before: list[SaidBefore] | None = None) -> list[SaidBefore]:
    return own_words(given, before or [])[1]


def at_once(words: str, after: Line) -> list[Line]:
    """Lines that the host writes in one go, a second after another."""
    return [replace(each, at_us=after.at_us + SECOND + place) for place, each in enumerate(lines(words))]


def test_words_said_again_are_said_and_undone_ones_are_not() -> None:
    assert said([line("a"), line("b", is_rewound=True), line("a"), line("b")]) == "a a b"


def test_a_branch_starts_with_a_copy() -> None:
    before = past([*lines("a b"), line("x", is_rewound=True), *lines("a")])
    assert said(lines("a b a a c"), before) == "a c"


def test_what_was_undone_before_a_branch_was_made_may_be_said_again_in_it() -> None:
    before = past([*lines("a b"), line("c", is_rewound=True)])
    assert said(lines("a b c d"), before) == "c d"


def test_what_its_parent_says_later_is_not_in_a_branch() -> None:
    shared = lines("a b")
    branch = lines("a * b c")
    before = past([*shared, *lines("d b c")])
    assert said(branch, before) == "c"


def test_a_branch_of_a_session_that_was_summarised_in_place() -> None:
    first = lines("a b c d")
    before = past([*first, *at_once("a * d", first[-1]), *lines("e")])
    assert said(lines("a * d e f"), before) == "f"


def test_a_compressed_session_goes_on_without_its_copies() -> None:
    before = past(lines("a b c d e"))
    assert said(lines("a * d e c f"), before) == "c f"
    assert said(lines("* f"), before) == "f"


def test_a_compression_in_place_keeps_each_saying_once() -> None:
    first = lines("a b c d e")
    assert said([*first, *at_once("a b * d e", first[-1]), *lines("a e")]) == "a b c d e a e"


def test_two_compressions_in_place() -> None:
    first = lines("a b c d")
    second, third = at_once("a * c d", first[-1]), lines("e f")
    assert said([*first, *second, *third, *at_once("a * e f", third[-1]), *lines("g")]) == "a b c d e f g"


def test_a_copy_that_keeps_its_time_is_a_copy() -> None:
    first = lines("a b")
    assert said([*first, *(replace(line(each.key), at_us=each.at_us) for each in first), *lines("a")]) == "a b a"


def test_skills_are_taken_off_the_words() -> None:
    bundle = (
        '[IMPORTANT: The user has invoked the "desk" skill bundle, loading 2 skills.\nUser instruction: Sort my mail.'
        "\n\n[Loaded as part of the desk bundle]\nUser instruction: not this"
    )
    assert typed_by_user("Sort my mail.") == "Sort my mail."
    assert typed_by_user(bundle) == "Sort my mail."
    bare = '[IMPORTANT: The user has invoked the "x" skill. The full skill content is loaded below.]\nbody'
    assert typed_by_user(bare) is None
