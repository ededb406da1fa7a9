"""How Postgres runs the search: from the theme's part of an index alone, whatever is cached and however large it is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from database.searching import Said, Store, opened, settle, store_of, unit
from fixtures.postgres import Database, new_database

from hermes_memory_pgvector import migrate
from hermes_memory_pgvector.model import Kind, Question
from hermes_memory_pgvector.model_tables import ModelSpec
from hermes_memory_pgvector.recall import read_wording
from hermes_memory_pgvector.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.store.codes import code_of
from hermes_memory_pgvector.store.models import HalfVector, find_model
from hermes_memory_pgvector.store.statements import FOLDER, model_statement, vector_tables
from hermes_memory_pgvector.store.statements import statement as settings

DIM = 256


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo) -> Iterator[tuple[Database, Store]]:
    """One large, one middle and one small theme, analysed, and an index over all themes that must never be used."""
    with new_database(postgres_server) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec("model", DIM))
        with store_of(database) as store:
            generator = random.Random(1)
            for theme, rows in (("large", 3000), ("middle", 600), ("small", 40)):
                for start in range(0, rows, 300):
                    store.say(
                        *(
                            Said(f"word{n % 7} common {theme} {n}", theme, vector=unit(generator, DIM))
                            for n in range(start, min(start + 300, rows))
                        )
                    )
            with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
                owner.execute(
                    psycopg.sql.SQL((FOLDER / "index_all.sql").read_text()).format(**vector_tables(store.model.id))
                )
                for table in ("turn_vectors", "memory_vectors"):
                    owner.execute(
                        f"CREATE INDEX ON {table}_{store.model.id} USING hnsw (embedding halfvec_cosine_ops)".encode()
                    )
            settle(database)
            yield database, store


def parameters(theme: str, text: str = "common word3 zebra") -> dict[str, Any]:
    """What a question binds."""
    question = Question(text, Kind.TURN, theme)
    wording = read_wording(question)
    vector = unit(random.Random(9), DIM)
    return {
        "theme": theme, "narrow": None, "since": None, "until": None, "everywhere": False,
        "terms": [term.lexemes[0] for term in wording.terms], "queries": [term.query for term in wording.terms],
        "own_queries": [term.own_query for term in wording.terms], "weights": [term.weight for term in wording.terms],
        "vector": HalfVector(vector), "code": code_of(vector), "candidates": 400, "min_similarity": -1.0,
        "min_coverage": 0.1, "asks_when": False, "speaker": None, "period_start": None, "period_end": None,
        "half_life_days": 0.0, "now": datetime(2026, 1, 1, tzinfo=UTC), "limit": 10,
    }  # fmt: skip


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """Every node of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def explained(connection: Any, store: Store, name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of a statement's plan, as run."""
    statement = psycopg.sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + model_statement(name, store.model.id)
    with connection.transaction():
        if name.endswith("_theme"):
            connection.execute(settings("search_settings_theme"))
        row: Any = connection.execute(statement, given).fetchone()
    tree = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return list(nodes(tree[0]["Plan"]))


@pytest.mark.parametrize("theme", ["large", "middle", "small"])
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_a_theme_is_searched_from_its_key_alone(filled: tuple[Database, Store], theme: str, mode: str) -> None:
    database, store = filled
    with opened(database) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        if mode == "force_generic_plan":
            connection.prepare_threshold = 0
        found = explained(connection, store, "search_turns_theme", parameters(theme))
    used = {node["Index Name"] for node in found if "Index Name" in node}
    assert not any("code_idx" in name or "embedding_idx" in name for name in used), used
    scans = [node for node in found if node["Node Type"] == "Index Only Scan"]
    assert [scan["Index Name"] for scan in scans] == [f"turn_vectors_{store.model.id}_pkey"]
    assert scans[0]["Heap Fetches"] == 0
    assert not [node for node in found if node["Node Type"] == "Seq Scan"]
    rows = {"large": 3000, "middle": 600, "small": 40}[theme]
    assert scans[0]["Actual Rows"] == rows


def test_the_rare_theme_gets_its_ten_rows_after_many_calls(filled: tuple[Database, Store]) -> None:
    """With prepared statements Postgres may switch to a generic plan after five runs: the answer must stay the same."""
    database, store = filled
    statement = model_statement("search_turns_theme", store.model.id)
    with opened(database) as connection:
        connection.prepare_threshold = 1
        first: list[Any] = connection.execute(statement, parameters("small")).fetchall()
        for _ in range(20):
            connection.execute(statement, parameters("large")).fetchall()
        last: list[Any] = connection.execute(statement, parameters("small")).fetchall()
    assert len(first) == 10
    assert first == last


def test_scope_all_can_use_the_index_made_for_it(filled: tuple[Database, Store]) -> None:
    database, store = filled
    with opened(database) as connection:
        connection.execute("SET enable_seqscan = off; SET enable_sort = off; SET hnsw.ef_search = 400")
        found = explained(connection, store, "search_turns_all", parameters("small"))
    assert any("code_idx" in node.get("Index Name", "") for node in found)


@pytest.mark.parametrize("theme", ["large", "small"])
def test_words_are_looked_up_in_the_themes_part_of_their_index(
    filled: tuple[Database, Store], theme: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The look-ups happen inside a function: auto_explain tells how, also once their plans are cached."""
    database, store = filled
    told: list[str] = []
    with psycopg.connect(database.owner_dsn, autocommit=True, prepare_threshold=None) as connection:
        statement = model_statement("search_turns_theme", store.model.id)
        for _ in range(7):
            connection.execute(statement, parameters(theme)).fetchall()
        connection.execute("LOAD 'auto_explain'")
        connection.execute(
            "SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;"
            "SET client_min_messages = log"
        )
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute(statement, parameters(theme)).fetchall()
    lookups = [plan for plan in told if "FROM conversations AS r" in plan and "LIMIT too_many" in plan]
    assert lookups
    for plan in lookups:
        assert "Bitmap Index Scan on conversations_lexemes" in plan
        assert "Seq Scan" not in plan
        assert "conversations_pkey" not in plan


def test_the_model_of_a_name_is_found(filled: tuple[Database, Store]) -> None:
    _, store = filled
    assert find_model(store.connection, "model", DIM) == store.model
