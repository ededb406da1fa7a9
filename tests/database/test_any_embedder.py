"""Recall with whatever embedder there is: one whose unrelated texts are all alike, and one that tells little apart.

What is measured does not depend on the scale of a model, which nobody but the probe knows: its name says nothing.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from database.searching import START, Said, Store, new_store, settle

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import create_embedder
from hermes_memory_pgvector.embedding.base import Embedder
from hermes_memory_pgvector.embedding.probe import measure
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.text.everyday import worth_asking
from hermes_memory_pgvector.values import Hit, Kind, Question
from testing.embed_server import EmbedServer
from testing.small_talk import GIBBERISH, SMALL_TALK

PAIRS: list[tuple[str, str]] = [
    (question, said)
    for question, said in json.loads(
        (Path(__file__).parents[1] / "data" / "recall_pairs.json").read_text(encoding="utf-8")
    )
]
DIM = 256
SHARED_CODES = ("ERR-99817-QZX", "0x7f3aee91bc")
"""What looks like a code may share a part of it with a text."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What recall with one embedder is worth."""

    found: float
    """The share of questions whose text is among the first ten."""
    in_own_words: float
    """The share of texts that are found by some of their words."""
    small_talk: float
    gibberish: tuple[str, ...]
    """What finds anything although it is about nothing."""


def figures(server: ConnectionInfo, *, common: float = 0.0, own: float = 0.0) -> Figures:
    with (
        EmbedServer(dim=DIM) as endpoint,
        new_store(server, DIM) as (database, store),
        closing(embedder_of(endpoint)) as embedder,
    ):
        endpoint.common, endpoint.own = common, own
        scale = measure(embedder, Deadline.after(60))
        with psycopg.connect(database.owner_dsn) as owner:
            owner.execute("UPDATE embedding_models SET unrelated_mean = %s, unrelated_sd = %s", (scale.mean, scale.sd))
        remember(store, embedder)
        settle(database)
        recall = Recall(store.reading, embedder, Settings())

        def ask(text: str, *, is_ambient: bool = False) -> tuple[Hit, ...]:
            question = Question(text, Kind.TURN, "fleet", limit=10, now=START, is_ambient=is_ambient)
            return recall.search(question, Deadline.after(30)).hits

        return Figures(
            sum(said in [hit.content for hit in ask(question)] for question, said in PAIRS) / len(PAIRS),
            sum(said in [hit.content for hit in ask(" ".join(said.split()[:6]))] for _, said in PAIRS) / len(PAIRS),
            sum(worth_asking(each) and bool(ask(each, is_ambient=True)) for each in SMALL_TALK) / len(SMALL_TALK),
            tuple(each for each in GIBBERISH if each not in SHARED_CODES and ask(each)),
        )


def embedder_of(endpoint: EmbedServer) -> Embedder:
    return create_embedder(Settings(embed_url=endpoint.url, embed_model="model", embed_protocol="openai"))


def remember(store: Store, embedder: Embedder) -> None:
    texts = [said for _, said in PAIRS]
    vectors = embedder.embed_documents(texts, Deadline.after(60))
    store.say(*(Said(text, session=f"s{place}", vector=vector)
                for place, (text, vector) in enumerate(zip(texts, vectors, strict=True))))  # fmt: skip


@pytest.fixture(scope="module")
def plain(postgres_server: ConnectionInfo) -> Figures:
    return figures(postgres_server)


def test_there_are_enough_pairs() -> None:
    assert len({said for _, said in PAIRS}) >= 200


@pytest.mark.parametrize(("common", "own"), [(0.75, 0.0), (0.0, 0.5), (0.75, 0.5)])
def test_recall_does_not_depend_on_the_scale_of_a_model(
    postgres_server: ConnectionInfo, plain: Figures, common: float, own: float
) -> None:
    found = figures(postgres_server, common=common, own=own)
    assert found.gibberish == ()
    assert found.small_talk <= 0.06
    assert found.in_own_words == 1.0
    assert found.found >= plain.found - 0.01
    assert plain.found > 0.65
