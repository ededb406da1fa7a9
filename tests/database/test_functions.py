"""SQL functions, each by itself, and what holds for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

import hermes_memory_pgvector
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.text.words import fold
from testing.postgres import Database

SQL = Path(hermes_memory_pgvector.__file__).parent / "sql"


@pytest.fixture
def owner(database: Database) -> Iterator[psycopg.Connection[TupleRow]]:
    """The owner's connection."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        yield connection


def value(connection: psycopg.Connection[TupleRow], call: str, *values: Any) -> Any:
    """What a function answers."""
    row: Any = connection.execute(f"SELECT {call}".encode(), values).fetchone()
    return row[0]


def test_there_are_no_other_functions(database: Database, owner: psycopg.Connection[TupleRow]) -> None:
    migrate.apply(database.owner_dsn, model=NewModel("other-model", 32))
    made = owner.execute(
        "SELECT proname, count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        " AND starts_with(proname, 'hermes_') GROUP BY 1"
    ).fetchall()
    own = re.findall(r"FUNCTION (hermes_\w+)", SQL.joinpath("functions.sql").read_text(encoding="utf-8"))
    own += ["hermes_language"]
    assert dict(made) == dict.fromkeys(own, 1)


def test_none_runs_with_the_owners_rights_or_settings_of_its_own(owner: psycopg.Connection[TupleRow]) -> None:
    odd = owner.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND starts_with(proname, 'hermes_')"
        " AND (prosecdef OR proconfig IS NOT NULL)"
    ).fetchall()
    assert odd == []


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
    call = "hermes_is_from('assistant', %s::boolean, %s::jsonb, %s)"
    tools = '{"tools": ["web", "mcp"]}'
    assert [value(owner, call, True, tools, name) for name in ("assistant", "mcp", "untrusted")] == [True] * 3
    assert [value(owner, call, True, tools, name) for name in ("user", "browser", "true")] == [False] * 3
    assert value(owner, call, False, "{}", "untrusted") is False


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


def test_fold_makes_case_accents_and_width_the_same(owner: psycopg.Connection[TupleRow]) -> None:
    for text in ("ＣＡＦÉ Straße", "Ann’s", "İstanbul", "Kündigung", "ガス カ\u3099ス", "plain"):
        assert value(owner, "hermes_fold(%s)", text) == fold(text)


def test_unspaced_lexemes_are_signs_and_pairs(owner: psycopg.Connection[TupleRow]) -> None:
    found = value(owner, "tsvector_to_array(hermes_unspaced_lexemes('北京天 x'))")
    assert set(found) == {"北", "北京", "京", "京天", "天"}


def test_language_is_english_at_first(owner: psycopg.Connection[TupleRow]) -> None:
    assert value(owner, "hermes_language()::text") == "english"


def test_lexemes_of_a_row_follow_its_words_its_theme_and_whether_it_is_hidden(
    owner: psycopg.Connection[TupleRow],
) -> None:
    lexemes = "tsvector_to_array(lexemes) FROM conversations"
    owner.execute(
        "INSERT INTO conversations (session_id, role, content, before) VALUES ('s', 'user', 'zebra', 'lions')"
    )
    assert set(value(owner, lexemes)) == {"~=default", "~all", "zebra", "lion"}
    owner.execute("UPDATE conversations SET content = 'mouse'")
    assert value(owner, "lexemes @@ 'mous:A' AND lexemes @@ 'lion:B' AND NOT lexemes @@ 'zebra' FROM conversations")
    owner.execute("UPDATE conversations SET agent_identity = 'dm-b'")
    assert set(value(owner, lexemes)) == {"~=dm-b", "mous", "lion"}
    owner.execute("UPDATE conversations SET hidden_by = 1")
    assert value(owner, lexemes) == []
