"""A text that was embedded before is not embedded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import create_embedder
from hermes_memory_pgvector.embedding.base import BATCH
from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder
from hermes_memory_pgvector.embedding.local import LocalEmbedder
from hermes_memory_pgvector.embedding.remote import RemoteEmbedder
from hermes_memory_pgvector.errors import ConfigError, EmbeddingUnavailable
from testing.embed_server import EmbedServer, meaningful_vector

DIM = 32


def soon(seconds: float = 10.0) -> Deadline:
    return Deadline.after(seconds)


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as running:
        yield running


MakeCached = Callable[..., ConfiguredEmbedder]


@pytest.fixture
def make(server: EmbedServer, tmp_path: Path) -> Iterator[MakeCached]:
    made: list[ConfiguredEmbedder] = []

    def build(entries: int = 100, model: str = "test-model") -> ConfiguredEmbedder:
        settings = Settings(embed_url=server.url, embed_model=model, embed_protocol="openai", embed_dim=DIM)
        embedder = ConfiguredEmbedder(tmp_path, settings, cache_entries=entries)
        made.append(embedder)
        return embedder

    yield build
    for embedder in made:
        embedder.close()


def test_the_same_text_is_embedded_once(server: EmbedServer, make: MakeCached) -> None:
    embedder = make()
    first = embedder.embed_query("the same words", soon())
    assert embedder.embed_query("the same words", soon()) is first
    assert server.texts == ["the same words"]


def test_equal_texts_in_one_batch_are_embedded_once(server: EmbedServer, make: MakeCached) -> None:
    vectors = make().embed_documents(["a text", "another", "a text"], soon())
    assert server.texts == ["a text", "another"]
    assert vectors[0] is vectors[2]
    assert list(vectors[1] or []) == pytest.approx(meaningful_vector("another", DIM), abs=1e-6)


def test_question_and_document_share_a_vector_when_the_model_has_no_prefixes(
    server: EmbedServer, make: MakeCached
) -> None:
    embedder = make()
    query = embedder.embed_query("shared words", soon())
    assert embedder.embed_documents(["shared words"], soon()) == [query]
    assert len(server.requests) == 1


def test_question_and_document_differ_when_the_model_has_prefixes(server: EmbedServer, make: MakeCached) -> None:
    embedder = make(model="nomic-embed-text")
    embedder.embed_query("shared words", soon())
    embedder.embed_documents(["shared words"], soon())
    assert server.texts == ["search_query: shared words", "search_document: shared words"]


def test_a_key_that_comes_late_mixes_no_question_with_a_document(
    server: EmbedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LATE_KEY", "two\nlines")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    settings = Settings(
        embed_url=server.url, embed_model="test-model", embed_prefixes="query=Q ", embed_dim=DIM,
        embed_api_key_env="TEST_LATE_KEY",
    )  # fmt: skip
    embedder = ConfiguredEmbedder(tmp_path, settings, cache_entries=10)
    assert "embed_api_key_env" in embedder.fault
    monkeypatch.setenv("TEST_LATE_KEY", "right")
    embedder.embed_query("words", soon())
    embedder.embed_documents(["words"], soon())
    assert server.texts == ["Q words", "words"]
    embedder.close()


def test_the_least_recently_used_text_is_forgotten_first(server: EmbedServer, make: MakeCached) -> None:
    embedder = make(entries=2)
    for text in ("one", "two", "one", "three", "one", "two"):
        embedder.embed_query(text, soon())
    assert server.texts == ["one", "two", "three", "two"]


def test_a_failure_is_not_remembered(server: EmbedServer, make: MakeCached) -> None:
    embedder = make()
    server.mode = "500"
    with pytest.raises(EmbeddingUnavailable):
        embedder.embed_query("words", soon())
    server.mode = "ok"
    assert embedder.embed_query("words", soon()) is not None


def test_what_a_batch_achieved_before_failing_is_kept(server: EmbedServer, make: MakeCached) -> None:
    embedder = make()
    texts = [f"text {index}" for index in range(2 * BATCH)]
    server.fail_after = 1
    with pytest.raises(EmbeddingUnavailable):
        embedder.embed_documents(texts, soon())
    server.fail_after = None
    embedder.embed_documents(texts, soon())
    assert server.texts[-BATCH:] == texts[BATCH:]
    assert server.texts.count(texts[0]) == 1


def test_what_was_embedded_before_needs_no_endpoint(server: EmbedServer, make: MakeCached) -> None:
    embedder = make()
    known = embedder.embed_query("known words", soon())
    server.mode = "500"
    for _ in range(4):
        with pytest.raises(EmbeddingUnavailable):
            embedder.embed_query("new words", soon())
    assert embedder.breaker.is_open
    assert embedder.embed_query("known words", soon()) is known


def test_without_a_url_the_local_model_is_used() -> None:
    embedder = create_embedder(Settings())
    assert isinstance(embedder, LocalEmbedder)
    assert embedder.info(soon()).dim == 256


def test_with_a_url_the_endpoint_is_used_unless_local_is_asked_for() -> None:
    at_host = Settings(embed_url="http://host")
    assert type(create_embedder(at_host)) is RemoteEmbedder
    assert type(create_embedder(replace(at_host, embed_protocol="local"))) is LocalEmbedder
    with pytest.raises(ConfigError, match="embed_url"):
        create_embedder(Settings(embed_protocol="openai"))
