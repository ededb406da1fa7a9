"""`import` of folders, other memories, databases and the answers of services: each row once, where it belongs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database, new_database
from testing.stored import Stored

MEM0 = {
    "id": "3c90c3cc", "memory": "Likes green tea in the morning.", "user_id": "ada", "hash": "x",
    "metadata": {"mood": "good"}, "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-03T03:04:05Z",
}  # fmt: skip
HONCHO = [
    {"id": "1", "content": "Which tea do we have left in the pantry?", "peer_id": "ada", "session_id": "kitchen",
     "created_at": "2026-01-02T03:04:05Z", "workspace_id": "w", "metadata": {}, "token_count": 9},
    {"id": "2", "content": "Only the green one, half a tin of it.", "peer_id": "Assistant", "session_id": "kitchen",
     "created_at": "2026-01-02T03:04:09Z", "workspace_id": "w", "metadata": {}, "token_count": 9},
    {"id": "3", "content": "Which tea do we have left in the pantry?", "peer_id": "ada", "session_id": "kitchen",
     "created_at": "2026-01-02T04:04:05Z", "workspace_id": "w", "metadata": {}, "token_count": 9},
]  # fmt: skip
HINDSIGHT = {
    "id": "a1", "text": "Alice works as a software engineer.", "type": "world", "context": "career",
    "mentioned_at": "2026-01-02T03:04:05Z",
}  # fmt: skip
SUPERMEMORY = {
    "id": "d1", "title": "Plan", "content": "The Q1 plan has three milestones.", "containerTags": ["user_123"],
    "createdAt": "2026-01-02T03:04:05.000Z", "updatedAt": "2026-01-02T03:04:05.000Z", "metadata": {"team": "x"},
}  # fmt: skip


@pytest.fixture
def homes(
    tmp_path: Path, postgres_server: ConnectionInfo, migrated_template: Database
) -> Iterator[list[tuple[Commands, Database]]]:
    with ExitStack() as stack:
        made = []
        for number in range(2):
            database = stack.enter_context(new_database(postgres_server, template=migrated_template.name))
            runtime, password = with_password(database.runtime_dsn)
            commands = Commands(tmp_path / str(number), [password])
            commands.configure(dsn=runtime)
            made.append((commands, database))
        yield made


def imported(commands: Commands, *arguments: str, execute: bool = True) -> dict[str, Any]:
    done = commands.call("import", *arguments, *(("--execute",) if execute else ()), "--json")
    assert done.code == 0, done.everything
    themes = {each["theme"]: (each["stored"], each["known"]) for each in done.json["samples"]}
    return {"stored": done.json["counts"]["rows"], "themes": themes, "left_out": done.json["left_out"]}


def test_what_other_services_answer_with_becomes_memories_and_turns(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    stored = Stored(database.owner_dsn)
    pages: dict[str, list[Any]] = {
        "mem0": [{"results": [MEM0]}], "honcho": HONCHO, "hindsight": [HINDSIGHT], "supermemory": [SUPERMEMORY],
    }  # fmt: skip
    for name, objects in pages.items():
        path = here.folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")
        arguments = (str(path), "--theme", "Tea")
        assert imported(here, *arguments, execute=False)["stored"] == (3 if name == "honcho" else 1)
        assert imported(here, *arguments)["stored"] == (3 if name == "honcho" else 1)
        assert imported(here, *arguments)["stored"] == 0
    assert [content for _, content in stored.memories("tea")] == [
        MEM0["memory"], HINDSIGHT["text"], SUPERMEMORY["content"],
    ]  # fmt: skip
    assert stored.turns("tea") == [
        ("user", "kitchen", HONCHO[0]["content"]),
        ("assistant", "kitchen", HONCHO[1]["content"]),
        ("user", "kitchen", HONCHO[2]["content"]),
    ]
    ((at, metadata),) = stored.rows(
        "SELECT created_at, metadata FROM memory_entries WHERE content = %s", MEM0["memory"]
    )
    assert at.isoformat() == "2026-01-02T03:04:05+00:00"
    assert metadata == {"mood": "good", "id": "3c90c3cc", "user_id": "ada"}


def test_what_services_really_answer_with_is_taken(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    path = here.folder / "answer.json"

    def taken(text: str) -> dict[str, Any]:
        path.write_text(text, encoding="utf-8")
        return imported(here, "jsonl", str(path), "--theme", "tea")

    other = {**MEM0, "id": "2", "memory": "Has no sugar in it, ever."}
    # An older client answers with a bare list; whoever saves an answer for people has it on many lines.
    assert taken(json.dumps([MEM0]))["stored"] == 1
    assert taken(json.dumps({"count": 2, "next": None, "results": [MEM0, other]}, indent=2))["stored"] == 1
    again = taken("\ufeff" + json.dumps([MEM0, other], indent=2))
    assert again == {"stored": 0, "themes": {"tea": (0, 2)}, "left_out": {}}
    # A document that is still being read has no words yet; the others of its page are taken.
    queued: dict[str, Any] = {"id": "d2", "customId": None, "content": None, "summary": None, "title": None}
    page = taken(json.dumps({"memories": [queued, SUPERMEMORY], "pagination": {"totalPages": 1}}))
    assert (page["stored"], page["left_out"]) == (1, {"without any words": 1})
    # As the column of a turn's time is called here.
    assert taken(json.dumps({"role": "user", "content": "Where is it?", "ts": "2025-03-04T05:06:07+00:00"}))["stored"]
    assert Stored(database.owner_dsn).rows("SELECT extract(year FROM ts)::integer FROM conversations") == [(2025,)]
    # No time, as some languages write it; seconds and milliseconds.
    times = {"0001-01-01T00:00:00Z": None, 1_767_323_045: 2026, 1_767_323_045_000: 2026}
    for number, (time, year) in enumerate(times.items()):
        words = f"Drinks it from cup number {number}."
        assert taken(json.dumps({"text": words, "timestamp": time}))["stored"] == 1
        ((at,),) = Stored(database.owner_dsn).rows("SELECT created_at FROM memory_entries WHERE content = %s", words)
        assert year in (None, at.year)


def test_files_of_any_home_become_memories_of_its_theme(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    other = here.folder / "old" / "profiles" / "coder"
    (other / "memories").mkdir(parents=True)
    (other / "memories" / "MEMORY.md").write_text("Deploys are on Thursdays.\n§\nTests run first.", encoding="utf-8")
    (other / "memories" / "USER.md").write_text("Prefers short answers.", encoding="utf-8")
    assert imported(here, str(other))["themes"] == {"coder": (3, 0)}
    assert imported(here, "files", str(other / "memories"))["stored"] == 0
    assert sorted(Stored(database.owner_dsn).memories("coder")) == [
        ("memory", "Deploys are on Thursdays."),
        ("memory", "Tests run first."),
        ("user", "Prefers short answers."),
    ]
    assert here.call("import", "files").code == 1
    assert "neither a MEMORY.md nor a USER.md" in here.call("import", str(here.folder)).err


def test_the_facts_of_a_holographic_memory_become_memories(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    path = here.home / "memory_store.db"
    with closing(sqlite3.connect(path)) as store:
        store.execute(
            "CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE, category TEXT, tags TEXT,"
            " trust_score REAL, retrieval_count INTEGER, created_at TIMESTAMP, updated_at TIMESTAMP, hrr_vector BLOB)"
        )
        store.execute(
            "INSERT INTO facts VALUES (1, 'Ada drinks tea.', 'user_pref', 'tea', 0.8, 2, '2026-01-02', NULL, NULL)"
        )
        store.execute(
            "INSERT INTO facts VALUES (2, 'The mill has two cellars.', 'general', '', 0.5, 0, '2026-01-02', NULL, NULL)"
        )
        store.commit()
    assert imported(here, "holographic")["stored"] == 2
    assert imported(here, str(path))["stored"] == 0
    assert sorted(Stored(database.owner_dsn).memories("hermes")) == [
        ("memory", "The mill has two cellars."),
        ("user", "Ada drinks tea."),
    ]
    path.write_bytes(b"no database" * 100)
    assert "cannot be read (SQLITE_NOTADB)" in " ".join(here.call("import", "holographic").err.split())


def test_the_rows_of_another_database_of_ours_are_taken(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    home = AgentHome.create(here.home, source)
    agent = home.provider("market", "s1")
    agent.sync_turn("Which shipment left the harbour in spring?", "The one with the tea left in spring.")
    agent.on_memory_write("add", "memory", "The harbour closes at nine.", {})
    agent.on_memory_write("replace", "memory", "The harbour closes at ten.", {"old_text": "at nine"})
    agent.on_delegation("Count the crates.", "Seven.", child_session_id="c1")
    home.provider("trading", "s2").sync_turn("Which ferry is late today?", "The one from the island is late.")
    home.settle()
    home.close()
    hidden = "SELECT id FROM conversations WHERE content LIKE 'The one with%%'"
    ((turn,),) = Stored(source.owner_dsn).rows(hidden)
    assert here.call("mute", f"t{turn}", "--execute").code == 0
    dsn, password = with_password(source.owner_dsn)
    there.secrets.append(password)
    assert imported(there, dsn, "--theme", "market", execute=False)["themes"] == {"market": (4, 0)}
    assert imported(there, dsn, "--theme", "market")["stored"] == 4
    assert imported(there, "peer", dsn)["themes"] == {"market": (0, 4), "trading": (2, 0)}
    assert imported(there, dsn)["stored"] == 0
    for table in ("conversations", "memory_entries"):
        said = f"SELECT agent_identity, content, hidden_by IS NULL FROM {table} ORDER BY content"
        assert Stored(target.owner_dsn).rows(said) == Stored(source.owner_dsn).rows(said), table


def test_a_database_of_the_published_package_is_read_row_by_row(
    homes: list[tuple[Commands, Database]], empty_database: Database
) -> None:
    (here, database), _ = homes
    dsn, password = with_password(empty_database.owner_dsn)
    here.secrets.append(password)
    assert "neither our tables nor those" in " ".join(here.call("import", dsn).err.split())
    with psycopg.connect(empty_database.owner_dsn) as connection:
        connection.execute(
            "CREATE TABLE memory_entries (id bigserial PRIMARY KEY, agent_identity text, target text, content text,"
            " created_at timestamptz DEFAULT now(), updated_at timestamptz DEFAULT now(), metadata jsonb)"
        )
        connection.execute(
            "CREATE TABLE conversations (id bigserial PRIMARY KEY, session_id text, agent_identity text, role text,"
            " content text, ts timestamptz DEFAULT now(), metadata jsonb)"
        )
        connection.execute(
            "INSERT INTO memory_entries (agent_identity, target, content) VALUES ('market', 'memory', 'Tea is sold.')"
        )
        connection.execute(
            "INSERT INTO conversations (session_id, agent_identity, role, content) SELECT 's', 'market', 'user',"
            " 'When is the next delivery of tea?' FROM generate_series(1, 2)"
        )
    assert imported(here, dsn)["stored"] == 3
    assert imported(here, dsn)["stored"] == 0
    assert Stored(database.owner_dsn).memories("market") == [("memory", "Tea is sold.")]
