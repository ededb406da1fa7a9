"""SQL functions, each by itself: those that need no rows to search, and what holds for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from database.searching import Said, store_of
from psycopg.rows import TupleRow

import hermes_memory_pgvector
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import ModelSpec
from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes
from hermes_memory_pgvector.store.tombstones import keyed_hash
from testing.postgres import Database

SQL = Path(hermes_memory_pgvector.__file__).parent / "sql"
FILES = sorted((SQL / "functions").rglob("*.sql"))
LONGEST = 60
"""Lines of a file, its comments included."""


@pytest.fixture
def owner(database: Database) -> Iterator[psycopg.Connection[TupleRow]]:
    """The owner's connection."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        yield connection


def value(connection: psycopg.Connection[TupleRow], call: str, *values: Any) -> Any:
    """What a function answers."""
    row: Any = connection.execute(f"SELECT {call}".encode(), values).fetchone()
    return row[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_file_makes_one_function_of_its_name_and_says_what_for(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("-- ")
    assert re.findall(r"^CREATE .*", text, re.MULTILINE) == [
        line for line in text.splitlines() if line.startswith(f"CREATE OR REPLACE FUNCTION hermes_{file.stem}(")
    ]
    assert len(re.findall(r"^CREATE ", text, re.MULTILINE)) == 1
    assert len(text.splitlines()) <= LONGEST


@pytest.mark.parametrize("stem", sorted({file.stem for file in FILES}))
def test_a_function_has_a_test_of_its_own(stem: str) -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_functions*.py"))
    assert re.search(rf"^def test_{stem}_\w+\(", tests, re.MULTILINE)
    assert f"hermes_{stem}(" in tests


def test_there_are_no_other_functions(database: Database, owner: psycopg.Connection[TupleRow]) -> None:
    migrate.apply(database.owner_dsn, model=ModelSpec("other-model", 32))
    made = owner.execute(
        "SELECT proname, count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        " AND starts_with(proname, 'hermes_') GROUP BY 1"
    ).fetchall()
    copies = {"functions": 1, "per_kind": 2, "per_model": 4}
    wanted: dict[str, int] = {}
    for file in FILES:
        name = f"hermes_{file.stem}"
        wanted[name] = wanted.get(name, 0) + copies[file.parent.name]
    own = re.findall(r"FUNCTION (hermes_\w+)", SQL.joinpath("functions.sql").read_text(encoding="utf-8"))
    assert dict(made) == {**wanted, **dict.fromkeys(own, 1)}


def test_code_is_that_of_the_vector_tables(database: Database, owner: psycopg.Connection[TupleRow]) -> None:
    for dim in (32, 64, 500, 2100):
        model = migrate.apply(database.owner_dsn, model=ModelSpec(f"model-{dim}", dim)).model_id
        owner.execute(
            f"INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'said {dim}');"
            f"INSERT INTO turn_vectors_{model} (agent_identity, id, ts, content_hash, embedding)"
            " SELECT agent_identity, id, ts, 0, l2_normalize((SELECT array_agg(sin(n)) FROM"
            f" generate_series(1, {dim}) AS n)::halfvec) FROM conversations WHERE content = 'said {dim}'".encode()
        )
        row: Any = owner.execute(
            f"SELECT code = hermes_code(embedding), bit_count(code) FROM turn_vectors_{model}".encode()
        ).fetchone()
        assert row[0]
        assert row[1] > 0


def test_code_bounds_are_more_where_dimensions_are_few(owner: psycopg.Connection[TupleRow]) -> None:
    assert [len(value(owner, "hermes_code_bounds(%s)", dim)) for dim in (1, 384, 385, 2048, 2049)] == [4, 4, 2, 2, 1]


def test_content_hash_is_equal_for_equal_texts_alone(owner: psycopg.Connection[TupleRow]) -> None:
    assert value(owner, "hermes_content_hash('a') = hermes_content_hash('a')")
    assert value(owner, "hermes_content_hash('a') <> hermes_content_hash('A')")


def test_digest_is_the_sha256_of_the_text(owner: psycopg.Connection[TupleRow]) -> None:
    assert value(owner, "hermes_digest('ü') = sha256(convert_to('ü', 'UTF8'))")


def test_turn_digest_tells_who_said_it(owner: psycopg.Connection[TupleRow]) -> None:
    assert value(owner, "octet_length(hermes_turn_digest('user', 'yes'))") == 16
    assert value(owner, "hermes_turn_digest('user', 'yes') <> hermes_turn_digest('assistant', 'yes')")


def test_is_private_of_direct_messages_groups_and_benchmarks(owner: psycopg.Connection[TupleRow]) -> None:
    themes = ["dm-bob", "group-7", "_bench", "default", "dmx", "groups", "_benchmark", ""]
    private = [theme for theme in themes if value(owner, "hermes_is_private(%s)", theme)]
    assert private == ["dm-bob", "group-7", "_bench"]


def test_origin_of_turn_follows_from_the_role_where_it_was_not_noted(owner: psycopg.Connection[TupleRow]) -> None:
    call = "hermes_origin_of_turn(%s::text, %s)"
    told = [(None, "user"), (None, "assistant"), (None, "tool"), (None, "system"), ("import", "user")]
    found = ["user", "assistant", "delegation", "unknown", "import"]
    assert [value(owner, call, *each) for each in told] == found


def test_origin_of_memory_follows_from_the_stamps_where_it_was_not_noted(owner: psycopg.Connection[TupleRow]) -> None:
    call = "hermes_origin_of_memory(%s::text, %s::jsonb)"
    told = [(None, "{}"), (None, '{"write_origin": "x"}'), (None, '{"imported_from": "mem0"}'), ("file", "{}")]
    assert [value(owner, call, *each) for each in told] == ["unknown", "memory_tool", "import", "file"]


def test_is_from_knows_origins_tools_and_trust(owner: psycopg.Connection[TupleRow]) -> None:
    call = "hermes_is_from('assistant', %s::text, %s::jsonb, %s)"
    tools = '{"tools": ["web", "mcp"]}'
    assert [value(owner, call, "untrusted", tools, name) for name in ("assistant", "mcp", "untrusted")] == [True] * 3
    assert [value(owner, call, "untrusted", tools, name) for name in ("user", "browser", "exposed")] == [False] * 3
    assert value(owner, call, None, "{}", "untrusted") is False


def test_is_within_knows_every_bound(owner: psycopg.Connection[TupleRow]) -> None:
    at, row = datetime(2026, 3, 1, tzinfo=UTC), ("market", "s1", "assistant", None, '{"tools": ["web"]}')
    call = "hermes_is_within(%s, %s, %s, %s::timestamptz, %s::timestamptz, %s, %s, %s, %s, %s::jsonb, %s::timestamptz)"
    for bounds, expected in (
        ((None, None, None, None, None), True), (("market", "s1", "web", at, None), True),
        (("garden", None, None, None, None), False), ((None, "s2", None, None, None), False),
        ((None, None, "user", None, None), False), ((None, None, None, at + timedelta(seconds=1), None), False),
        ((None, None, None, None, at), False),
    ):  # fmt: skip
        assert value(owner, call, *bounds, *row, at) is expected, bounds


def test_quote_lexeme_survives_any_sign(owner: psycopg.Connection[TupleRow]) -> None:
    for lexeme in ("plain", "it's", "back\\slash", "a:b*&|!()", "~=theme"):
        assert value(owner, "tsvector_to_array(hermes_quote_lexeme(%s)::tsvector)", lexeme) == [lexeme]


def test_theme_lexemes_of_a_private_theme_are_its_own_alone(owner: psycopg.Connection[TupleRow]) -> None:
    assert value(owner, "tsvector_to_array(hermes_theme_lexemes('fleet'))") == ["~=fleet", "~all"]
    assert value(owner, "tsvector_to_array(hermes_theme_lexemes('dm-bob'))") == ["~=dm-bob"]


@pytest.mark.parametrize(
    ("theme", "all_themes", "seen"),
    [
        ("fleet", False, {"fleet"}),
        ("dm-bob", False, {"dm-bob"}),
        ("fleet", True, {"fleet", "other"}),
        ("dm-bob", True, {"fleet", "other", "dm-bob"}),
    ],
)
def test_theme_query_matches_what_may_be_seen(
    owner: psycopg.Connection[TupleRow], theme: str, all_themes: bool, seen: set[str]
) -> None:
    found = {
        each
        for each in ("fleet", "other", "dm-bob", "dm-eve")
        if value(owner, "hermes_theme_lexemes(%s) @@ hermes_theme_query(%s, %s)", each, theme, all_themes)
    }
    assert found == seen


def test_plain_lexemes_fold_accents_and_stem(owner: psycopg.Connection[TupleRow]) -> None:
    lexemes = value(owner, "tsvector_to_array(hermes_plain_lexemes('fleet', 'Running to the Café'))")
    assert {"run", "running", "cafe", "~=fleet", "~all"} <= set(lexemes)


def test_unspaced_lexemes_are_signs_and_pairs(owner: psycopg.Connection[TupleRow]) -> None:
    assert set(value(owner, "tsvector_to_array(hermes_unspaced_lexemes('北京天 x'))")) == {
        "北",
        "北京",
        "京",
        "京天",
        "天",
    }


def test_fill_lexemes_makes_a_row_by_hand_findable(owner: psycopg.Connection[TupleRow]) -> None:
    """hermes_fill_lexemes() is the trigger of new and of edited rows."""
    owner.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'zebra')")
    assert value(owner, "lexemes @@ 'zebra' FROM conversations")
    owner.execute("UPDATE conversations SET content = 'horse'")
    assert value(owner, "lexemes @@ 'horse' AND NOT lexemes @@ 'zebra' FROM conversations")


def test_move_lexemes_exchanges_the_markers(owner: psycopg.Connection[TupleRow]) -> None:
    """hermes_move_lexemes() is the trigger of rows that change their theme."""
    owner.execute("INSERT INTO memory_entries (agent_identity, target, content) VALUES ('a', 'user', 'zebra')")
    owner.execute("UPDATE memory_entries SET agent_identity = 'dm-b'")
    assert set(value(owner, "tsvector_to_array(lexemes) FROM memory_entries")) == {"~=dm-b", "zebra"}


def test_words_are_the_same_and_the_owners_alone(owner: psycopg.Connection[TupleRow], database: Database) -> None:
    assert value(owner, "hermes_words('a:1 b')::text") == "'a':1 'b'"
    with psycopg.connect(database.runtime_dsn) as runtime, pytest.raises(psycopg.errors.InsufficientPrivilege):
        runtime.execute("EXPLAIN SELECT FROM conversations WHERE hermes_words(lexemes) @@ 'a'::tsquery")


def test_rank_halves_with_the_half_life(owner: psycopg.Connection[TupleRow]) -> None:
    rank = "hermes_rank(0.6, 0.2, 0.25, 0, false, false, false, false, interval '10 days', %s::real)"
    assert value(owner, rank, 0) == pytest.approx(0.6)
    assert value(owner, rank, 10) == pytest.approx(0.3)
    # What is far older than any half-life ranks last, and is no error.
    for days in (0.01, 0.0001, 1e-30):
        assert 0 < value(owner, rank, days) < 1e-20


def test_rank_counts_a_row_without_a_vector_as_unrelated(owner: psycopg.Connection[TupleRow]) -> None:
    rank = "hermes_rank(%s::real, %s::real, 0.25, 0, NULL, NULL, NULL, NULL, interval '1 day', 0)"
    assert value(owner, rank, None, 0.24) == value(owner, rank, 0.24, 0.24) == pytest.approx(0.25)
    # A model whose similarities lie close together counts as much as one that spreads them out.
    assert value(owner, rank, 0.875, 0.75) == pytest.approx(value(owner, rank, 0.62, 0.24))
    assert value(owner, rank, 1, 1) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("session", "when", "period", "speaker", "author", "more"),
    [
        (0.5, False, False, False, False, 0.25),
        (0, True, False, False, False, 0.3),
        (0, False, True, False, False, 0.5),
        (0, False, False, True, False, 0.35),
        (0, False, False, False, True, 0.2),
    ],
)
def test_rank_adds_what_speaks_for_a_row(
    owner: psycopg.Connection[TupleRow],
    session: float,
    when: bool,
    period: bool,
    speaker: bool,
    author: bool,
    more: float,
) -> None:
    rank = "hermes_rank(0.24, 0.24, 0.25, %s::real, %s, %s, %s, %s, interval '1 day', 0)"
    assert value(owner, rank, session, when, period, speaker, author) == pytest.approx(0.25 + more, abs=1e-4)


