"""What is worth keeping, from whatever the host hands over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.capture.transcript import (
    Turn,
    is_noise,
    lines,
    metadata_of,
    turn_of,
)
from hermes_memory_pgvector.capture.turns import worth_keeping
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.clean import capped, clean, text_of

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(ANYTHING)
def test_any_content_becomes_text_that_postgres_can_hold(value: Any) -> None:
    text = text_of(value)
    assert "\x00" not in text
    text.encode("utf-8")


@given(st.text(alphabet=st.characters(codec=None, categories=None), max_size=50))
def test_cleaning_keeps_everything_but_what_cannot_be_stored(value: str) -> None:
    cleaned = clean(value)
    cleaned.encode("utf-8")
    assert len(cleaned) == len(value) - value.count("\x00")


@given(ANYTHING)
def test_any_metadata_becomes_small_json(value: Any) -> None:
    assert len(json.dumps(metadata_of(value))) < 40_000
    assert isinstance(metadata_of({"x": value}), dict)


@pytest.mark.parametrize("word", ["ok", "Thanks!", "got it.", "YES", "thank you!!!", "alright?", "  done . "])
def test_bare_acknowledgements_are_noise_at_any_minimum(word: str) -> None:
    assert is_noise(word, 0)


@pytest.mark.parametrize("text", ["okra", "no, use the blue one", "stop the deployment now"])
def test_words_that_only_begin_like_an_acknowledgement_are_kept(text: str) -> None:
    assert not is_noise(text, 0)


def test_the_minimum_counts_stripped_characters() -> None:
    assert is_noise(" " * 30 + "x" * 39, 40)
    assert not is_noise("x" * 40, 40)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [("each", ["L" * 40, "M" * 40]), ("pair", ["It is 4711.", "L" * 40, "M" * 40])],
)
def test_a_short_side_is_kept_with_a_long_one_where_the_rule_says_so(rule: Any, kept: list[str]) -> None:
    said = [
        Turn("user", "It is 4711."), Turn("assistant", "L" * 40), Turn("user", "thanks"), Turn("assistant", "M" * 40),
        Turn("user", "And now?"), Turn("assistant", "Nothing."),
    ]  # fmt: skip
    assert [turn.content for turn in worth_keeping(said, Settings(turn_rule=rule))] == kept


def test_a_cut_is_marked_and_exact() -> None:
    cut = capped("x" * 5000, 1000)
    assert len(cut) == 1000
    assert cut.endswith("[cut: the first 1000 of 5000 characters are stored]")
    assert capped("x" * 1000, 1000) == "x" * 1000


def test_recalled_text_is_never_stored_as_said() -> None:
    said = turn_of("user", "hello\n\n<memory-context>\nsecret recall\n</memory-context>", 1000)
    assert said is not None
    assert said.content == "hello"


def test_a_transcript_holds_what_was_said_and_nothing_else() -> None:
    messages = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "question one", "api_content": "question one <memory-context>x</memory-context>"},
        {"role": "assistant", "content": "let me look", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "result"},
        {"role": "assistant", "content": "answer one"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]},
        {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] summary"},
        {"role": "assistant", "content": "x", "_compressed_summary": True},
        {"role": "user", "content": None},
        "nonsense",
        None,
    ]
    assert [line.turn for line in lines(messages, 1000) if line.turn is not None] == [
        ("user", "question one"),
        ("assistant", "answer one"),
        ("user", "see"),
    ]


def test_messages_of_an_earlier_process_are_left_out() -> None:
    messages = [{"role": "user", "content": "old", "timestamp": 5.0}, {"role": "user", "content": "new"}]
    assert [line.is_reloaded for line in lines(messages, 100, not_before=10.0)] == [True, False]


@given(ANYTHING)
def test_no_transcript_raises(messages: Any) -> None:
    lines(messages, 100)
