"""SQL functions that say who may see which theme, each by itself."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from testing.postgres import Database

NAMED = "SELECT set_config('hermes.purpose', %s, true), set_config('hermes.themes', %s::text[]::text, true)"


@pytest.fixture
def session(database: Database) -> Iterator[psycopg.Connection]:
    """The runtime role's session, with that role in the list of logins that were granted themes; nothing is kept."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO login_grants (login, may_write, may_create) VALUES ('hermes', true, false)")
        owner.execute(
            "INSERT INTO login_themes (login, theme) SELECT 'hermes', unnest(ARRAY['launch', 'team-*', 'dm-1'])"
        )
        with psycopg.connect(database.runtime_dsn) as connection:
            yield connection


def one(connection: psycopg.Connection, statement: str) -> object:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return sorted(row[0]) if isinstance(row[0], list) else row[0]


def test_theme_pattern_means_the_star_alone(database: Database) -> None:
    with psycopg.connect(database.runtime_dsn) as connection:
        for theme, pattern, matches in [
            ("team-a", "team-*", True),
            ("my_team-a", "team-*", False),
            ("teamxa", "team_a", False),
            ("team%", "team%", True),
            ("teams", "team%", False),
            ("a\\b", "a\\b", True),
            ("anything", "*", True),
        ]:
            found = connection.execute("SELECT %s::text LIKE hermes_theme_pattern(%s)", (theme, pattern)).fetchone()
            assert found == (matches,), (theme, pattern)


def test_theme_pattern_is_the_same_whatever_a_session_makes_of_backslashes(database: Database) -> None:
    for value in ("off", "on"):
        with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
            connection.execute(f"SET standard_conforming_strings = {value}".encode())
            found = connection.execute("SELECT hermes_theme_pattern(%s), hermes_quote_lexeme(%s)", ("a\\b%_*", "a\\'b"))
            assert found.fetchone() == ("a\\\\b\\%\\_%", "'a\\\\''b'"), value


def test_is_like_one_of_the_patterns_and_everywhere_no_private_theme(database: Database) -> None:
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        for theme, patterns, is_everywhere, matches in [
            ("team-a", ["x", "team-%"], False, True),
            ("team-a", ["team-%"], True, True),
            ("kitchen", ["team-%"], False, False),
            ("dm-1", ["dm-%"], False, True),
            ("dm-1", ["dm-%"], True, False),
            ("dm-1", ["%"], True, False),
            ("team-a", None, False, None),
        ]:
            asked = (theme, patterns, is_everywhere)
            found = connection.execute("SELECT hermes_is_like(%s, %s::text[], %s)", asked).fetchone()
            assert found == (matches,), asked


def test_login_themes_are_those_granted_that_the_transaction_is_about(session: psycopg.Connection) -> None:
    asked = "SELECT hermes_login_themes({})"
    for purpose, named, reads, writes in [
        ("", ["launch", "kitchen", "team-a"], ["launch", "team-a"], ["launch", "team-a"]),
        ("", [], [], []),
        ("everywhere", ["dm-1"], ["dm-1", "launch", "team-*"], None),
        ("overview", [], ["dm-1", "launch", "team-*"], None),
        ("writer", [], ["dm-1", "launch", "team-*"], ["dm-1", "launch", "team-*"]),
        ("made up", ["kitchen"], [], []),
    ]:
        session.execute(NAMED, (purpose, named))
        assert one(session, asked.format("false")) == reads
        assert one(session, asked.format("true")) == writes


def test_login_themes_of_a_login_that_was_granted_nothing_are_none(database: Database) -> None:
    with psycopg.connect(database.operator_dsn) as connection:
        assert one(connection, "SELECT hermes_login_themes(false)") is None


def test_login_patterns_count_where_no_theme_is_named(session: psycopg.Connection) -> None:
    for purpose, reads, writes in [
        ("", None, None),
        ("overview", ["team-%"], None),
        ("writer", ["team-%"], ["team-%"]),
    ]:
        session.execute(NAMED, (purpose, ["team-a"]))
        assert one(session, "SELECT hermes_login_patterns(false)") == reads
        assert one(session, "SELECT hermes_login_patterns(true)") == writes


def test_granted_themes_are_all_that_stand_in_the_list(session: psycopg.Connection) -> None:
    assert one(session, "SELECT hermes_granted_themes()") == ["dm-1", "launch", "team-%"]


def test_reach_follows_the_same_rules_as_the_policies(database: Database) -> None:
    asked = b"SELECT is_open, is_public, themes FROM hermes_reach()"
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "CREATE FUNCTION reached() RETURNS record SECURITY DEFINER LANGUAGE sql AS 'SELECT hermes_reach()'"
        )
        owner.execute("GRANT EXECUTE ON FUNCTION reached() TO hermes")
        assert owner.execute(asked).fetchone() == (True, False, None)
    with psycopg.connect(database.runtime_dsn) as runtime:
        for purpose, expected in [
            ("", "(f,f,{a},)"),
            ("everywhere", "(f,t,{a},)"),
            ("writer", "(t,f,{a},)"),
            ("overview", "(t,f,{a},)"),
            ("made up", "(f,f,{a},)"),
        ]:
            runtime.execute(NAMED, (purpose, ["a"]))
            assert one(runtime, "SELECT reached()::text") == expected


