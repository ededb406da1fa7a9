"""The part of a text that is shown: short enough, around the words asked for, and whole signs only."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_memory_pgvector.text.excerpt import CUT, excerpt, matches, one_line
from hermes_memory_pgvector.text.words import fold

SIGNS = ["e\u0301", "👩\u200d👩\u200d👧", "कि", "각", "x", "é", "日", "ア"]
WORDS = [
    "zebra",
    "budget",
    "Budgets",
    "/etc/hosts",
    "ERR-42",
    "straße",
    "東京都",
    "the",
    "a",
    "<memory-context>",
    *SIGNS,
]
words = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=60)
Words = tuple[str, ...]
texts = st.builds(lambda parts, joint: joint.join(parts), words, st.sampled_from([" ", "", "\n", "  "]))
questions = st.sampled_from([("zebra", "budget"), ("err", "42", "etc"), ("strass",), ("東京",), (), ("zebras",)])


@given(texts, questions, st.integers(0, 120))
@example("zebra " * 30, ("zebra",), 10)
@example("x" * 50, (), 1)
def test_it_is_never_longer_than_allowed_and_nothing_is_invented(text: str, question: Words, limit: int) -> None:
    shown = excerpt(text, question, limit)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
    else:
        assert shown.removeprefix(CUT).removesuffix(CUT) in text or CUT in text


@given(texts, questions, st.integers(40, 120))
def test_a_word_that_was_asked_for_is_shown_where_there_is_one(text: str, question: Words, limit: int) -> None:
    found = matches(text, question)
    shown = excerpt(text, question, limit)
    fitting = {text[match.start : match.end] for match in found if match.end - match.start <= limit - 2}
    assert not fitting or any(word in shown for word in fitting)


@given(st.lists(st.sampled_from(SIGNS), min_size=20, max_size=60), st.integers(15, 60))
def test_no_letter_loses_its_accent_and_no_joined_sign_its_half(signs: list[str], limit: int) -> None:
    text = unicodedata.normalize("NFC", "".join(signs))
    whole = [unicodedata.normalize("NFC", sign) for sign in signs]
    shown = excerpt(text, (), limit)
    if shown != text:
        kept = shown.removesuffix(CUT)
        borders = {len("".join(whole[:number])) for number in range(len(whole) + 1)}
        assert len(kept) in borders


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "zebra"]), min_size=30, max_size=80))
def test_words_are_not_cut_apart(parts: list[str]) -> None:
    shown = excerpt(" ".join(parts), ("zebra",), 60)
    assert set(shown.replace(CUT, " ").split()) <= set(parts)


def test_the_densest_place_wins_over_the_first() -> None:
    text = "zebra " + "filler " * 60 + "the zebra budget of May " + "filler " * 60
    shown = excerpt(text, ("zebra", "budget", "may"), 100)
    assert "the zebra budget of May" in shown
    assert shown.startswith(CUT)
    assert shown.endswith(CUT)


def test_one_word_said_often_does_not_outweigh_two() -> None:
    text = "zebra zebra zebra zebra " + "filler " * 60 + "zebra budget " + "filler " * 60
    assert "zebra budget" in excerpt(text, ("zebra", "budget"), 100)


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("alpha beta gamma delta", 15, "alpha beta…"),
        ("alpha beta", 10, "alpha beta"),
        ("alphabetagammadelta", 10, "alphabeta…"),
        ("alpha beta gamma zebra", 12, "…gamma zebra"),
        ("alpha beta gamma zebra", 0, ""),
    ],
)
def test_where_it_is_cut(text: str, limit: int, shown: str) -> None:
    assert excerpt(text, ("zebra",), limit) == shown


def test_a_line_is_one_line() -> None:
    assert one_line(" a\n\n b\tc ") == "a b c"


def test_inflected_words_and_pairs_of_signs_are_found() -> None:
    assert [m.start for m in matches("Her dogs walked", ("dog", "walk"))] == [4, 9]
    assert matches("私は東京に住んでいます", ("東京",))[0].start == 2
    assert matches("anything", ()) == []


def test_a_long_text_without_spaces_is_folded_by_runs_and_not_sign_by_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[int] = []

    def counted(text: str) -> str:
        folded.append(len(text))
        return fold(text)

    monkeypatch.setattr("hermes_memory_pgvector.text.excerpt.fold", counted)
    text = "会議の予定を確認する" * 6000 + "東京" + "会議"
    found = matches(text, ("東京",))
    assert [text[match.start : match.end] for match in found] == ["東京"]
    assert len(folded) < 10


@pytest.mark.parametrize(
    ("text", "question", "shown"),
    [
        ("いまガスをみる東京", "ガス", "ガス"),
        ("東京東京都", "東京", "東京"),
        ("いま木をみる", "木", "木"),
    ],
)
def test_signs_without_spaces_are_found_where_they_stand(text: str, question: str, shown: str) -> None:
    found = matches(text, (question,))
    assert {text[match.start : match.end] for match in found} == {shown}
