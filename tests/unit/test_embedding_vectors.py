"""What is known of models by name, and what makes a list of numbers a vector."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.embedding.base import MAX_DIM, embeddable, unit_vector
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL, spec_of
from hermes_memory_pgvector.errors import EmbeddingRejected


@pytest.mark.parametrize(
    ("model", "dim", "query", "document"),
    [
        ("nomic-embed-text", 768, "search_query: ", "search_document: "),
        ("nomic-embed-text:latest", 768, "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v1.5", 768, "search_query: ", "search_document: "),
        ("intfloat/e5-small-v2", 384, "query: ", "passage: "),
        ("intfloat/multilingual-e5-base", 768, "query: ", "passage: "),
        ("intfloat/multilingual-e5-large", 1024, "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", 1024, "Instruct: ", ""),
        ("intfloat/e5-mistral-7b-instruct", 4096, "Instruct: ", ""),
        ("BAAI/bge-small-en-v1.5", 384, "Represent this sentence", ""),
        ("bge-large", 1024, "Represent this sentence", ""),
        ("BAAI/bge-base-zh-v1.5", 768, "为这个句子", ""),
        ("bge-m3", 1024, "", ""),
        ("mxbai-embed-large", 1024, "Represent this sentence", ""),
        ("snowflake-arctic-embed", 1024, "Represent this sentence", ""),
        ("snowflake-arctic-embed:22m", 384, "Represent this sentence", ""),
        ("snowflake-arctic-embed:137m", 768, "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-xs", 384, "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-s", 384, "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-m", 768, "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-m-long", 768, "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-l", 1024, "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", 768, "query: ", ""),
        ("snowflake-arctic-embed2", 1024, "query: ", ""),
        ("all-minilm", 384, "", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", 384, "", ""),
        ("embeddinggemma", 768, "task: search result | query: ", "title: none | text: "),
        ("qwen3-embedding", None, "Instruct: ", ""),
        ("qwen3-embedding:0.6b", 1024, "Instruct: ", ""),
        ("Qwen/Qwen3-Embedding-4B", 2560, "Instruct: ", ""),
        ("qwen3-embedding:8b", 4096, "Instruct: ", ""),
        ("text-embedding-3-small", 1536, "", ""),
        ("text-embedding-3-large", 3072, "", ""),
        (LOCAL_MODEL, 256, "", ""),
        ("somebody/unheard-of", None, "", ""),
    ],
)
def test_a_model_is_known_by_its_name(model: str, dim: int | None, query: str, document: str) -> None:
    spec = spec_of(model)
    assert spec.dim == dim
    assert spec.query_prefix.startswith(query)
    assert bool(spec.query_prefix) == bool(query)
    assert spec.document_prefix == document
    assert spec.max_chars >= 1_000


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        "0.1",
        [],
        [0.0, 0.0],
        [0, -0.0],
        [1.0, math.nan],
        [1.0, math.inf],
        [-math.inf, math.nan],
        [1.0, "0.5"],
        [1.0, None],
        [1.0, True],
        [[1.0], [2.0]],
        [10**400, 1],
        [1.0] * (MAX_DIM + 1),
    ],
)
def test_what_is_not_a_usable_vector_is_rejected(values: object) -> None:
    with pytest.raises(EmbeddingRejected, match="the endpoint"):
        unit_vector(values, None, "the endpoint")


def test_the_wrong_dimension_is_rejected_with_the_settings_to_look_at() -> None:
    with pytest.raises(EmbeddingRejected, match=r"2 numbers where 3 are expected.*embed_dim"):
        unit_vector([1.0, 2.0], 3, "the endpoint")


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30), min_size=1, max_size=50)
)
def test_any_list_of_numbers_becomes_a_unit_vector_or_is_rejected(values: list[float]) -> None:
    try:
        vector = unit_vector(values, len(values), "the endpoint")
    except EmbeddingRejected:
        assert not any(values) or not math.isfinite(math.hypot(*values))
        return
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


@given(st.text(alphabet=st.characters(), max_size=300), st.integers(1, 200))
def test_an_embeddable_text_is_short_valid_and_not_blank(text: str, cap: int) -> None:
    clean = embeddable(text, cap)
    if clean is None:
        return
    assert clean.encode().decode() == clean
    assert clean.strip() == clean != ""
    assert "\x00" not in clean
    assert len(clean) <= cap