def test_is_hit_says_what_is_near_enough(owner: psycopg.Connection[TupleRow]) -> None:
    call = "hermes_is_hit(%s::real, %s::real, %s::double precision, 0.24::real, 0.1::real, %s)"
    for *given, is_hit in (
        # Asked: one of the two is enough.
        (0.24, 0.0, None, False, True),
        (0.23, 0.1, None, False, True),
        (0.23, 0.09, 0.9, False, False),
        (None, 0.1, None, False, True),
        (None, 0.0, None, False, False),
        # Unasked: both, or very near, or nearly all of it to the letter; words alone where there is no vector.
        (0.24, 0.1, None, True, True),
        (0.24, 0.09, None, True, False),
        (0.23, 0.5, None, True, False),
        (0.4, 0.0, None, True, True),
        (0.38, 0.0, None, True, False),
        (0.0, 0.0, 0.6, True, True),
        (0.0, 0.9, 0.5, True, False),
        (None, 0.1, None, True, True),
    ):
        assert value(owner, call, *given) is is_hit, given


def test_refresh_statistics_takes_over_what_analyze_knows(database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO conversations (session_id, role, content)"
            " SELECT 's', 'user', 'zebra ' || n FROM generate_series(1, 300) AS n; ANALYZE conversations"
        )
    with psycopg.connect(database.runtime_dsn, autocommit=True) as runtime:
        runtime.execute("SELECT hermes_refresh_statistics()")
        assert value(runtime, "hermes_term_fractions('conversations', ARRAY['zebra'])") == [1.0]


