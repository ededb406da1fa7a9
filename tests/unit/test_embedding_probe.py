"""A model is measured once: what unrelated texts have in common in it, whatever its scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import create_embedder
from hermes_memory_pgvector.embedding.base import Embedder, Scale
from hermes_memory_pgvector.embedding.probe import PAIRS, measure
from hermes_memory_pgvector.errors import EmbeddingRejected, EmbeddingUnavailable
from testing.embed_server import EmbedServer


class Measured(NamedTuple):
    """An endpoint, and an embedder that uses it."""

    server: EmbedServer
    embedder: Embedder

    def scale(self, seconds: float = 30) -> Scale:
        return measure(self.embedder, Deadline.after(seconds))


@pytest.fixture
def measured() -> Iterator[Measured]:
    with EmbedServer(dim=64) as server:
        embedder = create_embedder(Settings(embed_url=server.url, embed_protocol="openai", embed_dim=64))
        yield Measured(server, embedder)
        embedder.close()


def test_the_pairs_are_forty_different_questions_and_texts() -> None:
    assert len(PAIRS) == 40
    assert len({text for pair in PAIRS for text in pair}) == 80


def test_the_local_model_places_unrelated_texts_near_zero() -> None:
    local = create_embedder(Settings())
    scale = measure(local, Deadline.after(60))
    assert scale.mean == pytest.approx(0.015, abs=0.01)
    assert scale.sd == pytest.approx(0.074, abs=0.01)


@pytest.mark.parametrize("common", [0.45, 0.75])
def test_a_common_direction_moves_the_mean_and_narrows_the_scale(measured: Measured, common: float) -> None:
    plain = measured.scale()
    measured.server.common = common
    moved = measured.scale()
    assert moved.mean == pytest.approx(common + (1 - common) * plain.mean, abs=0.02)
    assert moved.sd == pytest.approx((1 - common) * plain.sd, rel=0.1)


def test_it_takes_two_requests_with_the_prefixes_of_the_model(measured: Measured) -> None:
    measured.scale()
    asked, told = (request.texts for request in measured.server.requests)
    assert asked == tuple(f"search_query: {question}" for question, _ in PAIRS)
    assert told == tuple(f"search_document: {text}" for _, text in PAIRS)


def test_a_model_that_tells_nothing_apart_is_refused(measured: Measured) -> None:
    measured.server.common = 1.0
    with pytest.raises(EmbeddingRejected, match="same vector"):
        measured.scale()


def test_a_model_that_takes_few_of_the_texts_is_refused(measured: Measured) -> None:
    measured.server.max_chars = 50
    with pytest.raises(EmbeddingRejected, match="no vectors for most"):
        measured.scale()


@pytest.mark.parametrize("is_hanging", [False, True])
def test_an_endpoint_that_is_away_is_unavailable(measured: Measured, is_hanging: bool) -> None:
    measured.server.mode = "hang" if is_hanging else "500"
    with pytest.raises(EmbeddingUnavailable):
        measured.scale(0.5)
