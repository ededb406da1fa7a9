"""`index` as an administrator runs it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.cli.index import advice_all, advice_theme
from hermes_memory_pgvector.schema import vector_indexes
from hermes_memory_pgvector.schema.vector_indexes import Index, Survey, ThemeVectors, theme_index_name
from hermes_memory_pgvector.values import EmbeddingModel
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database
from testing.stored import Stored

ROWS = """
INSERT INTO conversations (agent_identity, session_id, role, content)
SELECT CASE WHEN n <= 40 THEN 'big' ELSE 'small' END, 's', 'user', 'saying ' || n FROM generate_series(1, 45) AS n;
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
SELECT agent_identity, id, ts, id, l2_normalize(array_fill(id, ARRAY[64])::real[]::halfvec(64)) FROM conversations
"""
BIG = theme_index_name(1, "big")


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    """A home of the runtime role, whose administrator's login is in the environment of its commands."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password, with_password(database.owner_dsn)[1]])
    made.configure(dsn=runtime)
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(ROWS)
    return made


@pytest.fixture
def admin(database: Database) -> tuple[str, str]:
    return ("--admin-dsn", with_password(database.owner_dsn)[0])


def test_nothing_is_advised_for_small_tables(commands: Commands, admin: tuple[str, str]) -> None:
    done = commands.call("index", *admin)
    assert done.code == 0
    assert f"Model {MODEL}, 64 dimensions" in done.out
    assert "nothing to do: an index pays off above 150,000 vectors" in done.out
    assert commands.call("index", "list", *admin, "--json").json == {
        "model": {"id": 1, "name": MODEL, "dim": 64}, "large": 150_000, "most_themes": 24,
        "all": {"vectors": 45, "indexes": [], "advice": None}, "themes": [],
    }  # fmt: skip


def test_large_tables_are_advised_to_have_an_index(
    commands: Commands, admin: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_indexes, "LARGE", 30)
    done = commands.call("index", *admin)
    assert "hermes-pgvector index create --all" in done.out
    assert "hermes-pgvector index create --theme big" in done.out
    assert "small" not in done.out


def test_an_index_is_made_listed_and_dropped(commands: Commands, admin: tuple[str, str], database: Database) -> None:
    done = commands.call("index", "create", "--theme", " Big ", "--force", *admin)
    assert done.code == 0, done
    assert f"{BIG}: created in " in done.out
    (one,) = commands.call("index", *admin, "--json").json["themes"]
    assert (one["theme"], one["vectors"], one["index"]["name"], one["index"]["state"]) == ("big", 40, BIG, "in use")
    assert one["index"]["bytes"] > 0
    assert one["advice"] == "drop"
    assert "already there" in commands.call("index", "create", "--theme", "big", "--force", *admin).out
    assert "--theme big" in commands.call("index", *admin).out
    (dropped,) = commands.call("index", "drop", "--theme", "big", *admin, "--json").json["dropped"]
    assert dropped["name"] == BIG
    assert Stored(database.owner_dsn).count("theme_indexes") == 0
    done = commands.call("index", "drop", "--theme", "big", *admin, "--json")
    assert done.code == 1
    assert "has no index of its own" in done.json["error"]


def test_all_themes_together(commands: Commands, admin: tuple[str, str]) -> None:
    created = commands.call("index", "create", "--all", *admin, "--memory", "80", "--json").json["created"]
    assert [(each["name"], each["is_new"]) for each in created] == [
        ("turn_vectors_1_all", True), ("memory_vectors_1_all", True),
    ]  # fmt: skip
    assert "in use" in commands.call("index", *admin).out
    assert commands.call("index", "drop", "--all", *admin).out.count("dropped") == 2
    assert "no index to drop" in commands.call("index", "drop", "--all", *admin).out


