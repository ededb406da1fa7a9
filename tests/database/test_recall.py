"""Recall within its deadline: what happens when the embedder or the database does not play along."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from database.searching import START, Said, Store, store_of, unit

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable, DeadlineExceeded, EmbeddingError, EmbeddingUnavailable
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.values import Kind, Question, Scope
from testing.postgres import Database


@dataclass
class Meanings:
    """An embedder whose meanings are given, or that fails as told."""

    model: str
    vector: Sequence[float] | None = None
    error: EmbeddingError | None = None
    remaining: list[float] = field(default_factory=list)

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float] | None:
        """The vector that was given."""
        self.remaining.append(deadline.remaining())
        if self.error is not None:
            raise self.error
        return self.vector


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with store_of(database) as opened:
        yield opened


def question(text: str, **more: Any) -> Question:
    """A question to the fleet's turns."""
    return Question(text, Kind.TURN, "fleet", limit=10, **more)


def test_meaning_and_words_answer_together(store: Store) -> None:
    generator = random.Random(1)
    asked = unit(generator, store.model.dim)
    by_meaning, by_words = store.say(
        Said("a striped horse", vector=unit(generator, store.model.dim, asked, 0.8)), Said("the zebra budget")
    )
    answer = Recall(store.reading, Meanings(store.model.name, asked), Settings()).search(
        question("zebra"), Deadline.after(5)
    )
    assert answer.degraded is None
    assert {hit.id for hit in answer.hits} == {by_meaning, by_words}


def test_words_answer_when_the_embedder_fails_and_the_answer_says_so(store: Store) -> None:
    (wanted,) = store.say("the zebra budget")
    embedder = Meanings(store.model.name, error=EmbeddingUnavailable())
    answer = Recall(store.reading, embedder, Settings()).search(question("zebra"), Deadline.after(5))
    assert [hit.id for hit in answer.hits] == [wanted]
    assert answer.degraded is not None


def test_the_embedder_gets_only_a_part_of_the_time(store: Store) -> None:
    embedder = Meanings(store.model.name, unit(random.Random(1), store.model.dim))
    Recall(store.reading, embedder, Settings()).search(question("zebra"), Deadline.after(2))
    Recall(store.reading, embedder, Settings(embed_timeout=0.1)).search(question("zebra"), Deadline.after(2))
    assert 1.0 < embedder.remaining[0] < 1.3
    assert embedder.remaining[1] <= 0.1


def test_vectors_of_another_model_are_not_compared(store: Store) -> None:
    (wanted,) = store.say(Said("the zebra budget", vector=unit(random.Random(1), store.model.dim)))
    for embedder in (
        Meanings("another", unit(random.Random(1), store.model.dim)),
        Meanings(store.model.name, [1.0, 0.0]),
    ):
        answer = Recall(store.reading, embedder, Settings()).search(question("zebra"), Deadline.after(5))
        assert [(hit.id, hit.score) for hit in answer.hits] == [(wanted, None)]
        assert answer.degraded is not None


def test_a_text_without_meaning_is_searched_by_words(store: Store) -> None:
    (wanted,) = store.say("ticket ## 4711 ##")
    answer = Recall(store.reading, Meanings(store.model.name, None), Settings()).search(
        question("4711"), Deadline.after(5)
    )
    assert [hit.id for hit in answer.hits] == [wanted]
    assert answer.degraded is None


def test_common_words_alone_find_nothing(store: Store) -> None:
    store.say("what it is, is what it was")
    assert Recall(store.reading, None, Settings()).search(question("what is it"), Deadline.after(5)).hits == ()


def test_a_database_error_reaches_the_caller(store: Store) -> None:
    @contextmanager
    def failing(_: Deadline) -> Iterator[Any]:
        with translated(), store.connection.transaction():
            store.connection.execute("SET LOCAL statement_timeout = '20ms'")
            store.connection.execute("SELECT pg_sleep(5)")
            yield store.connection

    with pytest.raises(DatabaseUnavailable):
        Recall(failing, None, Settings()).search(question("zebra"), Deadline.after(5))


def test_a_question_past_its_deadline_is_not_asked(store: Store) -> None:
    with pytest.raises(DeadlineExceeded):
        Recall(store.reading, None, Settings()).search(question("zebra"), Deadline.after(0))


