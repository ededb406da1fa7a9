"""What texts and questions are found by, which is the work of Postgres: hermes_text_lexemes and hermes_lexemes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import TupleRow

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from testing.postgres import new_database

Connection = psycopg.Connection[TupleRow]


@pytest.fixture(scope="module")
def owner(postgres_server: ConnectionInfo) -> Iterator[Connection]:
    with new_database(postgres_server) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE)
        with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
            yield connection


def words(owner: Connection, text: str) -> set[str]:
    row: Any = owner.execute("SELECT tsvector_to_array(hermes_text_lexemes(%s))", (text,)).fetchone()
    return set(row[0])


def of_row(owner: Connection, theme: str, content: str, before: str = "") -> set[str]:
    """The lexemes of a row, each with its weight behind a colon if it has one."""
    row: Any = owner.execute(
        "SELECT array_agg(lexeme || coalesce(':' || weights[1], '')) FROM unnest(hermes_lexemes(%s, %s, %s))",
        (theme, content, before),
    ).fetchone()
    return set(row[0])


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("run kubectl -n prod get pods", "-n"),
        ("pg_dump -Fc mydb", "-fc"),
        ("see /etc/nginx/nginx.conf.", "/etc/nginx/nginx.conf"),
        ("it failed with ERR_CONN-42!", "err_conn-42"),
        ("write to foo@bar.com, please", "foo@bar.com"),
        ("upgrade to v1.2.3 (now)", "v1.2.3"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("host 192.168.0.17:8080", "192.168.0.17:8080"),
        ("we write C++ and C#", "c++"),
        ("we write C++ and C#", "c#"),
        ("--dry-run=client", "--dry-run=client"),
    ],
)
def test_a_token_with_signs_is_kept_as_typed(owner: Connection, text: str, token: str) -> None:
    assert token in words(owner, text)


def test_its_words_are_found_without_it(owner: Connection) -> None:
    assert {"etc", "nginx", "conf"} <= words(owner, "see /etc/nginx/nginx.conf")
    assert {"err", "conn", "42"} <= words(owner, "ERR_CONN-42")


def test_words_are_stemmed_and_the_commonest_dropped(owner: Connection) -> None:
    assert words(owner, "The deployments weren't running, it's what we'd said") == {"deploy", "run", "said"}
    assert words(owner, "what is it that we should have been doing with you") == set()


def test_a_turn_carries_the_words_before_it_with_less_weight(owner: Connection) -> None:
    found = of_row(owner, "t", "I would say Tuesday", "Which weekday suits?\nOr the dentist on Tuesday?")
    assert {"tuesday:A", "dentist:B", "weekday:B"} <= found


@pytest.mark.parametrize(
    "theme", ["plain", "it's", 'quo"ted', "back\\slash", "a b", "ünï", "猫" * 256, "~=x", "%", "' | 'y"]
)
def test_a_theme_becomes_one_marker(owner: Connection, theme: str) -> None:
    assert {each for each in of_row(owner, theme, "hello") if ":" not in each} == {f"~={theme}", "~all"}


@pytest.mark.parametrize("theme", ["dm-1", "group-a", "_bench"])
def test_a_private_theme_is_not_marked_for_all(owner: Connection, theme: str) -> None:
    assert of_row(owner, theme, "hello") == {f"~={theme}", "hello:A"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300))
def test_any_text_has_words_and_none_can_produce_a_marker(owner: Connection, text: str) -> None:
    assert not any(each.startswith("~") for each in words(owner, text))
    assert words(owner, text[:50]) <= words(owner, f"{text[:50]} {text[:50]}")


def test_a_pasted_log_stays_within_what_a_row_can_hold(owner: Connection) -> None:
    generator = random.Random(1)
    signs = "".join(chr(generator.randrange(0x4E00, 0x9FFF)) for _ in range(200_000))
    for text in (signs, " ".join(f"{generator.getrandbits(40):x}-{n}" for n in range(30_000)), "x" * 3_000_000):
        owner.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', %s)", (text,))


def test_the_language_is_the_operators(postgres_server: ConnectionInfo) -> None:
    """And stays when the schema is migrated again without naming it; rows that are there are found by it, too."""
    with new_database(postgres_server) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE)
        found = "SELECT count(*) FROM conversations WHERE lexemes @@ 'kund'"
        with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'die Kunden')"
            )
            assert connection.execute(found).fetchall() == [(0,)]
            migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, language="german")
            migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE)
            assert connection.execute(found).fetchall() == [(1,)]
            assert words(connection, "Welche Kunden?") == {"kund"}
            with pytest.raises(SchemaError, match=r"'klingon' apart; it knows: .*german"):
                migrate.apply(database.owner_dsn, language="klingon")
            assert words(connection, "Welche Kunden?") == {"kund"}