def test_the_login_may_come_from_the_environment(commands: Commands, admin: tuple[str, str]) -> None:
    done = commands.call("index", "create", "--all", variables={"HERMES_PGVECTOR_ADMIN_DSN": admin[1]})
    assert done.code == 0, done


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (("create", "--theme", "small"), "'small' has 5 vectors; below 150,000"),
        (("create", "--theme", "nobody", "--force"), "no theme 'nobody' has vectors"),
        (("drop", "--theme", "nobody"), "'nobody' has no index of its own"),
    ],
)
def test_what_makes_no_sense_is_an_error(
    commands: Commands, admin: tuple[str, str], arguments: tuple[str, ...], phrase: str
) -> None:
    done = commands.call("index", *arguments, *admin)
    assert done.code == 1
    assert phrase in done.err


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (("create",), "give --all or --theme"),
        (("drop", "--theme", "  "), "give --all or --theme"),
        (("list", "--all"), "--all goes with create or drop"),
        (("--theme", "big"), "--theme goes with create or drop"),
        (("create", "--all", "--force"), "--force goes with create --theme"),
    ],
)
def test_what_was_meant_must_be_said(commands: Commands, arguments: tuple[str, ...], phrase: str) -> None:
    done = commands.call("index", *arguments)
    assert done.code == 2
    assert phrase in done.err


def test_the_runtime_role_may_look_but_not_build(commands: Commands) -> None:
    assert commands.call("index").code == 0
    done = commands.call("index", "create", "--all")
    assert done.code == 1
    assert "--admin-dsn OWNER_DSN" in done.err


def test_out_of_reach_or_not_made_yet_is_exit_code_2(commands: Commands, tmp_path: Path) -> None:
    assert commands.call("index", "--admin-dsn", "postgresql://me@127.0.0.1:9/x").code == 2
    new = Commands(tmp_path / "new")
    new.configure()
    done = new.call("index")
    assert done.code == 2
    assert "there is no database yet; run: hermes-pgvector up" in done.err
    assert not (new.home / "pgvector").exists()


def test_a_database_without_our_schema_says_what_to_run(commands: Commands, empty_database: Database) -> None:
    done = commands.call("index", "--admin-dsn", with_password(empty_database.owner_dsn)[0])
    assert done.code == 1
    assert "hermes-pgvector migrate" in done.err


def index(*, is_valid: bool = True, is_building: bool = False) -> Index:
    return Index("name", "table", is_valid, is_building, 8192, "")


@pytest.mark.parametrize(
    ("vectors", "found", "advice"),
    [
        (200, None, "create"), (99, None, None), (200, index(), None), (60, index(), None), (40, index(), "drop"),
        (200, index(is_valid=False), "rebuild"), (200, index(is_valid=False, is_building=True), None),
    ],
)  # fmt: skip
def test_advice_about_a_theme(vectors: int, found: Index | None, advice: str | None) -> None:
    assert advice_theme(ThemeVectors("x", vectors, found), 100) == advice


@pytest.mark.parametrize(
    ("vectors", "found", "advice"),
    [
        (150_000, (), "create"), (149_999, (), None), (150_000, (index(),), None),
        (10, (index(is_valid=False),), "rebuild"), (10, (index(is_valid=False, is_building=True),), None),
    ],
)  # fmt: skip
def test_advice_about_all_themes(vectors: int, found: tuple[Index, ...], advice: str | None) -> None:
    assert advice_all(Survey(EmbeddingModel(1, "m", 64, 0.3), vectors, found, ())) == advice


def test_rebuild_packs_the_keys(commands: Commands, admin: tuple[str, str]) -> None:
    done = commands.call("index", "rebuild", *admin)
    assert done.code == 0
    assert "turn_vectors_1_codes: rebuilt in" in done.out
    rebuilt = commands.call("index", "rebuild", *admin, "--json").json["rebuilt"]
    assert [each["name"] for each in rebuilt] == [
        "turn_vectors_1_codes", "turn_vectors_1_pkey", "memory_vectors_1_codes", "memory_vectors_1_pkey"
    ]  # fmt: skip
    assert commands.call("index", "rebuild", "--all", *admin).code == 2