def test_term_fractions_keep_the_order_and_do_not_know_rare_terms(owner: psycopg.Connection[TupleRow]) -> None:
    owner.execute("INSERT INTO lexeme_statistics VALUES ('conversations', 'a', 0.5), ('memory_entries', 'b', 0.25)")
    assert value(owner, "hermes_term_fractions('conversations', ARRAY['b', 'a', 'c'])") == [0, 0.5, 0]
    assert value(owner, "hermes_term_fractions('memory_entries', ARRAY['b', 'a'])") == [0.25, 0]
    assert value(owner, "hermes_term_fractions('conversations', NULL)") == []


def test_has_shared_index_and_has_theme_index_know_what_was_made(
    database: Database, owner: psycopg.Connection[TupleRow]
) -> None:
    def known() -> tuple[Any, ...]:
        return tuple(
            value(owner, f"{call}")
            for call in (
                "hermes_has_shared_index('turn_vectors_1')",
                "hermes_has_theme_index('turn_vectors_1', 'large')",
                "hermes_has_theme_index('memory_vectors_1', 'large')",
                "hermes_has_theme_index('turn_vectors_1', 'other')",
            )
        )

    assert known() == (False, False, False, False)
    with store_of(database) as store:
        store.say(Said("zebra", "large", vector=[1.0] * store.model.dim))
    with VectorIndexes.open(database.owner_dsn) as indexes:
        indexes.create_theme("large", force=True)
        assert known() == (False, True, False, False)
        indexes.create_all()
        assert known() == (True, True, False, False)
        indexes.drop_theme("large")
    assert known() == (True, False, False, False)


