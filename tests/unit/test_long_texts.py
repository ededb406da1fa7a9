"""What is too long for an embedder, or for what stands behind it, gets its vector all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.remote import RemoteEmbedder
from hermes_memory_pgvector.errors import EmbeddingUnavailable
from testing.embed_server import EmbedServer, Mode

DIM = 64
SHORT = [f"memory number {number}" for number in range(63)]
LONG = "a long story " * 200


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as running:
        yield running


@pytest.fixture
def embedder(server: EmbedServer) -> Iterator[RemoteEmbedder]:
    made = RemoteEmbedder(url=server.url, model="test-model", protocol="openai", dim=DIM, api_key=None)
    yield made
    made.close()


@pytest.mark.parametrize("answer", ["400", "500"])
def test_one_text_that_is_too_long_is_shortened_and_keeps_no_other_from_its_vector(
    server: EmbedServer, embedder: RemoteEmbedder, answer: Mode
) -> None:
    server.max_chars, server.too_long = 1000, answer
    vectors = embedder.embed_documents([*SHORT, LONG], Deadline.after(20))
    assert all(vector is not None for vector in vectors)
    assert len(server.requests) < 25


def test_an_endpoint_that_fails_on_everything_is_down_and_refuses_no_text(
    server: EmbedServer, embedder: RemoteEmbedder
) -> None:
    server.mode = "500"
    with pytest.raises(EmbeddingUnavailable, match="500"):
        embedder.embed_documents([*SHORT, LONG], Deadline.after(20))
    assert len(server.requests) == 2


def test_an_endpoint_that_goes_down_among_the_parts_refuses_no_text(
    server: EmbedServer, embedder: RemoteEmbedder
) -> None:
    server.max_chars, server.too_long, server.fail_after = 1000, "500", 4
    with pytest.raises(EmbeddingUnavailable, match="500"):
        embedder.embed_documents([*SHORT, LONG], Deadline.after(20))


def test_a_text_that_is_refused_at_any_length_has_no_vector(server: EmbedServer, embedder: RemoteEmbedder) -> None:
    server.max_chars = 150
    vectors = embedder.embed_documents([*SHORT, LONG], Deadline.after(20))
    assert [vector is None for vector in vectors] == [False] * 63 + [True]
