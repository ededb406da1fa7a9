"""The audit log: rows are added and read by the runtime role, and nothing else happens to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

from hermes_memory_pgvector.ops import audit
from hermes_memory_pgvector.ops.audit import Actor
from hermes_memory_pgvector.store import audit_log
from hermes_memory_pgvector.store.audit_log import AuditRow
from testing.command import Commands, with_password
from testing.postgres import Database
from testing.stored import Stored
from testing.unchanged import checksums, nothing_changes

SOMEBODY = Actor("ada@desk", "home-1")


def newest(connection: psycopg.Connection[TupleRow]) -> list[AuditRow]:
    return audit_log.newest(connection, theme=None, action=None, since=None, until=None, before_id=None, limit=50)


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime)
    return made


def test_a_row_says_who_did_what_when_and_to_how_many(database: Database) -> None:
    with psycopg.connect(database.runtime_dsn) as connection:
        number = audit.record(
            connection, SOMEBODY, "forget", theme="market", subject="receipt 12", counts={"turns": 3, "memories": 0}
        )
        (row,) = newest(connection)
    assert (row.id, row.actor, row.home_id, row.login) == (number, "ada@desk", "home-1", "hermes")
    assert (row.action, row.theme, row.subject) == ("forget", "market", "receipt 12")
    assert row.counts == {"turns": 3, "memories": 0}
    assert abs(row.at - datetime.now(UTC)) < timedelta(minutes=1)


def test_what_is_not_committed_is_not_in_the_log(database: Database) -> None:
    with psycopg.connect(database.runtime_dsn) as connection:
        audit.record(connection, SOMEBODY, "forget", counts={})
        connection.rollback()
        assert newest(connection) == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM audit_log",
        "UPDATE audit_log SET actor = 'nobody'",
        "TRUNCATE audit_log",
        "INSERT INTO audit_log (actor, action, at) VALUES ('me', 'forget', 'yesterday')",
        "INSERT INTO audit_log (actor, action, login) VALUES ('me', 'forget', 'postgres')",
        "INSERT INTO audit_log (actor, action, id) VALUES ('me', 'forget', 1)",
        "SELECT setval('audit_log_id_seq', 1)",
    ],
)
def test_the_runtime_role_can_neither_change_the_log_nor_lie_about_time_and_login(
    database: Database, statement: str
) -> None:
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        audit.record(connection, SOMEBODY, "forget", counts={"turns": 1})
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())
        assert len(newest(connection)) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"counts": '{"quote": "what she said"}'},
        {"counts": "[1]"},
        {"counts": '{"a": {"b": 1}}'},
        {"subject": "x" * 201},
        {"action": "Forget: what she said"},
        {"actor": ""},
    ],
)
def test_there_is_no_room_for_text(database: Database, values: dict[str, str]) -> None:
    row = {"actor": "me", "action": "forget", "subject": "", "counts": "{}", **values}
    with psycopg.connect(database.runtime_dsn) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(
            "INSERT INTO audit_log (actor, action, subject, counts)"
            " VALUES (%(actor)s, %(action)s, %(subject)s, %(counts)s::jsonb)",
            row,
        )


def test_the_command_shows_newest_first_in_pages(commands: Commands, database: Database) -> None:
    assert commands.call("list", "audit").out == "Nothing is in the log for this.\n"
    with psycopg.connect(database.runtime_dsn) as connection:
        for number in range(5):
            theme, action = ("market", "forget") if number % 2 else ("garden", "mute")
            audit.record(connection, SOMEBODY, action, theme=theme, counts={"turns": number})
    first = commands.call("list", "audit", "--limit", "2", "--json").json
    assert [row["counts"]["turns"] for row in first["rows"]] == [4, 3]
    rest = commands.call("list", "audit", "--page", first["next"], "--json").json
    assert [row["counts"]["turns"] for row in rest["rows"]] == [2, 1, 0]
    assert rest["next"] is None
    assert len(commands.call("list", "audit", "--theme", "market", "--json").json["rows"]) == 2
    assert len(commands.call("list", "audit", "--action", "mute", "--json").json["rows"]) == 3
    assert commands.call("list", "audit", "--since", "1h", "--json").json["rows"] != []
    assert commands.call("list", "audit", "--until", "2020-01-01", "--json").json["rows"] == []
    out = commands.call("list", "audit").out
    assert "ada@desk" in out
    assert "turns: 4" in out


def test_what_another_login_says_of_itself_stands_beside_its_name(commands: Commands, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("INSERT INTO audit_log (login, actor, action) VALUES ('minion', 'root@host', 'forget')")
    assert "root@host (minion)" in commands.call("list", "audit").out


def test_an_operator_is_the_systems_user_in_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    somebody = audit.operator(tmp_path)
    assert somebody.name.startswith("ada@")
    assert somebody.home_id == audit.operator(tmp_path).home_id


def test_a_change_of_any_table_is_noticed(database: Database) -> None:
    stored = Stored(database.owner_dsn)
    with nothing_changes(stored):
        pass
    with (
        pytest.raises(AssertionError, match="conversations"),
        nothing_changes(stored),
        psycopg.connect(database.runtime_dsn) as connection,
    ):
        connection.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'new')")
    before = checksums(database.owner_dsn)
    with psycopg.connect(database.runtime_dsn) as connection:
        connection.execute("UPDATE conversations SET content = 'other' WHERE agent_identity = 'default'")
    assert checksums(database.owner_dsn) != before