def test_has_theme_index_is_false_where_the_list_is_wrong(owner: psycopg.Connection[TupleRow]) -> None:
    owner.execute("INSERT INTO theme_indexes (agent_identity, model_id, index_name) VALUES ('large', 1, 'gone')")
    assert value(owner, "hermes_has_theme_index('turn_vectors_1', 'large')") is False


def weighed(owner: psycopg.Connection[TupleRow], *, hits: list[int], hit_limit: int = 1000) -> dict[str, Any]:
    """Four terms among 1,000 rows: two rare, a token and one known to be common."""
    row: Any = owner.execute(
        "SELECT idf, pull, is_absent, common_terms, has_hits FROM hermes_weigh_terms("
        "ARRAY['alpha', 'beta', 'x/y', 'the'], ARRAY[1, 2, 1, 1]::real[], ARRAY[0, 0, 0, 0.5]::real[], 1000, 100,"
        " ARRAY[1, 2, 3], ARRAY[4], 24, %s, %s)",
        (hits, hit_limit),
    ).fetchone()
    return dict(zip(("idf", "pull", "is_absent", "common", "has_hits"), row, strict=True))


def test_weigh_terms_by_how_many_rows_have_them(owner: psycopg.Connection[TupleRow]) -> None:
    found = weighed(owner, hits=[1] * 10 + [2] * 10)
    assert found["idf"][1] == pytest.approx(2 * found["idf"][0])
    assert found["idf"][0] > found["idf"][3] > 0
    # A token nobody wrote counts nothing; a common term selects nothing.
    assert (found["idf"][2], found["pull"][3]) == (0, 0)
    assert found["is_absent"] == [False, False, True, False]
    assert (found["common"], found["has_hits"]) == ([4], True)