def test_gate_tells_a_login_of_its_own_themes_alone(session: psycopg.Connection, database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO theme_aliases (old, new) VALUES ('a', 'launch'), ('b', 'kitchen'), ('c', 'team-1')")
        asked = b"SELECT aliases, keys, login, may_write, may_create FROM hermes_gate()"
        everything = {"a": "launch", "b": "kitchen", "c": "team-1"}
        assert owner.execute(asked).fetchone() == (everything, None, None, None, None)
        assert session.execute(asked).fetchone() == (
            {"a": "launch", "c": "team-1"}, None, "hermes", True, False,
        )  # fmt: skip
        owner.execute("INSERT INTO erasure_receipts (forgotten_at, actor, named) VALUES (now(), 'x', '{}')")
        owner.execute("INSERT INTO tombstones SELECT 'x', id, now() FROM erasure_receipts")
    assert session.execute("SELECT keys = ARRAY(SELECT key FROM erasure_key) FROM hermes_gate()").fetchone() == (True,)


def test_forgotten_answers_for_the_hashes_that_are_asked(session: psycopg.Connection, database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO erasure_receipts (forgotten_at, actor, named) VALUES (now(), 'x', '{}')")
        owner.execute("INSERT INTO tombstones SELECT 'x', id, '2026-05-01' FROM erasure_receipts")
    found = session.execute("SELECT hash, until::date::text FROM hermes_forgotten(ARRAY['x', 'y']::bytea[])").fetchall()
    assert found == [(b"x", "2026-05-01")]


def test_claim_themes_refuses_what_is_anybodys(session: psycopg.Connection, database: Database) -> None:
    wanted = "SELECT hermes_claim_themes(ARRAY['launch', 'team-9', 'new', 'used', 'renamed', 'others', 'a*', ''])"
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO theme_growth (agent_identity) VALUES ('used')")
        owner.execute("INSERT INTO theme_aliases (old, new) VALUES ('renamed', 'x')")
        owner.execute("INSERT INTO login_grants (login, may_write, may_create) VALUES ('somebody', true, true)")
        owner.execute("INSERT INTO login_themes (login, theme) VALUES ('somebody', 'oth*')")
        refused = ["", "a*", "new", "others", "renamed", "used"]
        assert one(session, wanted) == refused
        owner.execute("UPDATE login_grants SET may_create = true WHERE login = 'hermes'")
        assert one(session, wanted) == [each for each in refused if each != "new"]
        assert one(session, "SELECT hermes_granted_themes()") == ["dm-1", "launch", "new", "team-%"]
        session.rollback()
        owner.execute("UPDATE login_grants SET may_write = false WHERE login = 'hermes'")
        assert one(session, "SELECT hermes_claim_themes(ARRAY['launch'])") == ["launch"]


def test_forgotten_parts_are_those_with_a_length(session: psycopg.Connection) -> None:
    assert session.execute("SELECT * FROM hermes_forgotten_parts('-infinity')").fetchall() == []


def test_login_quarantines_are_those_that_concern_its_themes(session: psycopg.Connection, database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO quarantines (actor, theme, session_id) VALUES"
            " ('op', 'kitchen', 's'), ('op', NULL, 'of launch'),"
            " ('op', 'team-a', 's'), ('op', NULL, 'of nobody'), ('op', NULL, 'noted')"
        )
        owner.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content)"
            " VALUES ('launch', 'of launch', 'user', 'x'), ('kitchen', 'of nobody', 'user', 'x')"
        )
        owner.execute(
            "INSERT INTO memory_entries (agent_identity, target, content, metadata)"
            """ VALUES ('dm-1', 'memory', 'x', '{"session_id": "noted"}')"""
        )
        assert one(session, "SELECT hermes_login_quarantines()") == [2, 3, 5]
        assert session.execute("SELECT array_agg(id ORDER BY id) FROM quarantines").fetchone() == ([1, 2, 3, 4, 5],)
        assert one(owner, "SELECT hermes_login_quarantines()") == []


def test_trim_recall_log_keeps_the_newest_and_what_one_may_not_read(
    session: psycopg.Connection, database: Database
) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO recall_log (agent_identity, at, caller, kind, scope, milliseconds)"
            " SELECT theme, now(), 'tool', 'turn', 'current', n"
            " FROM unnest(ARRAY['launch', 'kitchen']) AS theme, generate_series(1, 150) AS n"
        )
        session.execute(NAMED, ("upkeep", []))
        session.execute("SELECT hermes_trim_recall_log(ARRAY['launch', 'kitchen'], 120)")
        session.commit()
        counted = "SELECT agent_identity, count(*), min(milliseconds) FROM recall_log GROUP BY 1 ORDER BY 1"
        assert owner.execute(counted).fetchall() == [("kitchen", 150, 1), ("launch", 120, 31)]
        # However few somebody wants: those who come after have something to look at.
        session.execute(NAMED, ("upkeep", []))
        session.execute("SELECT hermes_trim_recall_log(ARRAY['launch'], 0)")
        session.commit()
        assert owner.execute(counted).fetchall() == [("kitchen", 150, 1), ("launch", 100, 51)]


def test_words_are_the_same_and_the_owners_alone(session: psycopg.Connection, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        assert one(owner, "SELECT hermes_words('a:1 b')::text") == "'a':1 'b'"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("EXPLAIN SELECT FROM conversations WHERE hermes_words(lexemes) @@ 'a'::tsquery")
