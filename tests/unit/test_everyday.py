"""Which prompts are worth a search nobody asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.text.everyday import worth_asking
from testing.small_talk import SMALL_TALK


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "   ",
        "?!",
        "thanks",
        "Hi, how are you?",
        "commit and push",
        "what's next?",
        "what can you do?",
        "let me think about it",
        "perfect, exactly what I wanted",
        "danke, das passt",
        "c'est parfait, merci",
        "¿Qué tal?",
        "ありがとうございます",
        "谢谢",
        "Спасибо большое!",
    ],
)
def test_small_talk_and_chores_ask_nothing(prompt: str) -> None:
    assert not worth_asking(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Where does Anna live?",
        "zebra",
        "ERR-42",
        "/etc/hosts",
        "4711",
        "deploy it to harbour-7",
        "how do I run the tests?",
        "how are the tests run?",
        "what about the release?",
        "tell me about the deployment",
        "when do I finish work?",
        "Who is my best friend?",
        "wie heißt meine Frau?",
        "où habite Marie ?",
        "東京の予定は？",
        "我的生日是什么时候",
        "fix the login page of the shop",
        "ok " * 100,
    ],
)
def test_a_word_that_something_could_be_about_asks(prompt: str) -> None:
    assert worth_asking(prompt)


def test_hardly_any_of_our_small_talk_is_searched_for() -> None:
    assert sum(map(worth_asking, SMALL_TALK)) <= len(SMALL_TALK) * 0.05


@given(st.text(max_size=300))
def test_any_text_is_judged(prompt: str) -> None:
    assert worth_asking(prompt) in (True, False)
