"""`grant`, `grants`, `revoke-login` as an operator types them, and what the machine with the login sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from testing.command import PROGRAM, Commands, with_password
from testing.postgres import Database
from testing.terminal import on_terminal


@pytest.fixture
def login(database: Database) -> str:
    return f"cli_{database.name}"


@pytest.fixture
def operator(database: Database, tmp_path: Path, login: str) -> Iterator[Commands]:
    """An operator's home: the agents' dsn in the settings, the owner's in the environment file."""
    runtime, password = with_password(database.runtime_dsn)
    owner, secret = with_password(database.owner_dsn)
    made = Commands(tmp_path / "operator", [password, secret])
    made.configure(dsn=runtime)
    (made.home / ".env").write_text(f"HERMES_PGVECTOR_ADMIN_DSN={owner}\n", encoding="utf-8")
    with psycopg.connect(database.operator_dsn) as connection:
        for theme in ("launch", "kitchen"):
            connection.execute(
                "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES (%s, 'bad', 'user', %s)",
                (theme, f"The zebra of {theme}, key AKIAIOSFODNN7EXAMPLE."),
            )
    yield made
    made.call("revoke-login", login)


def test_a_machine_is_granted_themes_sees_them_and_is_sent_away(
    operator: Commands, database: Database, login: str, tmp_path: Path
) -> None:
    assert "No login was granted" in operator.call("grants").out
    made = operator.call("grant", login, "--themes", "Launch, not-begun-yet", "--json").json
    assert (made["themes"], made["may_write"], made["is_new_role"]) == (["launch", "not-begun-yet"], True, True)
    machine = Commands(tmp_path / "machine", [made["password"]])
    machine.configure(
        dsn=make_conninfo(database.runtime_dsn, user=login, password=made["password"], passfile=""),
        embed_on_write=False,
    )
    assert [row["agent_identity"] for row in machine.call("list", "--json").json["rows"]] == ["launch"]
    assert "zebra of kitchen" not in machine.call("recall", "zebra", "--scope", "all").out
    told = machine.call("doctor").out
    assert f"{login} reads and writes launch, not-begun-yet, and sees nothing else" in " ".join(told.split())
    assert "refuses" not in told
    # What is the fleet's business is refused in a sentence, and changes nothing.
    for refused in (
        ("grant", "x", "--themes", "a"), ("revoke-login", login), ("migrate",),
        ("quarantine", "--session", "bad", "--execute"), ("forget", "--theme", "launch", "--execute"),
    ):  # fmt: skip
        done = machine.call(*refused)
        assert (done.code, "Traceback" in done.everything) == (1, False), (refused, done)
    assert [each["login"] for each in machine.call("grants", "--json").json["logins"]] == [login]
    scanned = machine.call("scan", "--json").json
    assert scanned["counts"]["turns"] == 1
    held = operator.call("quarantine", "--session", "bad", "--execute", "--json").json
    assert held["counts"]["turns"] == 2
    (batch,) = machine.call("quarantine", "--list", "--json").json["batches"]
    assert batch["counts"]["turns"] == 1
    # Its password is changed by whoever owns the database, and shown once.
    assert operator.call("grant", login, "--read-only").code == 0
    table = operator.call("grants").out
    assert "launch, not-begun-yet" in table
    assert " read " in table
    anew = operator.call("grant", login, "--new-password", "--json").json
    assert anew["password"] not in (None, made["password"])
    assert (anew["may_write"], anew["themes"]) == (False, ["launch", "not-begun-yet"])
    assert machine.call("list").code != 0
    assert "sees nothing any more" in operator.call("revoke-login", login).out
    assert operator.call("revoke-login", login).code == 1
    subjects = [row["action"] for row in operator.call("audit", "--json").json["audit"]]
    assert subjects.count("grant") == 3
    assert "revoke-login" in subjects


def test_doctor_notices_a_login_that_was_given_more_later(operator: Commands, database: Database, login: str) -> None:
    assert operator.call("grant", login, "--themes", "launch").code == 0
    assert "can see every one" not in " ".join(operator.call("doctor").out.split())
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(f"GRANT pg_read_all_data TO {login}".encode())
        told = operator.call("doctor")
        owner.execute(f"REVOKE pg_read_all_data FROM {login}".encode())
    assert "it is a member of pg_read_all_data" in " ".join(told.out.split())
    assert told.code == 1


def test_a_password_can_be_typed_on_a_terminal(operator: Commands, database: Database, login: str) -> None:
    typed = {f"New password for {login}:": "a long one\n", "The same again:": "a long one\n"}
    done = on_terminal(
        [PROGRAM, "grant", login, "--themes", "launch", "--ask-password"],
        environment={**operator.environment, "TERM": "xterm", "COLUMNS": "80"}, folder=operator.folder, answers=typed,
    )  # fmt: skip
    assert done.code == 0, done.shown
    assert "a long one" not in done.shown
    assert "reads and writes launch" in done.shown
    with psycopg.connect(
        make_conninfo(database.runtime_dsn, user=login, password="a long one", passfile="")
    ) as session:
        session.execute("SELECT set_config('hermes.purpose', 'overview', true)")
        assert session.execute("SELECT DISTINCT agent_identity FROM conversations").fetchall() == [("launch",)]
