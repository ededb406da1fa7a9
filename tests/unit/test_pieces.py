"""Which texts are embedded for a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.embedding.known_models import spec_of
from hermes_memory_pgvector.writer.chunks import (
    BEFORE_CHARS,
    MAX_PIECES,
    OVERLAP_CHARS,
    PIECE_CHARS,
    document_pieces,
    piece_chars,
    split,
)


def test_a_short_text_is_one_piece_as_said() -> None:
    assert document_pieces("hello there") == ("hello there",)


def test_a_blank_text_has_no_piece() -> None:
    assert document_pieces("  \n", "before") == ()


def test_the_turn_before_leads_into_the_first_piece() -> None:
    (piece,) = document_pieces("Tuesday", "x" * 1000 + "Which day?")
    assert piece.endswith("Which day?\nTuesday")
    assert len(piece) == BEFORE_CHARS + len("\nTuesday")


@given(st.integers(0, 60_000), st.booleans())
def test_pieces_are_bounded_and_overlap(length: int, has_blanks: bool) -> None:
    text = ("word " * (length // 5 + 1) if has_blanks else "x" * length)[:length].strip()
    pieces = split(text)
    assert len(pieces) <= MAX_PIECES
    assert all(0 < len(piece) <= PIECE_CHARS * 3 // 2 for piece in pieces)
    if len(text) < (PIECE_CHARS // 2 - OVERLAP_CHARS) * MAX_PIECES:
        assert sum(map(len, pieces)) >= len(text) - len(pieces)
        assert not pieces or text.endswith(pieces[-1])


@given(st.text(alphabet="漢字かな한국 ab", max_size=9_000))
def test_signs_of_unspaced_scripts_count_as_a_token_each(text: str) -> None:
    for piece in split(text, 1_000):
        assert len(piece) + 3 * sum(ord(sign) > 0x1100 for sign in piece) <= 1_500


@pytest.mark.parametrize("model", ["all-minilm", "bge-base-en", "nomic-embed-text"])
def test_pieces_fit_the_input_of_their_model(model: str) -> None:
    pieces = document_pieces("word " * 3_000, "before " * 100, piece_chars(model))
    assert max(map(len, pieces)) <= spec_of(model).max_chars
