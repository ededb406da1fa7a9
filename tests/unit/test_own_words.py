"""Which lines of a stored session were said there."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hermes_memory_pgvector.capture.scaffolding import typed_by_user
from hermes_memory_pgvector.transfer.matching import StoredKey, missing
from hermes_memory_pgvector.transfer.own_words import Line, Origin, Past, Said, own_words

_ids = count(1)
SECOND = 1_000_000


def line(word: str, *, is_noise: bool = False, is_rewound: bool = False, is_hidden: bool = False) -> Line:
    """A line a second after the one before; a note is written as '*'."""
    number = next(_ids)
    if word == "*":
        return Line(number, "user", (), number * SECOND, is_note=True)
    return Line(number, "user", (word,), number * SECOND, is_noise=is_noise, is_rewound=is_rewound, is_hidden=is_hidden)


def lines(words: str) -> list[Line]:
    return [line(word) for word in words.split()]


def copied(words: str) -> list[Line]:
    """Lines that the host has written in one go."""
    made = lines(words)
    return [replace(each, at_us=made[0].at_us + place) for place, each in enumerate(made)]


def said(given: list[Line], origin: Origin = Origin.NEW, before: Past | None = None) -> list[tuple[str, int]]:
    found, _ = own_words(given, origin, before or Past())
    return [(each.line.key, each.ordinal) for each in found]


def past(given: list[Line]) -> Past:
    return own_words(given, Origin.NEW, Past())[1]


def test_words_said_again_are_counted_and_undone_ones_are_not() -> None:
    given = [line("a"), line("b", is_rewound=True, is_hidden=True), line("a"), line("b")]
    assert said(given) == [("a", 1), ("a", 2), ("b", 1)]


def test_a_branch_starts_with_a_copy_that_counts() -> None:
    before = past([*lines("a b"), line("x", is_rewound=True, is_hidden=True), *lines("a")])
    assert said(lines("a b a a c"), Origin.BRANCH, before) == [("a", 3), ("c", 1)]


def test_what_was_undone_after_a_branch_was_made_is_in_the_copy() -> None:
    before = past([*lines("a b"), line("c", is_rewound=True, is_hidden=True)])
    assert said([*copied("a b c"), *lines("d")], Origin.BRANCH, before) == [("d", 1)]


def test_what_was_undone_before_a_branch_was_made_may_be_said_again_in_it() -> None:
    before = past([*lines("a b"), line("c", is_rewound=True, is_hidden=True)])
    assert said([*copied("a b"), *lines("c d")], Origin.BRANCH, before) == [("c", 1), ("d", 1)]


def test_a_copy_that_keeps_its_times_is_a_copy() -> None:
    undone = line("c", is_rewound=True, is_hidden=True)
    before = past([*lines("a b"), undone])
    again = replace(line("c"), at_us=undone.at_us)
    assert said([*lines("a b"), again, *lines("d")], Origin.BRANCH, before) == [("d", 1)]


def test_a_branch_of_a_session_that_was_summarised_in_place() -> None:
    hidden = [replace(each, is_hidden=True) for each in lines("a b c d")]
    before = past([*hidden, *lines("a * d e")])
    assert said(lines("a * d e f"), Origin.BRANCH, before) == [("f", 1)]


def test_a_compressed_session_goes_on_without_its_copies_and_with_its_counts() -> None:
    before = past(lines("a b c d e"))
    assert said(lines("a * d e c f"), Origin.COMPRESSION, before) == [("c", 2), ("f", 1)]
    assert said(lines("* f"), Origin.COMPRESSION, before) == [("f", 1)]


def test_a_compression_in_place_keeps_each_saying_once() -> None:
    first = lines("a b c d e")
    at = first[-1].at_us + SECOND
    batch = [replace(each, at_us=at + place) for place, each in enumerate(lines("a b * d e"))]
    assert said([*first, *batch, *lines("a e")]) == [
        ("a", 1),
        ("b", 1),
        ("c", 1),
        ("d", 1),
        ("e", 1),
        ("a", 2),
        ("e", 2),
    ]


def test_two_compressions_in_place() -> None:
    first = lines("a b c d")
    second = [replace(each, at_us=first[-1].at_us + SECOND + place) for place, each in enumerate(lines("a * c d"))]
    third = lines("e f")
    fourth = [replace(each, at_us=third[-1].at_us + SECOND + place) for place, each in enumerate(lines("a * e f"))]
    keys = [key for key, _ in said([*first, *second, *third, *fourth, *lines("g")])]
    assert keys == ["a", "b", "c", "d", "e", "f", "g"]


def occurrence(word: str, ordinal: int, at: int, *others: str) -> Said:
    return Said(Line(next(_ids), "user", (word, *others), at * SECOND), ordinal)


def test_a_stored_row_stands_for_the_saying_nearest_to_it() -> None:
    sayings = [occurrence("a", 1, 10), occurrence("a", 2, 500)]
    (left,) = missing(sayings, [StoredKey("a", 1, 499 * SECOND)])
    assert (left.line.at_us, left.ordinal) == (10 * SECOND, 2)
    assert missing(sayings, [StoredKey("a", 1, 0), StoredKey("a", 7, 0)]) == []


def test_a_saying_stored_in_other_words_is_known() -> None:
    assert missing([occurrence("[1 image] a", 1, 10, "a")], [StoredKey("a", 1, 10)]) == []


def test_skills_are_taken_off_the_words() -> None:
    bundle = (
        '[IMPORTANT: The user has invoked the "desk" skill bundle, loading 2 skills.\nUser instruction: Sort my mail.'
        "\n\n[Loaded as part of the desk bundle]\nUser instruction: not this"
    )
    assert typed_by_user("Sort my mail.") == "Sort my mail."
    assert typed_by_user(bundle) == "Sort my mail."
    bare = '[IMPORTANT: The user has invoked the "x" skill. The full skill content is loaded below.]\nbody'
    assert typed_by_user(bare) is None