def test_without_hybrid_search_only_meaning_counts(store: Store) -> None:
    asked = unit(random.Random(1), store.model.dim)
    near, _ = store.say(Said("a striped horse", vector=asked), Said("the zebra budget"))
    recall = Recall(store.reading, Meanings(store.model.name, asked), Settings(hybrid_search=False))
    assert [hit.id for hit in recall.search(question("zebra"), Deadline.after(5)).hits] == [near]


def test_what_is_no_nearer_than_chance_is_no_hit_without_words(store: Store) -> None:
    generator = random.Random(1)
    asked = unit(generator, store.model.dim)
    _, worded = store.say(
        Said("a striped horse", session="s1", vector=unit(generator, store.model.dim)),
        Said("a zebra", session="s2", vector=unit(generator, store.model.dim)),
    )
    recall = Recall(store.reading, Meanings(store.model.name, asked), Settings())
    answer = recall.search(question("unheard"), Deadline.after(5))
    assert (answer.hits, answer.searched) == ((), 2)
    assert [hit.id for hit in recall.search(question("zebra"), Deadline.after(5)).hits] == [worded]
    # A cosine that is wanted besides leaves out what has a vector that is not as near.
    assert recall.search(question("zebra", min_similarity=0.9), Deadline.after(5)).hits == ()


def test_what_somebody_said_comes_first_when_the_question_names_them(store: Store) -> None:
    generator = random.Random(1)
    asked = unit(generator, store.model.dim)
    ann, tim, told = store.say(
        Said("[Ann] the zebra budget is high", session="s1"),
        Said("[Tim] the zebra budget is low", session="s2"),
        Said("the zebra budget is unknown", session="s3", author="Tim Smith"),
    )
    recall = Recall(store.reading, Meanings(store.model.name, asked), Settings())

    def order(text: str) -> list[int]:
        return [hit.id for hit in recall.search(question(text), Deadline.after(5)).hits]

    assert order("what is Ann's zebra budget?")[0] == ann
    assert set(order("what did tim say of the zebra budget?")[:2]) == {tim, told}


def test_a_session_that_has_more_of_the_question_comes_first(store: Store) -> None:
    alone, beside, _ = store.say(
        Said("the zebra eats", session="s1"),
        Said("the zebra runs", session="s2"),
        Said("in the stable of Vienna", session="s2"),
    )
    answer = Recall(store.reading, None, Settings()).search(question("zebra in Vienna"), Deadline.after(5))
    found = [hit.id for hit in answer.hits]
    assert found.index(beside) < found.index(alone)


def test_what_is_offered_unasked_is_near_and_shares_words(store: Store) -> None:
    generator = random.Random(1)
    asked = unit(generator, store.model.dim)

    def at(similarity: float) -> list[float]:
        """A vector of exactly that similarity to the question."""
        other = unit(generator, store.model.dim)
        along = sum(a * b for a, b in zip(asked, other, strict=True))
        across = [b - along * a for a, b in zip(asked, other, strict=True)]
        length = sum(number * number for number in across) ** 0.5
        return [similarity * a + (1 - similarity**2) ** 0.5 * b / length for a, b in zip(asked, across, strict=True)]

    alone, far, both, _, bare = store.say(
        Said("a striped horse", session="s1", vector=at(0.9)),
        Said("zebra crossing far away", session="s2", vector=at(0.1)),
        Said("zebra nearby", session="s3", vector=at(0.9)),
        Said("something else", session="s4", vector=at(0.1)),
        Said("zebra without a vector", session="s5"),
    )
    recall = Recall(store.reading, Meanings(store.model.name, asked), Settings())

    def found(text: str, by: Recall = recall, *, is_ambient: bool = True) -> set[int]:
        return {hit.id for hit in by.search(question(text, is_ambient=is_ambient), Deadline.after(5)).hits}

    # One of two words and nearness; one of two words without a vector is as good as with a near one.
    assert found("zebra quagga") == {both, bare}
    assert found("zebra quagga", is_ambient=False) == {alone, far, both, bare}
    # Where words do not count, nearness decides.
    by_meaning = Recall(store.reading, Meanings(store.model.name, asked), Settings(hybrid_search=False))
    assert found("zebra", by_meaning) == {alone, both}
    # Where meaning cannot be had, words decide.
    by_words = Recall(store.reading, None, Settings())
    assert found("zebra", by_words) == {far, both, bare}


