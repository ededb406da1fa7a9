"""undo, restore, edit and mute: dry runs change nothing, and what is done is audited and can be undone."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.care import changes
from hermes_memory_pgvector.care.actor import operator
from hermes_memory_pgvector.care.changes import Hand
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.store import memories, mirror_files
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.search import Meaning, search
from hermes_memory_pgvector.values import (
    AddMemory,
    Kind,
    MemoryOperation,
    Moment,
    Origin,
    Question,
    RemoveMemory,
    ReplaceMemory,
    Scope,
)
from testing.agent import AgentHome
from testing.command import Commands, Finished, with_password
from testing.postgres import DIM, MODEL, Database
from testing.stored import Stored
from testing.unchanged import nothing_changes
from testing.waiting import wait_until


def minute(number: int) -> Moment:
    at = (1_772_000_000 + 60 * number) * 1_000_000
    return Moment(at, at)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", "Prices rise in spring", minute(1), "home-b"),
    ReplaceMemory("market", "memory", "Prices fall in spring", "Prices rise", minute(2), "home-b"),
    AddMemory("market", "memory", "Stands in the file", minute(3), "home-a", Origin.FILE),
    AddMemory("market", "user", "Likes tea", minute(4), "home-a", Origin.FILE),
    RemoveMemory("market", "user", "Likes tea", minute(5), "home-a"),
]


@pytest.fixture
def stored(database: Database) -> Stored:
    with psycopg.connect(database.owner_dsn) as owner:
        for number, operation in enumerate(OPERATIONS, start=1):
            memories.store(owner, [Placed(operation, "writer", number, 0)])
        digests = [mirror_files.digest_of("Stands in the file")]
        mirror_files.write_file(owner, "home-a", "memory", digests, datetime.now(UTC))
        owner.execute("DELETE FROM pending_vectors")
    return Stored(database.owner_dsn)


@pytest.fixture
def commands(database: Database, stored: Stored, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, ttl_days="history=0")
    return made


def contents(stored: Stored) -> list[str]:
    return [content for _, content in stored.memories("market")]


def audited(stored: Stored) -> list[tuple[str, str, str]]:
    return [(a, t, s) for a, t, s in stored.rows("SELECT action, theme, subject FROM audit_log ORDER BY id")]


def dry_then_done(commands: Commands, stored: Stored, *arguments: str, code: int = 0) -> Finished:
    """A dry run that changes nothing and says how to go on, and then the real one."""
    with nothing_changes(stored):
        dry = commands.call(*arguments)
        assert dry.code == code, dry
        assert commands.call(*arguments, "--json").json["executed"] is False
    if not code:
        assert "dry run" in dry.out
        assert "--execute" in dry.out
    done = commands.call(*arguments, "--execute", "--json")
    assert done.code == code, done
    return done


def test_undo_of_a_replace_brings_the_former_words_back_and_can_be_undone(commands: Commands, stored: Stored) -> None:
    done = dry_then_done(commands, stored, "undo", "e2").json
    assert (done["changes"][0]["remove"], done["changes"][0]["restore"]) == (
        ["Prices fall in spring"], ["Prices rise in spring"],
    )  # fmt: skip
    assert "Prices rise in spring" in contents(stored)
    assert "Prices fall in spring" not in contents(stored)
    assert audited(stored) == [("undo", "market", "event e2")]
    assert stored.rows("SELECT kind FROM pending_vectors") == [("memory",)]
    newest = commands.call("list", "events", "--json").json["rows"][0]
    assert (newest["action"], newest["by"], newest["metadata"]["undoes"]) == ("replace", "undo", 2)
    assert commands.call("undo", newest["id"], "--execute").code == 0
    assert "Prices fall in spring" in contents(stored)


def test_undo_of_a_remove_puts_the_memory_back_and_shows_the_line_to_add(commands: Commands, stored: Stored) -> None:
    with nothing_changes(stored):
        assert "+ market/user  Likes tea" in commands.call("undo", "e5").out
    done = commands.call("undo", "e5", "--execute")
    assert "stands in no USER.md" in done.out
    assert "Likes tea" in done.out
    assert "Likes tea" in contents(stored)
    assert "changed nothing that is still so" in commands.call("undo", "e5").err


def test_a_file_wins_over_undo_and_the_line_to_remove_is_shown(commands: Commands, stored: Stored) -> None:
    done = commands.call("undo", "e3", "--execute")
    assert done.code == 3
    assert "it stands in MEMORY.md of home home-a, and the file wins" in done.out
    assert "remove this line:" in done.out
    assert "Stands in the file" in contents(stored)
    assert audited(stored) == []
    document = commands.call("undo", "e3", "--json").json
    assert document["files_win"] == [
        {"file": "MEMORY.md", "homes": ["home-a"], "line": "Stands in the file", "instead": None}
    ]


def test_restore_shows_the_difference_and_then_makes_it(commands: Commands, stored: Stored) -> None:
    at = ("restore", "--theme", "market", "--at", "2026-02-25T06:14:30")
    dry = commands.call(*at)
    assert "- market/memory  Prices fall in spring" in dry.out
    assert "+ market/memory  Prices rise in spring" in dry.out
    done = dry_then_done(commands, stored, *at, code=3).json
    assert done["counts"] == {"removed": 1, "restored": 1, "blocked": 1}
    assert sorted(contents(stored)) == ["Prices rise in spring", "Stands in the file"]
    assert [row[0] for row in audited(stored)] == ["restore"]
    assert commands.call("restore", "--theme", "market", "--at", "2999-01-01").code == 1


def test_edit_of_a_memory_by_text_by_editor_and_where_a_file_wins(
    commands: Commands, stored: Stored, tmp_path: Path
) -> None:
    ids = dict(stored.rows("SELECT content, 'm' || id FROM memory_entries"))
    name = ids["Prices fall in spring"]
    assert dry_then_done(commands, stored, "edit", name, "--text", "Prices are stable").json["executed"]
    assert stored.rows("SELECT content FROM memory_entries WHERE 'm' || id = %s", name) == [("Prices are stable",)]
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/stable/wild/ "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    assert commands.call("edit", name, "--execute", variables={"EDITOR": str(editor)}).code == 0
    assert "Prices are wild" in contents(stored)
    assert audited(stored) == [("edit", "market", name)] * 2
    with nothing_changes(stored):
        done = commands.call("edit", ids["Stands in the file"], "--text", "Other words", "--execute")
        assert done.code == 3
        assert "change this line:" in done.out
        assert "to this one:" in done.out
        for wrong in ("", "one\n§\ntwo"):
            assert commands.call("edit", name, "--text", wrong, "--execute").code == 1
        assert "stays as it is" in commands.call("edit", name, "--text", "Prices are wild", "--execute").out
        assert "cannot be started" in commands.call("edit", name, variables={"EDITOR": "/nowhere/editor"}).err


def test_a_turn_is_not_edited(commands: Commands, stored: Stored) -> None:
    insert = """INSERT INTO conversations (agent_identity, id, session_id, role, content)
        VALUES ('market', 77, 's', 'user', 'My card is 1234') RETURNING id"""
    assert stored.rows(insert) == [(77,)]
    with nothing_changes(stored):
        done = commands.call("edit", "t77", "--text", "My card is hidden", "--execute")
    assert (done.code, "`mute` hides it, `forget` erases it" in done.err) == (1, True)


def test_mute_keeps_rows_out_of_every_search_and_its_undo_brings_them_back(
    commands: Commands, stored: Stored, database: Database
) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, id, session_id, role, content)"
            " SELECT 'market', n, 's', 'user', 'the harbour number ' || n FROM generate_series(900, 904) AS n;"
            " INSERT INTO memory_entries (agent_identity, id, target, content)"
            " SELECT 'market', n, 'memory', 'the harbour number ' || n FROM generate_series(900, 904) AS n;"
            " INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
            f" SELECT agent_identity, id, ts, id, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM conversations;"
            " INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding)"
            f" SELECT agent_identity, id, now(), target, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM memory_entries"
            " WHERE id >= 900"
        )

    def found() -> list[set[int]]:
        """What every way of searching finds: by meaning and words, by words alone, here and everywhere."""
        hits = []
        with psycopg.connect(database.runtime_dsn) as connection:
            model = current_model(connection)
            assert model is not None
            for meaning in (Meaning(model, [0.125] * DIM), None):
                for kind, scope in itertools.product(Kind, (Scope.CURRENT, Scope.ALL)):
                    question = Question("harbour", kind, "market", scope, limit=20)
                    rows = search(connection, question, meaning, read_wording(question))
                    hits.append({hit.id for hit in rows if hit.id >= 900})
        return hits

    everything = set(range(900, 905))
    assert found() == [everything] * 8
    done = dry_then_done(commands, stored, "mute", "m901", "t901").json
    assert ([row["id"] for row in done["samples"]], done["rule"]) == (["m901", "t901"], 1)
    assert found() == [everything - {901}] * 8
    with nothing_changes(stored):
        assert "nothing to hide" in commands.call("mute", "m901").out
        assert commands.call("mute", "m901", "--execute", "--json").json["unchanged"] == ["m901"]
        assert commands.call("backfill", "--json", variables={"HERMES_PGVECTOR_EMBED_URL": "http://127.0.0.1:9"}).code
    neighbours = stored.rows("SELECT count(*) FROM turn_vectors_1 WHERE id = 901")
    assert neighbours == [(0,)]
    dry_then_done(commands, stored, "mute", "--undo", "1")
    assert stored.rows("SELECT kind, id FROM pending_vectors ORDER BY kind, id") == [
        ("memory", 901), ("turn", 901), ("turn", 902),
    ]  # fmt: skip
    by_words = found()[4:]
    assert by_words == [everything] * 4
    assert [row[0] for row in audited(stored)] == ["mute", "mute undo"]


def test_a_hidden_memory_stays_hidden_when_its_words_change(commands: Commands, stored: Stored) -> None:
    ((name,),) = stored.rows("SELECT 'm' || id FROM memory_entries WHERE content LIKE 'Prices%%'")
    commands.call("mute", name, "--execute")
    commands.call("edit", name, "--text", "Prices are secret", "--execute")
    assert stored.rows(
        "SELECT content, lexemes::text, hidden_by IS NULL FROM memory_entries WHERE 'm' || id = %s", name
    ) == [("Prices are secret", "", False)]


def test_a_hidden_memory_stays_hidden_when_a_change_comes_late_or_another_home_keeps_the_old_words(
    stored: Stored, database: Database
) -> None:
    shared = [AddMemory("market", "memory", "Fish is cheap", minute(10 + n), home) for n, home in enumerate("ab")]
    changes = [
        ReplaceMemory("market", "memory", "Fish is dear", "Fish is cheap", minute(20), "a"),
        # It comes after a later operation, so everything is made anew.
        ReplaceMemory("market", "memory", "Prices stay in spring", "Prices fall", minute(6), "home-b"),
    ]
    with psycopg.connect(database.owner_dsn) as owner:
        memories.store(owner, [Placed(each, "other", n, 0) for n, each in enumerate(shared)])
        owner.execute("UPDATE memory_entries SET hidden_by = 1 WHERE content ~ '^(Fish|Prices)'")
        for number, operation in enumerate(changes, start=10):
            memories.store(owner, [Placed(operation, "other", number, 0)])
    assert stored.rows(
        "SELECT content, hidden_by IS NULL, lexemes = '' FROM memory_entries WHERE target = 'memory' ORDER BY content"
    ) == [
        ("Fish is cheap", False, True),
        ("Fish is dear", False, True),
        ("Prices stay in spring", False, True),
        ("Stands in the file", True, False),
    ]


def test_a_time_before_the_history_is_not_restored(commands: Commands, stored: Stored) -> None:
    with nothing_changes(stored):
        done = commands.call("restore", "--theme", "market", "--at", "2026-02-24", "--execute")
        assert (done.code, "history of market begins at 2026-02-25" in done.err) == (1, True)
        commands.call("config", "set", "ttl_days", "history=1")
        done = commands.call("restore", "--theme", "market", "--at", "2026-02-25T06:14:30", "--execute")
        assert (done.code, "is kept for 1 days" in done.err) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("undo", "e999"),
        ("undo", "x"),
        ("undo", "e1", "--theme", "makret"),
        ("mute", "m999"),
        ("edit", "m999", "--text", "x"),
        ("restore", "--theme", "makret", "--at", "1h"),
    ],
)
def test_what_is_not_there_is_said_so_and_nothing_changes(
    commands: Commands, stored: Stored, arguments: tuple[str, ...]
) -> None:
    with nothing_changes(stored):
        done = commands.call(*arguments, "--execute")
    assert done.code == 1
    assert any(word in done.err for word in ("there is no", "names no event"))


def test_what_a_mirrored_home_gets_back_stays_when_its_file_is_written_again(agent_home: AgentHome) -> None:
    agent_home.write_memories("Roses need sun")
    agent = agent_home.provider(None)
    agent.on_memory_write("add", "memory", "The gate is seven", {})
    agent.on_memory_write("replace", "memory", "The gate is nine", {"old_text": "seven"})
    agent_home.settle()
    stored = agent_home.stored
    ((event,),) = stored.rows("SELECT id FROM memory_operations WHERE action = 'replace'")
    engine = agent_home.engine
    wait_until(lambda: stored.rows("SELECT count(*) FROM memory_files WHERE digests <> '{}'") == [(1,)])
    hand = Hand(operator(agent_home.path), engine.clock.now, wants_vectors=False)
    with engine.pool.transaction(Deadline.after(30)) as connection:
        assert changes.undo(connection, event, hand, execute=True).executed
    agent_home.write_memories("Roses need sun", "Another line")
    agent_home.mirror()
    contents = {content for (content,) in stored.rows("SELECT content FROM memory_entries")}
    assert contents == {"Roses need sun", "Another line", "The gate is seven"}
