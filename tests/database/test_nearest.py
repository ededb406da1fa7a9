"""The rows of a theme that a search finds by meaning are those that brute force finds, whatever its size."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy
import pytest
from database.searching import START, Said, Store, new_store, opened_up, settle, store_of, unit

from hermes_memory_pgvector.schema import vector_indexes
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.search import Meaning, Wording, search
from hermes_memory_pgvector.values import Hit, Kind, Question, Scope
from testing.postgres import Database

DIM = 128
ROWS = 6000
KINDS = 40


@pytest.fixture(scope="module")
def large(postgres_server: ConnectionInfo) -> Iterator[tuple[Database, Store, list[list[float]], Any, list[int]]]:
    """One theme whose rows lie around some subjects: those subjects, all vectors, and the ids in their order."""
    generator = random.Random(4)
    subjects = [unit(generator, DIM) for _ in range(KINDS)]
    vectors = [unit(generator, DIM, subjects[n % KINDS], 0.6) for n in range(ROWS)]
    with new_store(postgres_server, DIM) as (database, store):
        ids: list[int] = []
        for start in range(0, ROWS, 500):
            ids += store.say(
                *(
                    Said(f"n{n}", session=f"s{n % 7}", vector=vectors[n], ts=START + timedelta(minutes=n))
                    for n in range(start, start + 500)
                )
            )
        settle(database)
        yield database, store, subjects, numpy.array(vectors), ids


def hits_of(store: Store, vector: Sequence[float], limit: int = 10, **narrowed: Any) -> list[Hit]:
    question = Question("", Kind.TURN, "fleet", limit=limit, **narrowed)
    meaning = Meaning(opened_up(store.model), vector)
    with store.connection.transaction():
        return search(store.connection, question, meaning, Wording())


def nearest(matrix: Any, ids: Sequence[int], vector: Sequence[float], among: Sequence[int], count: int) -> set[int]:
    """What brute force finds among these rows."""
    similarity = matrix[list(among)] @ numpy.array(vector)
    return {ids[among[place]] for place in numpy.argsort(-similarity)[:count]}


def agreement(found: Sequence[Hit], wanted: set[int]) -> float:
    return len({hit.id for hit in found} & wanted) / len(wanted)


@pytest.mark.parametrize("limit", [10, 20, 50])
def test_a_theme_gets_what_brute_force_gives(large: Any, limit: int) -> None:
    _, store, subjects, matrix, ids = large
    generator = random.Random(5)
    shares = []
    for subject in [*subjects[:10], *(unit(generator, DIM) for _ in range(10))]:
        asked = unit(generator, DIM, subject, 0.7)
        shares.append(agreement(hits_of(store, asked, limit), nearest(matrix, ids, asked, range(ROWS), limit)))
    # Half-precision numbers may order near ties differently.
    assert sum(shares) / len(shares) >= 0.99


def test_bounds_are_part_of_it(large: Any) -> None:
    _, store, subjects, matrix, ids = large
    generator = random.Random(6)
    for subject in subjects[:10]:
        asked = unit(generator, DIM, subject, 0.7)
        session = hits_of(store, asked, scope=Scope.SESSION, session_id="s3")
        assert agreement(session, nearest(matrix, ids, asked, range(3, ROWS, 7), 10)) >= 0.9
        late = hits_of(store, asked, since=START + timedelta(minutes=5000))
        assert agreement(late, nearest(matrix, ids, asked, range(5000, ROWS), 10)) >= 0.9


def test_scope_all_gets_nearly_the_same_with_and_without_its_index(large: Any) -> None:
    database, store, subjects, matrix, ids = large
    generator = random.Random(8)
    questions = [unit(generator, DIM, subject, 0.7) for subject in subjects[:10]]

    def shares() -> list[float]:
        return [
            agreement(hits_of(store, asked, scope=Scope.ALL), nearest(matrix, ids, asked, range(ROWS), 10))
            for asked in questions
        ]

    assert sum(shares()) >= 9.9
    vector_indexes.create(database.owner_dsn)
    try:
        assert sum(shares()) >= 9.5
    finally:
        vector_indexes.drop(database.owner_dsn)


def test_the_same_text_said_often_does_not_crowd_out_the_rest(database: Database) -> None:
    generator = random.Random(7)
    prompt = unit(generator, DIM)
    with store_of(database, DIM) as store:
        store.say(*(Said("the same prompt", session=f"s{n}", vector=prompt) for n in range(450)))
        store.say(*(Said(f"other {n}", vector=unit(generator, DIM, prompt, 0.3)) for n in range(30)))
        settle(database)
        hits = hits_of(store, prompt)
    assert hits[0].content == "the same prompt"
    assert hits[0].count == 450
    assert len({hit.content for hit in hits}) == 10


def test_a_text_in_several_pieces_counts_once(database: Database) -> None:
    generator = random.Random(9)
    asked = unit(generator, DIM)
    with store_of(database, DIM) as store:
        (said,) = store.say(Said("a long text", vector=unit(generator, DIM)))
        store.connection.execute(
            f"INSERT INTO turn_vectors_{store.model.id} (agent_identity, id, chunk, ts, content_hash, embedding)"
            f" SELECT agent_identity, id, 1, ts, content_hash, %s::halfvec FROM turn_vectors_{store.model.id}".encode(),
            (str(asked),),
        )
        for scope in (Scope.CURRENT, Scope.ALL):
            (hit,) = hits_of(store, asked, scope=scope)
            assert (hit.id, hit.count) == (said, 1)
            assert hit.score == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("dim", [1152, 1153, 2000])
def test_vectors_that_fit_no_index_entry_are_found_as_well(database: Database, dim: int) -> None:
    generator = random.Random(dim)
    asked = unit(generator, dim)
    longest = "t" * 256
    with store_of(database, dim) as store:
        near, _ = store.say(
            Said("near", theme=longest, vector=unit(generator, dim, asked, 0.8)),
            Said("far", theme=longest, vector=unit(generator, dim)),
        )
        hits = store.ask("", asked, theme=longest, is_open=True)
    assert hits[0].id == near
    assert len(hits) == 2
