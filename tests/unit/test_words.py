"""What the words of a question tell beside what they look for: who said it, and whom it names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.text.words import (
    MAX_QUESTION_CHARS,
    asked,
    asks_for_several,
    fold,
    likely_speaker,
    names_in,
)


def test_accents_width_and_case_do_not_matter() -> None:
    assert fold("ＣＡＦÉ Straße") == "cafe strasse"


def test_of_a_long_question_its_beginning_and_end_are_asked() -> None:
    question = "first " + "x" * 100_000 + " last"
    assert len(asked(question)) <= MAX_QUESTION_CHARS + 1
    assert asked(question).startswith("first")
    assert asked(question).endswith("last")


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("What did you recommend for dinner?", "assistant"),
        ("Can you remind me of the name of that hotel", "assistant"),
        ("Where did I park my car?", "user"),
        ("Who wrote the report?", None),
    ],
)
def test_a_question_says_who_would_have_said_it(question: str, speaker: str | None) -> None:
    assert likely_speaker(question) == speaker


def test_a_question_may_name_any_of_its_words() -> None:
    assert names_in("What did Tim's sister Zoë say?") == r"\m(?:tim|sister|zoë|say|zoe)\M"
    assert names_in("what is it?") is None


@given(st.text())
def test_any_text_may_be_asked(text: str) -> None:
    re.compile((names_in(text) or "").replace(r"\m", r"\b").replace(r"\M", r"\b"))


def test_a_question_that_counts_lists_or_compares_asks_for_several() -> None:
    several = ("How many weddings did I go to?", "list my bikes", "compare the two offers", "in which order, in total?")
    assert all(map(asks_for_several, several))
    assert not any(map(asks_for_several, ("Where is my bike?", "the listing of the house", "who ordered it")))
