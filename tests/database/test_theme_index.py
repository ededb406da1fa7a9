"""A very large theme that has an index of its own is searched through it, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from database.searching import START, Said, Store, new_store, settle, unit
from database.test_plans import DIM, Ran, watched

from hermes_memory_pgvector.recall.recall import EVERY_ROW
from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes, theme_index_name
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.values import Scope
from testing.postgres import Database

NAME = theme_index_name(1, "large")


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo) -> Iterator[tuple[Database, Store]]:
    """Two themes in every pair of rows; only the large one has an index, and a scan of its keys looks dear."""
    with new_store(postgres_server, DIM) as (database, store):
        generator = random.Random(1)
        for start in range(0, 1500, 300):
            store.say(
                *(
                    Said(f"said {n}", theme, session=f"s{n}", vector=unit(generator, DIM))
                    for n in range(start, start + 300)
                    for theme in ("large", "other")
                )
            )
        settle(database)
        with VectorIndexes.open(database.owner_dsn) as indexes:
            indexes.create_theme("large", force=True)
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            owner.execute("ALTER ROLE CURRENT_USER SET enable_sort = off")
            try:
                yield database, store
            finally:
                owner.execute("ALTER ROLE CURRENT_USER RESET enable_sort")


def scans(told: list[Ran]) -> set[str]:
    """The indexes of vectors that were read."""
    return {node["Index Name"] for ran in told for node in ran.nodes if "vectors" in node.get("Index Name", "")}


@pytest.mark.parametrize("after", [0, 7])
def test_the_theme_with_an_index_uses_it(filled: tuple[Database, Store], after: int) -> None:
    database, store = filled
    told = watched(database, store, "large", after=after)
    (coarse,) = [ran for ran in told if ran.function == "hermes_candidates_by_theme_index" and len(ran.nodes) > 1]
    (scan,) = coarse.named("Index Scan")
    assert scan["Index Name"] == NAME
    assert scan["Actual Rows"] >= 0.9 * min(store.model.candidates, 1500)
    assert not [ran for ran in told if ran.function == "hermes_candidates_in_theme"]


@pytest.mark.parametrize("scope", [Scope.CURRENT, Scope.ALL])
def test_another_theme_does_not(filled: tuple[Database, Store], scope: Scope) -> None:
    database, store = filled
    assert NAME not in scans(watched(database, store, "other", after=3, scope=scope))


def test_the_answer_is_that_of_the_scan(filled: tuple[Database, Store]) -> None:
    _, store = filled
    generator = random.Random(5)
    exact = Store(store.connection, replace(store.model, candidates=EVERY_ROW))
    found = missed = 0
    for _ in range(20):
        asked = unit(generator, DIM)
        true = {hit.id for hit in exact.ask("", asked, theme="large", min_similarity=-1.0)}
        hits = {hit.id for hit in store.ask("", asked, theme="large", min_similarity=-1.0)}
        assert len(hits) == 10
        found += len(hits & true)
        missed += len(true - hits)
    assert found / (found + missed) > 0.9


@pytest.mark.parametrize(
    "more", [{"since": START + timedelta(hours=2)}, {"until": START + timedelta(hours=2)}, {"scope": Scope.SESSION}]
)
def test_a_bounded_search_is_exact_within_its_bounds(filled: tuple[Database, Store], more: dict[str, Any]) -> None:
    """An index over the whole theme could leave a narrow search with nothing."""
    _, store = filled
    asked = unit(random.Random(6), DIM)
    exact = Store(store.connection, replace(store.model, candidates=EVERY_ROW))
    session: dict[str, Any] = {"session_id": "s77"} if "scope" in more else {}
    answers = [
        [hit.id for hit in each.ask("", asked, theme="large", min_similarity=-1.0, **more, **session)]
        for each in (store, exact)
    ]
    assert answers[0] == answers[1]
    assert answers[0]


def test_without_its_index_the_theme_is_searched_as_before(filled: tuple[Database, Store]) -> None:
    database, store = filled
    with VectorIndexes.open(database.owner_dsn) as indexes:
        indexes.drop_theme("large")
        assert scans(watched(database, store, "large", after=0)) == {"turn_vectors_1_codes", "turn_vectors_1_pkey"}
        indexes.create_theme("large", force=True)
