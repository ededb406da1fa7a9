"""Profiles that change their database: nothing is left behind without a word, and nobody switches others' model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.server.server import SETTINGS, EmbeddedPostgres
from testing.command import Commands, Finished, with_password
from testing.host_state import fill
from testing.postgres import FAST, Database
from testing.stored import Stored

SAFE = "The safe behind the painting in the hall opens with the year of the flood."


def turn(theme: str, content: str, at: str = "2026-01-02T03:04:05+00:00") -> dict[str, Any]:
    return {"kind": "turn", "theme": theme, "session": "s1", "role": "user", "content": content, "at": at}


def memory(theme: str, content: str) -> dict[str, Any]:
    return {"kind": "memory", "theme": theme, "target": "memory", "content": content, "created_at": "2026-01-02"}


ROWS = {
    "root": [turn("hermes", "The root home counts the boats in the harbour every morning."),
             memory("hermes", "The harbour has nine berths.")],
    "coder": [turn("coder", "The build of the coder's project takes four minutes now."),
              turn("coder", SAFE), memory("coder", "The coder prefers tabs.")],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quick_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that do not wait for the disk."""
    for setting, value in FAST.items():
        monkeypatch.setitem(SETTINGS, setting, value)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """A root home and a profile that shares its embedded server, each with rows."""
    made = Commands(tmp_path)
    made.configure()
    coder = profile(made)
    coder.mkdir(parents=True)
    (coder / "config.yaml").write_text("memory: {provider: pgvector}\n", encoding="utf-8")
    try:
        assert made.call("up").code == 0
        for name, home in (("root", made.home), ("coder", coder)):
            bring(made, home, ROWS[name])
        yield made
    finally:
        for home in (made.home, coder):
            EmbeddedPostgres(home / "pgvector").stop(Deadline.after(60), mode="immediate")


def profile(commands: Commands) -> Path:
    return commands.home / "profiles" / "coder"


def bring(commands: Commands, home: Path, rows: list[dict[str, Any]]) -> None:
    file = commands.folder / "rows.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    done = run(commands, home, "import", str(file), "--execute")
    assert done.code == 0, done


def run(commands: Commands, home: Path, *arguments: str) -> Finished:
    return commands.call(*arguments, "--hermes-home", str(home))


def stored(home: Path) -> Stored:
    return Stored(EmbeddedPostgres(home / "pgvector").ensure_running(Deadline.after(60)).owner_dsn)


def takes_over_the_model_of_the_database_it_shares(commands: Commands) -> None:
    coder = profile(commands)
    before = stored(commands.home).rows("SELECT name, dim, is_current FROM embedding_models ORDER BY id")
    refused = run(commands, coder, "config", "set", "embed_url", "http://127.0.0.1:9/")
    assert refused.code == 1
    assert "shares the root home's database, whose vectors are of one model" in " ".join(refused.err.split())
    assert run(commands, coder, "up", "--embed-url", "http://127.0.0.1:9/").code == 1
    config = coder / "config.yaml"
    own = (
        "memory: {provider: pgvector, pgvector: {embed_url: 'http://127.0.0.1:9/', embed_model: other, embed_dim: 3}}\n"
    )
    config.write_text(own, encoding="utf-8")
    assert run(commands, coder, "migrate").code == 0, "migrate makes the tables of the shared model"
    done = run(commands, coder, "up")
    assert done.code == 0, done
    assert "embed_model" in " ".join(done.out.split())
    settings = load(coder).settings
    assert (settings.embed_url, settings.uses_local_model) == ("", True)
    assert stored(commands.home).rows("SELECT name, dim, is_current FROM embedding_models ORDER BY id") == before


def brings_its_rows_to_a_server_of_its_own(commands: Commands) -> None:
    coder = profile(commands)
    done = run(commands, coder, "up", "--own-database")
    assert done.code == 0, done
    said = " ".join(done.out.split())
    assert "its memories stay in the embedded server" in said
    command = f"import {commands.home / 'pgvector'} --theme coder --execute --hermes-home {coder}"
    assert command in said
    assert stored(coder).rows("SELECT agent_identity, session_id, content FROM conversations") == []
    for rows in (3, 0):
        done = commands.call(*command.split(), "--json")
        assert (done.code, done.json["counts"]["rows"]) == (0, rows), done
    assert stored(coder).themes() == {"coder"}
    assert stored(commands.home).themes() == {"coder", "hermes"}, "nothing is taken away"
    again = run(commands, commands.home, "import", str(commands.home / "pgvector"))
    assert (again.code, "uses the embedded server" in again.err) == (1, True)


def follows_to_a_postgres_of_ones_own(commands: Commands, empty_database: Database) -> None:
    dsn, password = with_password(empty_database.owner_dsn)
    commands.secrets.append(password)
    new = Stored(empty_database.owner_dsn)
    done = commands.call("up", "--dsn", dsn, "--runtime-role", "hermes_test_changed")
    assert done.code == 0, done
    said = " ".join(done.out.split())
    assert "its memories stay in the embedded server" in said
    assert new.rows("SELECT content FROM conversations") == []
    fill(profile(commands), sessions=1, exchanges=1)
    done = commands.call("up", "--all-profiles", "--yes")
    assert done.code == 0, done
    said = "Ledger 0 says that shipment 0 left the harbour with 0 crates of tea."
    assert new.themes_of(said) == {"coder"}, "the chats that hermes has kept come along, of every profile"
    done = commands.call("import", str(commands.home / "pgvector"), "--execute", "--json")
    assert (done.code, done.json["counts"]["rows"]) == (0, 5), done
    assert new.themes() == {"coder", "hermes"}


def test_a_profile_keeps_the_model_and_takes_its_rows_along(commands: Commands) -> None:
    """One home and its server for all of it: each step begins where the one before has ended."""
    takes_over_the_model_of_the_database_it_shares(commands)
    brings_its_rows_to_a_server_of_its_own(commands)


def test_profiles_follow_to_a_postgres_of_ones_own(commands: Commands, empty_database: Database) -> None:
    follows_to_a_postgres_of_ones_own(commands, empty_database)
