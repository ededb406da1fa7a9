"""What waits for a lock reads what was made meanwhile, and nobody waits for somebody who waits for him."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
from psycopg import sql

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import flatten, gate, memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import AddMemory, Moment
from testing.postgres import Database
from testing.waiting import wait_until


@contextmanager
def connected(database: Database, *, autocommit: bool = False) -> Iterator[Connection]:
    with psycopg.connect(database.runtime_dsn, autocommit=autocommit) as connection:
        yield connection


def is_waiting(onlooker: Connection, waiter: Connection) -> bool:
    asked = onlooker.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", (waiter.info.backend_pid,)).fetchone()
    return asked == (True,)


def add(connection: Connection, theme: str, content: str) -> int:
    operation = AddMemory(theme, "memory", content, Moment(1_000, 1_000), "")
    ((_, row_id),) = memories.store(connection, [Placed(operation, "w", 1, 0)])
    return row_id


def test_a_writer_that_waited_sees_what_was_erased_and_renamed_meanwhile(database: Database) -> None:
    with (
        connected(database) as eraser,
        connected(database) as writer,
        connected(database, autocommit=True) as onlooker,
        ThreadPoolExecutor(1) as pool,
    ):
        gate.close(eraser)
        comes_in = pool.submit(gate.enter, writer)
        wait_until(lambda: is_waiting(onlooker, writer))
        eraser.execute("INSERT INTO theme_aliases (old, new) VALUES ('sales', 'marketing')")
        eraser.execute("INSERT INTO forgotten (mark, until, receipt) VALUES ('ab', now(), 1)")
        eraser.commit()
        opened = comes_in.result()
        assert opened.aliases == {"sales": "marketing"}
        assert opened.marker is not None


def test_history_is_shortened_in_the_order_in_which_writers_lock(database: Database) -> None:
    names = ["_a", "Zoe", "b", "a-c", "ab", "Ärger"]
    before = datetime.now(UTC)
    with connected(database) as connection:
        for theme in names:
            add(connection, theme, "Tea is green")
        connection.execute("DELETE FROM memory_entries")
        due = flatten.due(connection, before, 100)
        # Not every server has a collation that sorts otherwise; the plan tells what would happen in one that has.
        asked = sql.SQL("EXPLAIN (VERBOSE) {}").format(statement("history/due"))
        plan = str(connection.execute(asked, {"before": before, "limit": 100}).fetchall())
    assert [theme for theme, _ in due] == sorted(names)
    assert re.search(r'Sort Key: [^,]*agent_identity[^,]* COLLATE "C", [^,]*target[^,]* COLLATE "C"', plan)
