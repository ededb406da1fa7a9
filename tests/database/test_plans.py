"""How Postgres runs the search: from the theme's part of two indexes, whatever is cached and however large it is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from database.searching import Said, Store, new_store, opened_up, settle, unit

from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.schema import vector_indexes
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.search import Meaning, search
from hermes_memory_pgvector.values import Hit, Kind, Question, Scope
from testing.postgres import Database

DIM = 256


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo) -> Iterator[tuple[Database, Store]]:
    """One large, one middle and one small theme, analysed, and an index over all themes that must never be used."""
    with new_store(postgres_server, DIM) as (database, store):
        generator = random.Random(1)
        for theme, rows in (("large", 3000), ("middle", 600), ("small", 40)):
            for start in range(0, rows, 300):
                store.say(
                    *(
                        Said(f"word{n % 7} common {theme} {n}", theme, vector=unit(generator, DIM))
                        for n in range(start, min(start + 300, rows))
                    )
                )
        vector_indexes.create(database.owner_dsn)
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            for table in ("turn_vectors", "memory_vectors"):
                owner.execute(
                    f"CREATE INDEX ON {table}_{store.model.id} USING hnsw (embedding halfvec_cosine_ops)".encode()
                )
        settle(database)
        yield database, store


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """Every node of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def ask(connection: Any, store: Store, theme: str, scope: Scope = Scope.CURRENT) -> list[Hit]:
    """A question in words and by meaning."""
    question = Question("common word3 zebra", Kind.TURN, theme, scope=scope, limit=10)
    meaning = Meaning(opened_up(store.model), unit(random.Random(9), DIM))
    with connection.transaction():
        return search(connection, question, meaning, read_wording(question))


def watched(
    database: Database, store: Store, theme: str, *, scope: Scope = Scope.CURRENT, more: str = "SELECT"
) -> list[dict[str, Any]]:
    """The nodes of the plan a search runs by; auto_explain tells."""
    told: list[Any] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        told.append(json.loads((notice.message_primary or "").partition("plan:")[2])["Plan"])

    with psycopg.connect(database.owner_dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("LOAD 'auto_explain'")
        connection.execute(
            "SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;"
            "SET auto_explain.log_format = json; SET client_min_messages = log"
        )
        connection.execute(more.encode())
        connection.add_notice_handler(note)
        ask(connection, store, theme, scope)
    return list(nodes(max(told, key=lambda plan: len(str(plan)))))


def scans(found: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Which indexes are read, by how."""
    kinds: dict[str, set[str]] = {}
    for node in found:
        if "Index Name" in node:
            kinds.setdefault(node["Node Type"], set()).add(node["Index Name"])
    return kinds


@pytest.mark.parametrize("theme", ["large", "middle", "small"])
def test_a_theme_is_searched_from_its_part_of_two_indexes(filled: tuple[Database, Store], theme: str) -> None:
    database, store = filled
    found = watched(database, store, theme)
    used = scans(found)
    key = f"turn_vectors_{store.model.id}_pkey"
    assert not any(name.endswith("_all") or "embedding_idx" in name for names in used.values() for name in names), used
    assert key in used["Index Only Scan"]
    whole = [node for node in found if node.get("Index Name") == key and node["Actual Loops"] == 1]
    assert [(node["Actual Rows"], node["Heap Fetches"]) for node in whole] == [
        ({"large": 3000, "middle": 600, "small": 40}[theme], 0)
    ]
    # Words come from the index of words alone; each is looked up once.
    assert used["Bitmap Index Scan"] == {"conversations_lexemes"}
    # The handful of renamed themes, and of rows held back, is read as a whole.
    read = {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"}
    assert read <= {"theme_aliases", "quarantined_turns"}


def test_scope_all_uses_the_index_made_for_it(filled: tuple[Database, Store]) -> None:
    database, store = filled
    # What makes comparing them all dear on a large table.
    used = scans(watched(database, store, "small", scope=Scope.ALL, more="SET enable_sort = off"))
    # The other one is as good for that.
    assert any(name.endswith(("_all", "embedding_idx")) for name in used.get("Index Scan", ())), used


def test_the_rare_theme_gets_its_ten_rows_after_many_calls(filled: tuple[Database, Store]) -> None:
    """Plans may be kept per connection, here made for another theme: the answer must stay the same."""
    database, store = filled
    with psycopg.connect(database.runtime_dsn, autocommit=True, prepare_threshold=1) as connection:
        first = ask(connection, store, "small")
        for _ in range(20):
            ask(connection, store, "large")
        last = ask(connection, store, "small")
    assert len(first) == 10
    assert first == last
