"""Whoever corrects, mirrors, adopts or shortens takes the locks in one order, so that nobody waits for each other."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.store import gate, memories, mirror_files
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, Origin
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database
from testing.stored import Stored
from testing.waiting import wait_until

WAITING = """
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


def minute(number: int) -> Moment:
    at = (1_772_000_000 + 60 * number) * 1_000_000
    return Moment(at, at)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", "Opens at nine", minute(1), "home-b"),
    AddMemory("market", "memory", "Closes at six", minute(3), "home-b"),
    AddMemory("market", "user", "Likes tea", minute(4), "home-a"),
]


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    with psycopg.connect(database.owner_dsn) as owner:
        for number, operation in enumerate(OPERATIONS, start=1):
            memories.store(owner, [Placed(operation, "writer", number, 0)])
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, ttl_days="history=0")
    return made


def test_restore_waits_for_a_mirror_of_any_home_before_it_takes_a_theme(commands: Commands, database: Database) -> None:
    stored = Stored(database.owner_dsn)
    with psycopg.connect(database.runtime_dsn) as mirror:
        gate.enter(mirror)
        mirror_files.lock_home(mirror, "home-a")
        restore = commands.start("restore", "--theme", "market", "--at", "2026-02-25T06:15:30", "--execute")
        wait_until(lambda: stored.rows(WAITING) != [(0,)])
        found = AddMemory("market", "memory", "Found in the file", minute(9), "home-a", Origin.FILE)
        memories.store(mirror, [Placed(found, "mirror:home-a", 9, 0)])
    done = commands.finish(restore)
    assert done.code == 0, done
    assert [content for _, content in stored.memories("market")] == ["Opens at nine"]
