"""`forget --secrets` finds secrets that are stored, in every table, and masks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.store import history, memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.values import AddMemory, AddTurn, MemoryOperation, Moment, RemoveMemory, ReplaceMemory
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database
from testing.stored import Stored
from testing.unchanged import nothing_changes

SECRET = "glpat-" + "aB3dE5fG7hJ9kL1mN3pQ"
MASKED = "[redacted:gitlab-token]"


def at(minute: int) -> Moment:
    us = (1_772_000_000 + 60 * minute) * 1_000_000
    return Moment(us, us)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", f"Sign in with {SECRET}", at(1), "home-a"),
    AddMemory("market", "memory", f"Sign in with {MASKED}", at(2), "home-b"),
    AddMemory("market", "memory", "Prices rise in spring", at(3), "home-a", metadata={"from": SECRET}),
    AddMemory("market", "user", f"Likes tea and {SECRET}", at(4), "home-a"),
    # A part of the token names the entry, and is a part of nothing once that is masked.
    ReplaceMemory("market", "user", "Likes tea", SECRET[:14], at(5), "home-a"),
    AddMemory("market", "user", f"Gone: {SECRET}", at(6), "home-a"),
    RemoveMemory("market", "user", f"Gone: {SECRET[:9]}", at(7), "home-a"),
    AddMemory("plain", "memory", "Nothing secret here", at(8), "home-a"),
]
ROWS = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, metadata, digest, ordinal) VALUES
    ('market', 501, 's', 'user', 'Use %(secret)s for the release of the site', '2026-02-01', '{}', '\\x01', 1),
    ('market', 502, 's', 'assistant', 'I shall use it for the release of the site', '2026-02-02', '{}', '\\x02', 1),
    ('market', 503, 's', 'tool', 'A page that says nothing of it', '2026-02-03', '{"args": {"token": "%(secret)s"}}',
     '\\x03', 1);
INSERT INTO recall_log (agent_identity, at, caller, kind, scope, query, milliseconds)
    VALUES ('market', now(), 'tool', 'turn', 'current', 'who uses %(secret)s?', 1);
"""


@pytest.fixture
def stored(database: Database) -> Stored:
    turn = AddTurn("market", "s", "user", f"Refused: {SECRET}", 1, at(1), True)
    with psycopg.connect(database.owner_dsn) as owner:
        for number, operation in enumerate(OPERATIONS, start=1):
            memories.store(owner, [Placed(operation, "writer", number, 0)])
        owner.execute((ROWS % {"secret": SECRET}).encode())
        owner.execute(
            "INSERT INTO dead_letters (writer, position, payload, reason) VALUES"
            " ('w', 1, %s, 'x'), ('w', 2, 'ours?', 'x')",
            [codec.encode([turn])],
        )
    return Stored(database.owner_dsn)


@pytest.fixture
def commands(database: Database, stored: Stored, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password, SECRET])
    made.configure(dsn=runtime, embed_model=MODEL)
    return made


def everything(stored: Stored) -> str:
    tables = stored.rows("SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'")
    found = [row[0] for (name,) in tables for row in stored.rows(f"SELECT to_jsonb(t)::text FROM {name} AS t")]
    letters = [row[0] for row in stored.rows("SELECT encode(payload, 'escape') FROM dead_letters")]
    return "\n".join([*found, *letters])


def entries(stored: Stored, target: str) -> list[Any]:
    return stored.rows(
        "SELECT content FROM memory_entries WHERE agent_identity = 'market' AND target = %s ORDER BY id", target
    )


def test_a_dry_run_tells_and_changes_nothing(commands: Commands, stored: Stored) -> None:
    with nothing_changes(stored):
        told = commands.call("forget", "--secrets")
        found = commands.call("forget", "--secrets", "--json").json
    assert told.code == 0
    assert "--secrets" in told.out
    assert "--execute" in told.out
    assert "gitlab-token" in told.out
    assert found["executed"] is False
    assert found["counts"] == {
        "events": 4, "memories": 2, "turns": 2, "questions": 1, "rejected": 1,
    }  # fmt: skip
    assert found["unreadable"] == 1
    assert found["samples"]
    assert all(MASKED in sample["content"] or sample["id"] == "t503" for sample in found["samples"])


def test_what_is_found_is_masked_everywhere(commands: Commands, stored: Stored) -> None:
    assert SECRET in everything(stored)
    assert commands.call("forget", "--secrets", "--execute").code == 0
    found = everything(stored)
    assert SECRET not in found
    assert SECRET[:14] not in found
    again = commands.call("forget", "--secrets", "--json").json
    assert again["counts"] == {}
    assert {row[0] for row in stored.rows("SELECT action FROM audit_log")} == {"forget"}


def test_memories_and_their_history_stay_what_they_were(commands: Commands, stored: Stored) -> None:
    commands.call("forget", "--secrets", "--execute")
    assert entries(stored, "memory") == [(f"Sign in with {MASKED}",), ("Prices rise in spring",)]
    assert entries(stored, "user") == [("Likes tea",)]
    with psycopg.connect(stored.dsn) as owner:
        for target in ("memory", "user"):
            told = fold(event.operation() for event in history.of_theme(owner, "market", target))
            assert set(told) == {content for (content,) in entries(stored, target)}
    homes = stored.rows("SELECT jsonb_object_keys(homes) FROM memory_entries WHERE content LIKE 'Sign%%' ORDER BY 1")
    assert homes == [("home-a",), ("home-b",)]


def test_a_masked_turn_is_embedded_anew_and_found_by_its_other_words(commands: Commands, stored: Stored) -> None:
    commands.call("forget", "--secrets", "--execute")
    ((content, metadata, digest),) = stored.rows("SELECT content, metadata, digest FROM conversations WHERE id = 501")
    assert content == f"Use {MASKED} for the release of the site"
    assert metadata["redacted"] == {"gitlab-token": 1}
    assert bytes(digest) == b"\x01"
    assert (501,) in stored.rows("SELECT id FROM pending_vectors WHERE kind = 'turn'")
    told = commands.call("status")
    assert "masked: " in told.out
    assert "gitlab-token" in told.out


def test_one_theme_leaves_the_others(commands: Commands, stored: Stored) -> None:
    commands.call("forget", "--secrets", "--theme", "plain", "--execute")
    assert SECRET in everything(stored)
    done = commands.call("forget", "--secrets", "--theme", "markt")
    assert done.code == 1
    assert "did you mean market" in done.everything