def test_gibberish_finds_nothing_and_the_best_row_lets_lesser_ones_pass(store: Store) -> None:
    asked = unit(random.Random(1), store.model.dim)
    store.say(*(Said(f"turn {n}", vector=unit(random.Random(n), store.model.dim)) for n in range(2, 60)))
    recall = Recall(store.reading, Meanings(store.model.name, asked), Settings())
    assert recall.search(question("xyzzy qwfp"), Deadline.after(5)).hits == ()


def test_an_unmeasured_model_leaves_it_to_the_words_and_says_so(store: Store, database: Database) -> None:
    asked = unit(random.Random(1), store.model.dim)
    near, word = store.say(Said("a striped horse", vector=asked), Said("zebra"))
    recall = Recall(store.reading, Meanings(store.model.name, asked), Settings())
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("UPDATE embedding_models SET unrelated_mean = NULL, unrelated_sd = NULL")
    answer = recall.search(question("zebra"), Deadline.after(5))
    assert [hit.id for hit in answer.hits] == [word]
    assert answer.degraded is not None
    assert "not measured yet" in answer.degraded
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("UPDATE embedding_models SET unrelated_mean = 0, unrelated_sd = 0.125")
    # A question brings along what models there are, for the next one.
    recall.search(question("zebra"), Deadline.after(5))
    answer = recall.search(question("zebra"), Deadline.after(5))
    assert ({hit.id for hit in answer.hits}, answer.degraded) == ({near, word}, None)


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({}, 3),
        ({"scope": Scope.SESSION, "session_id": "s2"}, 1),
        ({"scope": Scope.ALL}, None),
        ({"since": START + timedelta(minutes=1)}, 2),
        ({"until": START + timedelta(minutes=1)}, 1),
        ({"is_ambient": True}, None),
    ],
)
def test_an_empty_answer_knows_how_many_rows_it_searched(store: Store, more: dict[str, Any], size: int | None) -> None:
    store.say("one", "two", Said("three", session="s2"), Said("four", theme="other"))
    answer = Recall(store.reading, None, Settings()).search(question("unheard", **more), Deadline.after(5))
    assert (answer.hits, answer.searched) == ((), size)
    asked = replace(question("unheard"), kind=Kind.MEMORY, targets=("user",))
    store.remember("fleet", "memory", "a fact", None)
    store.remember("fleet", "user", "a person", None)
    assert Recall(store.reading, None, Settings()).search(asked, Deadline.after(5)).searched == 1


def test_hits_are_answered_also_when_their_neighbours_cannot_be_had(database: Database, store: Store) -> None:
    store.say("before", "the zebra budget", "after")
    uses: list[Deadline] = []

    @contextmanager
    def breaking(deadline: Deadline) -> Iterator[Any]:
        uses.append(deadline)
        if len(uses) == 2:
            with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
                owner.execute("REVOKE SELECT ON conversations FROM hermes")
        with translated(), store.reading(deadline) as connection:
            yield connection

    asked = question("zebra", wants_neighbours=True)
    (hit,) = Recall(breaking, None, Settings()).search(asked, Deadline.after(5)).hits
    assert len(uses) == 2
    assert (hit.content, hit.before, hit.after) == ("the zebra budget", None, None)


def test_the_half_life_of_the_settings_decides_how_much_age_counts(store: Store) -> None:
    now = datetime(2026, 6, 20, 12, tzinfo=UTC)
    old, new = store.say(Said("the zebra budget", ts=now - timedelta(days=300)), Said("a zebra walks by", ts=now))
    order = {
        days: [
            hit.id
            for hit in Recall(store.reading, None, Settings(recency_half_life_days=days))
            .search(question("zebra budget", now=now), Deadline.after(5))
            .hits
        ]
        for days in (0.0, 30.0, 3650.0)
    }
    assert order == {0.0: [old, new], 30.0: [new, old], 3650.0: [old, new]}