def test_weigh_terms_finds_what_is_common_after_all(owner: psycopg.Connection[TupleRow]) -> None:
    found = weighed(owner, hits=[2] * 101)
    assert found["common"] == [2, 4]
    assert (found["pull"][1], found["has_hits"]) == (0, False)
    assert found["is_absent"] == [True, False, True, False]


def test_weigh_terms_does_not_call_absent_what_was_not_looked_up(owner: psycopg.Connection[TupleRow]) -> None:
    found = weighed(owner, hits=[1] * 50, hit_limit=50)
    assert found["is_absent"] == [False, False, False, False]
    assert found["has_hits"]


def test_tombstone_is_the_hash_that_python_computes(owner: psycopg.Connection[TupleRow]) -> None:
    key = bytes(value(owner, "key FROM erasure_key"))
    assert len(key) == 32
    for parts in (("turn", "theme", "ünïcode\nwords"), ("scope", "", ""), ("entry", "x" * 10_000)):
        found = bytes(value(owner, "hermes_tombstone(%s, %s)", key, list(parts)))
        assert found == keyed_hash(key, *parts)
        assert len(found) == 16
    assert value(owner, "hermes_tombstone(%s, %s)", key, ["turn", "a", None]) is not None


def test_find_texts_looks_into_every_column_of_every_table(
    database: Database, owner: psycopg.Connection[TupleRow]
) -> None:
    owner.execute(
        "INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'A Quokka here');"
        "INSERT INTO conversations (agent_identity, session_id, role, content, ts) VALUES"
        " ('t', 'quokka-1', 'user', 'only the name of its session', '2020-01-01'),"
        " ('t', 's', 'user', 'quokka', '2130-01-01');"
        "INSERT INTO memory_entries (target, content, metadata) VALUES ('memory', 'x', '{\"a\": \"QUOKKA\"}'),"
        " ('memory', 'y', '{\"session_id\": \"quokka-1\"}');"
        "INSERT INTO dead_letters (writer, seq, payload, reason) VALUES ('w', 1, 'a quokka', 'r')"
    )
    asked = "SELECT table_name, rows, newer, in_names FROM hermes_find_texts(%s, %s, now())"
    with psycopg.connect(database.runtime_dsn) as runtime:
        rows = runtime.execute(asked, (["quokka"], None)).fetchall()
        some = runtime.execute(asked, (["quokka"], ["t"])).fetchall()
    found = {name: rest for name, *rest in rows if any(rest)}
    assert found == {"conversations": [1, 1, 1], "memory_entries": [1, 0, 0], "dead_letters": [1, 0, 0]}
    assert {name for name, *_ in rows} >= {"memory_operations", "memory_files", "audit_log", "pg_stats"}
    assert {name: rest for name, *rest in some if any(rest)} == {"conversations": [0, 1, 1], "dead_letters": [1, 0, 0]}


def test_analyze_makes_the_planner_forget_words_that_are_gone(
    database: Database, owner: psycopg.Connection[TupleRow]
) -> None:
    owner.execute(
        "INSERT INTO conversations (session_id, role, content) SELECT 's', 'user', 'quokka ' || n"
        " FROM generate_series(1, 50) AS n; ANALYZE conversations; DELETE FROM conversations"
    )
    known = (
        "count(*) FROM (SELECT s::text FROM pg_stats AS s UNION ALL SELECT e::text FROM pg_stats_ext_exprs AS e)"
        " AS k (told) WHERE told LIKE '%%quokka%%'"
    )
    assert value(owner, known) > 0
    with psycopg.connect(database.runtime_dsn, autocommit=True) as runtime:
        runtime.execute("SELECT hermes_analyze()")
    assert value(owner, known) == 0
