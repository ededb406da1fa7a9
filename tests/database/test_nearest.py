"""The search by code against brute force, in a theme large enough that most of its rows are never sorted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from database.searching import Said, Store, new_store, settle, store_of, unit

from hermes_memory_pgvector.recall.recall import EVERY_ROW
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.search import Meaning, Thresholds, Wording, search
from hermes_memory_pgvector.values import Kind, Question, Scope
from testing.postgres import Database

DIM = 128
ROWS = 6000
KINDS = 40


@pytest.fixture(scope="module")
def large(postgres_server: ConnectionInfo) -> Iterator[tuple[Store, list[list[float]]]]:
    """One theme whose rows lie around some subjects, and those subjects."""
    generator = random.Random(4)
    subjects = [unit(generator, DIM) for _ in range(KINDS)]
    with new_store(postgres_server, DIM) as (database, store):
        for start in range(0, ROWS, 500):
            store.say(
                *(
                    Said(f"n{n}", vector=unit(generator, DIM, subjects[n % KINDS], 0.6))
                    for n in range(start, start + 500)
                )
            )
        settle(database)
        yield store, subjects


def found(store: Store, vector: Sequence[float], candidates: int, limit: int = 10, **narrowed: Any) -> list[int]:
    question = Question("", Kind.TURN, "fleet", limit=limit, **narrowed)
    meaning = Meaning(replace(store.model, candidates=candidates), vector)
    with store.connection.transaction():
        return [hit.id for hit in search(store.connection, question, meaning, Wording(), Thresholds(-1.0, 0.0))]


@pytest.mark.parametrize("limit", [10, 20])
def test_questions_about_its_subjects_get_what_brute_force_gives(
    large: tuple[Store, list[list[float]]], limit: int
) -> None:
    store, subjects = large
    generator = random.Random(5)
    for subject in subjects[:15]:
        asked = unit(generator, DIM, subject, 0.7)
        assert found(store, asked, store.model.candidates, limit) == found(store, asked, EVERY_ROW, limit)


def test_scope_all_without_its_index_gets_what_brute_force_gives(large: tuple[Store, list[list[float]]]) -> None:
    store, subjects = large
    generator = random.Random(8)
    for subject in subjects[:10]:
        asked = unit(generator, DIM, subject, 0.7)
        exact = found(store, asked, EVERY_ROW, scope=Scope.ALL)
        assert found(store, asked, store.model.candidates, scope=Scope.ALL) == exact
    # A sample that says nothing of the rows wanted costs a second look, never an answer.
    assert (
        len(found(store, asked, store.model.candidates, scope=Scope.ALL, since=datetime(2000, 1, 1, tzinfo=UTC))) == 10
    )


def test_a_question_about_nothing_in_it_compares_more_rows_and_finds_nearly_all(
    large: tuple[Store, list[list[float]]],
) -> None:
    store, _ = large
    generator = random.Random(6)
    few, usual = 0, 0
    for _ in range(10):
        asked = unit(generator, DIM)
        exact = set(found(store, asked, EVERY_ROW))
        few += len(exact & set(found(store, asked, 100)))
        usual += len(exact & set(found(store, asked, store.model.candidates)))
    assert usual >= 98
    assert few < usual


def test_the_same_text_said_often_does_not_crowd_out_the_rest(database: Database) -> None:
    generator = random.Random(7)
    prompt = unit(generator, DIM)
    with store_of(database, DIM) as store:
        store.say(*(Said("the same prompt", session=f"s{n}", vector=prompt) for n in range(450)))
        store.say(*(Said(f"other {n}", vector=unit(generator, DIM, prompt, 0.3)) for n in range(30)))
        settle(database)
        question = Question("", Kind.TURN, "fleet", limit=10)
        with store.connection.transaction():
            hits = search(store.connection, question, Meaning(store.model, prompt), Wording(), Thresholds(-1.0, 0.0))
    assert hits[0].content == "the same prompt"
    assert hits[0].count == 450
    assert len({hit.content for hit in hits}) == 10


def test_a_small_theme_is_compared_whole_whatever_its_codes_say(database: Database) -> None:
    generator = random.Random(9)
    side = [0.0, *(generator.choice((-1.0, 1.0)) / (DIM - 1) ** 0.5 for _ in range(DIM - 1))]
    asked = [0.9, *(0.436 * number for number in side[1:])]
    # All numbers but one have the other sign, so its code is as far as can be; that one number decides the distance.
    nearest = [0.9, *(-number for number in asked[1:])]
    with store_of(database, DIM) as store:
        store.say(*(Said(f"n{n}", vector=unit(generator, DIM, side, 0.9 if n < 20 else 0.1)) for n in range(1200)))
        store.say(Said("the nearest", vector=nearest))
        settle(database)
        assert found(store, asked, EVERY_ROW)[0] == found(store, asked, store.model.candidates)[0]
