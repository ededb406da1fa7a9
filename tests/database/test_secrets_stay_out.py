"""Secrets reach neither Postgres nor the embedding endpoint, whatever door they come in by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.ops.carry.intake import Tally, taking_in
from hermes_memory_pgvector.ops.carry.lines import Lines
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from testing.agent import AgentHome
from testing.embed_server import EmbedServer
from testing.postgres import Database

SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z4A"
MASKED = "[redacted:github-token]"
NOTE = "The release robot of the workshop signs in to the forge with {} every Monday"
DIM = 32


@pytest.fixture
def embedder() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, database: Database, embedder: EmbedServer) -> Iterator[AgentHome]:
    migrate.apply(database.owner_dsn, model=NewModel("test-model", DIM, 0.0, 0.125))
    made = AgentHome.create(
        tmp_path / "home", database, embed_url=embedder.url, embed_model="test-model", recall_log="text",
        embed_on_write=True, conversation_embed_policy="all", bulk_sync_on_init=True,
    )  # fmt: skip
    yield made
    made.close()


def everything(database: Database) -> str:
    """All rows of all tables, as text."""
    with psycopg.connect(database.owner_dsn) as connection:
        tables = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname !~ '^(pg_|info)'"
        ).fetchall()
        parts = [connection.execute(f"SELECT to_jsonb(t)::text FROM {name} AS t").fetchall() for (name,) in tables]
        letters = connection.execute("SELECT convert_from(payload, 'UTF8') FROM dead_letters").fetchall()
    return "\n".join(row[0] for rows in [*parts, letters] for row in rows)


def note(number: int) -> str:
    return f"{NOTE.format(SECRET)}, note {number}."


def said(database: Database) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.owner_dsn) as connection:
        return connection.execute("SELECT content, metadata FROM conversations ORDER BY id").fetchall()


def entries(database: Database) -> list[str]:
    with psycopg.connect(database.owner_dsn) as connection:
        return [row[0] for row in connection.execute("SELECT content FROM memory_entries ORDER BY id").fetchall()]


def test_no_door_lets_a_secret_in(home: AgentHome, database: Database, embedder: EmbedServer, caplog: Any) -> None:
    provider = home.provider()
    provider.sync_turn(note(1), note(2), session_id="s1")
    provider.on_memory_write("add", "memory", note(3), metadata={"session_id": "s1", "why": f"token {SECRET}"})
    provider.on_delegation(f"Use {SECRET} to release the site of the workshop", note(4), child_session_id="c1")
    home.write_memories(note(3), note(5))
    home.settle()
    home.mirror()
    lines: list[dict[str, Any]] = [
        {"kind": "turn", "theme": "marketing", "session": "old", "role": "user", "at": "2026-01-01T00:00:00+00:00",
         "content": note(6)},
        {"kind": "memory", "theme": "marketing", "target": "memory", "created_at": "2026-01-01T00:00:00+00:00",
         "content": note(7), "metadata": {"from": SECRET}},
    ]  # fmt: skip
    now = datetime.now(UTC)
    with taking_in(home.engine.pool, home.engine.settings, Tally(), is_dry=False) as intake:
        for row in Lines("lines", "marketing", home.engine.settings, now, now).read(enumerate(lines, start=1)):
            intake.add(row)
    assert home.engine.flush(Deadline.after(30))
    provider.handle_tool_call("recall_conversation", {"query": f"who uses {SECRET}?"})
    provider.prefetch(f"who signs in with {SECRET}?", session_id="s2")
    home.close()

    found = everything(database)
    assert SECRET not in found
    assert found.count(MASKED) >= 7
    assert embedder.texts
    assert not [text for text in embedder.texts if SECRET in text]
    assert SECRET not in caplog.text


def test_a_row_counts_what_was_masked_in_it(home: AgentHome, database: Database) -> None:
    home.provider().sync_turn(note(1), "Nothing secret is said here by anybody at all.", session_id="s1")
    home.settle()
    (masked, counted), (plain, nothing) = said(database)
    assert MASKED in masked
    assert counted["redacted"] == {"github-token": 1}
    assert "redacted" not in nothing
    assert "Nothing secret" in plain


def test_a_turn_told_again_is_recognised(home: AgentHome, database: Database) -> None:
    provider = home.provider()
    provider.sync_turn(note(1), note(2), session_id="s1")
    home.settle()
    messages = [{"role": "user", "content": note(1)}, {"role": "assistant", "content": note(2)}]
    home.close()
    again = home.provider()
    again.on_session_end(messages)
    home.settle()
    assert len(said(database)) == 2


def test_what_was_undone_is_found_by_the_words_that_were_masked(home: AgentHome, database: Database) -> None:
    provider = home.provider()
    provider.sync_turn(note(1), note(2), session_id="s1")
    home.settle()
    provider.on_session_switch("s1", rewound=True)
    home.settle()
    with psycopg.connect(database.owner_dsn) as connection:
        assert connection.execute("SELECT 1 FROM conversations WHERE hidden_by IS NULL").fetchall() == []


@pytest.mark.parametrize("old", [NOTE.format(SECRET), SECRET, "The release robot"])
def test_an_entry_with_a_secret_can_be_replaced_and_removed(home: AgentHome, database: Database, old: str) -> None:
    provider = home.provider()
    provider.on_memory_write("add", "memory", NOTE.format(SECRET))
    home.settle()
    assert entries(database) == [NOTE.format(MASKED)]
    provider.on_memory_write("replace", "memory", "The robot has a key of its own.", metadata={"old_text": old})
    home.settle()
    assert entries(database) == ["The robot has a key of its own."]


def test_the_file_and_the_tool_mean_the_same_entry(home: AgentHome, database: Database) -> None:
    home.provider().on_memory_write("add", "memory", NOTE.format(SECRET))
    home.write_memories(NOTE.format(SECRET))
    home.settle()
    home.mirror()
    assert entries(database) == [NOTE.format(MASKED)]
    home.write_memories()
    home.mirror()
    assert entries(database) == []


def test_a_dead_letter_holds_no_secret(home: AgentHome, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("ALTER TABLE conversations ADD CONSTRAINT no_notes CHECK (content NOT LIKE '%note 1.')")
    provider = home.provider()
    provider.sync_turn(note(1), note(2), session_id="s1")
    home.settle()
    assert len(said(database)) == 1
    found = everything(database)
    assert "note 1." in found
    assert SECRET not in found


def test_masking_can_be_turned_off(tmp_path: Path, database: Database) -> None:
    home = AgentHome.create(tmp_path / "home", database, mask_secrets=False)
    home.provider().sync_turn(note(1), note(2), session_id="s1")
    home.settle()
    assert [SECRET in content for content, _ in said(database)] == [True, True]
    home.close()


def test_an_operators_own_rule(tmp_path: Path, database: Database) -> None:
    home = AgentHome.create(tmp_path / "home", database, mask_secrets={"badge": r"BDG-\d{6}"})
    home.provider().sync_turn(
        "My badge BDG-123456 opens the door of the workshop on Mondays.", "I shall remember that it does.",
        session_id="s1",
    )  # fmt: skip
    home.settle()
    assert "[redacted:badge]" in said(database)[0][0]
    home.close()
