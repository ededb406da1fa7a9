"""How Postgres runs the search: from the theme's part of an index alone, whatever is cached and however large it is."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from database.searching import Said, Store, new_store, settle, unit

from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.search import Meaning, Thresholds, search
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
        with VectorIndexes.open(database.owner_dsn) as indexes:
            indexes.create_all()
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            for table in ("turn_vectors", "memory_vectors"):
                owner.execute(
                    f"CREATE INDEX ON {table}_{store.model.id} USING hnsw (embedding halfvec_cosine_ops)".encode()
                )
        settle(database)
        yield database, store


@dataclass(frozen=True, slots=True)
class Ran:
    """A statement that a search ran, and how."""

    function: str
    """The function it stands in."""
    nodes: list[dict[str, Any]]

    def named(self, kind: str) -> list[dict[str, Any]]:
        """The nodes of that type."""
        return [node for node in self.nodes if node["Node Type"] == kind]


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """Every node of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def ask(connection: Any, store: Store, theme: str, scope: Scope = Scope.CURRENT) -> list[Hit]:
    """A question in words and by meaning."""
    question = Question("common word3 zebra", Kind.TURN, theme, scope=scope, limit=10)
    meaning = Meaning(store.model, unit(random.Random(9), DIM))
    with connection.transaction():
        return search(connection, question, meaning, read_wording(question), Thresholds(-1.0, 0.1))


def watched(database: Database, store: Store, theme: str, *, after: int, scope: Scope = Scope.CURRENT) -> list[Ran]:
    """The statements of a search, as run after so many others; they run inside functions, auto_explain tells."""
    told: list[Ran] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        tree = json.loads((notice.message_primary or "").partition("plan:")[2])
        function = re.search(r"PL/pgSQL function (?:\w+\.)?(\w+)\(", notice.context or "")
        told.append(Ran(function[1] if function else "", list(nodes(tree["Plan"]))))

    with psycopg.connect(database.owner_dsn, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(after):
            ask(connection, store, "large")
        connection.execute("LOAD 'auto_explain'")
        connection.execute(
            "SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;"
            "SET auto_explain.log_analyze = on; SET auto_explain.log_format = json; SET client_min_messages = log"
        )
        connection.add_notice_handler(note)
        ask(connection, store, theme, scope)
    return told


@pytest.mark.parametrize("theme", ["large", "middle", "small"])
@pytest.mark.parametrize("after", [0, 7])
def test_a_theme_is_searched_from_its_codes_alone(filled: tuple[Database, Store], theme: str, after: int) -> None:
    database, store = filled
    told = watched(database, store, theme, after=after)
    used = {node["Index Name"] for ran in told for node in ran.nodes if "Index Name" in node}
    assert not any(name.endswith("_all") or "embedding_idx" in name for name in used), used
    rows = {"large": 3000, "middle": 600, "small": 40}[theme]
    (coarse,) = [ran for ran in told if ran.function == "hermes_candidates_in_theme"]
    (scan,) = coarse.named("Index Only Scan")
    assert scan["Index Name"] == f"turn_vectors_{store.model.id}_codes"
    assert scan["Heap Fetches"] == 0
    assert scan["Actual Rows"] == rows
    portions = []
    for ran in told:
        if ran.function == "hermes_nearest_in_theme" and ran.named("Index Scan"):
            (scan,) = ran.named("Index Scan")
            assert scan["Index Name"] == f"turn_vectors_{store.model.id}_pkey"
            portions.append(scan["Actual Rows"])
    # What fits is compared at once; else each portion is as large as all before it.
    allowed = [[rows]] if rows < store.model.candidates else [[400, 400], [400, 400, 800]]
    assert portions in allowed
    # The handful of renamed themes is read as a whole.
    scanned = {scan["Relation Name"] for ran in told for scan in ran.named("Seq Scan")}
    assert scanned <= {"theme_aliases"}


def test_the_rare_theme_gets_its_ten_rows_after_many_calls(filled: tuple[Database, Store]) -> None:
    """Plans are kept per connection, here made for another theme: the answer must stay the same."""
    database, store = filled
    with psycopg.connect(database.runtime_dsn, autocommit=True, prepare_threshold=1) as connection:
        first = ask(connection, store, "small")
        for _ in range(20):
            ask(connection, store, "large")
        last = ask(connection, store, "small")
    assert len(first) == 10
    assert first == last


def by_shared_index(told: list[Ran]) -> list[Ran]:
    """The statements that ask the index over all themes; what sets its parameters reads no table."""
    return [ran for ran in told if ran.function == "hermes_candidates_by_shared_index" and len(ran.nodes) > 1]


def test_scope_all_reads_codes_alone_or_the_index_made_for_it(filled: tuple[Database, Store]) -> None:
    database, store = filled
    (public,) = by_shared_index(watched(database, store, "small", after=0, scope=Scope.ALL))
    scans = [node["Index Name"] for node in public.nodes if "Index Name" in node]
    assert scans[0].endswith(("_all", "_codes"))
    assert not public.named("Seq Scan")
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        # What makes a scan of all keys dear on a large table.
        owner.execute("ALTER ROLE CURRENT_USER SET enable_sort = off")
        try:
            (public,) = by_shared_index(watched(database, store, "small", after=0, scope=Scope.ALL))
        finally:
            owner.execute("ALTER ROLE CURRENT_USER RESET enable_sort")
    assert any(node.get("Index Name", "").endswith("_all") for node in public.nodes)


@pytest.mark.parametrize("theme", ["large", "small"])
@pytest.mark.parametrize("after", [0, 7])
def test_words_are_looked_up_in_the_themes_part_of_their_index(
    filled: tuple[Database, Store], theme: str, after: int
) -> None:
    database, store = filled
    told = watched(database, store, theme, after=after)
    lookups = [ran for ran in told if ran.function == "hermes_look_up_terms" and len(ran.nodes) > 1]
    assert lookups
    for ran in lookups:
        (scan,) = ran.named("Bitmap Index Scan")
        assert scan["Index Name"] == "conversations_lexemes"
        assert {node["Index Name"] for node in ran.nodes if "Index Name" in node} == {"conversations_lexemes"}
        assert not ran.named("Seq Scan")
