"""What holds for every command there is, so that a new one cannot forget it.

What changes stored rows is a dry run that changes nothing until `--execute`, which leaves a row in the audit log. A
command that is in no table here fails.
"""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector import command_line
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, ReplaceMemory
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database
from testing.stored import Stored
from testing.unchanged import nothing_changes

CHANGING: dict[str, tuple[str, ...]] = {
    "undo": ("e2",),
    "edit": ("m3", "--text", "Roses need shade"),
    "mute": ("t101",),
    "forget": ("--theme", "garden"),
}
"""For every command that takes --execute, in an order in which each finds something to do: how to call it."""
ELSEWHERE = {
    "uninstall": "changes files: below, and tests/unit/test_removal.py",
    "theme": "renames what the others name: tests/database/test_theme.py",
    "promote": "needs two servers: tests/database/test_promote.py",
    "backup": "replaces whole databases: tests/database/test_backup.py",
    "journal": "tests/database/test_cli_reading.py",
    "import": "brings rows that the others look for: tests/database/test_export.py",
}


def minute(number: int) -> Moment:
    at = (1_772_000_000 + 60 * number) * 1_000_000
    return Moment(at, at)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", "Prices rise in spring", minute(1), "home-b"),
    ReplaceMemory("market", "memory", "Prices fall in spring", "Prices rise", minute(2), "home-b"),
    AddMemory("market", "memory", "The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a", minute(3), "home-b"),
    AddMemory("garden", "memory", "Roses need sun", minute(4), "home-b"),
]
TURNS = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts) VALUES
    ('market', 101, 's1', 'user', 'Where do we moor the pilot boat?', '2026-03-05 10:00Z'),
    ('market', 102, 's1', 'assistant', 'At the northern quay.', '2026-03-01 10:01Z'),
    ('garden', 105, 's1', 'user', 'When do we cut the roses?', '2026-03-04 08:00Z')"""


@pytest.fixture
def stored(database: Database) -> Stored:
    letter = codec.encode([AddMemory("market", "memory", "Never stored", minute(5), "home-b")])
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(TURNS)
        for number, operation in enumerate(OPERATIONS, start=1):
            memories.store(owner, [Placed(operation, "writer", number, 0)])
        owner.execute(
            "INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', 1, %s, 'x')", (letter,)
        )
    return Stored(database.owner_dsn)


@pytest.fixture
def commands(database: Database, stored: Stored, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, embed_url="http://127.0.0.1:9/", ttl_days="history=0")
    return made


def test_every_command_that_takes_execute_is_tried_here() -> None:
    assert {each.name for each in command_line.EVERY if each.changes} == {*CHANGING, *ELSEWHERE}


def test_dry_runs_change_nothing_and_what_is_executed_is_audited(commands: Commands, stored: Stored) -> None:
    for name, arguments in CHANGING.items():
        words = (*name.split(), *arguments)
        with nothing_changes(stored):
            told, dry = commands.call(*words), commands.call(*words, "--json")
        assert (told.code, dry.code) == (0, 0), (name, told, dry)
        assert dry.json["executed"] is False, name
        again = re.search(r"hermes-pgvector (.*--execute)", told.out)
        assert again is not None, (name, told.out)
        before = stored.count("audit_log")
        done = commands.call(*words, "--execute", "--json")
        assert (done.code, done.json.get("executed")) == (0, True), (name, done)
        new = stored.rows("SELECT action, actor, counts FROM audit_log ORDER BY id OFFSET %s", before)
        assert {row[0] for row in new} == {name}, (name, new)
        assert all(row[1] and row[2] for row in new)


def test_a_memory_that_is_taken_out_for_good_leaves_a_row_in_a_postgres_of_ones_own(
    commands: Commands, stored: Stored
) -> None:
    assert commands.call("add", "Prices are fair", "--theme", "market").code == 0
    with nothing_changes(stored):
        assert commands.call("uninstall", "--purge").code == 0
    done = commands.call("uninstall", "--purge", "--execute", "--json")
    assert done.code == 0, done
    assert not (commands.home / "pgvector").exists()
    assert [row[0] for row in stored.rows("SELECT action FROM audit_log")] == ["uninstall"]
    assert len(stored.memories("market")) == 3, "what is stored there stays"
