"""What Postgres can do to us: whatever it is, hooks return at once and everything arrives once afterwards."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.writer import writer
from testing.agent import AgentHome
from testing.faulty import FaultyServer, expect, new_database, outage, say, through
from testing.postgres import DIM, MODEL, Database
from testing.proxy import Proxy
from testing.waiting import HOOK_SECONDS, promptly, wait_until

MIB = 1024 * 1024
END_OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hermes-pgvector'"


@pytest.fixture(autouse=True)
def short_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of configuration are retried after a moment instead of half a minute."""
    monkeypatch.setattr(writer, "HOLD_SECONDS", 0.5)


def test_a_start_with_the_database_down_loses_nothing(home: AgentHome, server: FaultyServer) -> None:
    server.stop()
    with promptly(HOOK_SECONDS):
        say(home, 1, 2, 3)
    outage(home)
    server.start()
    expect(home, 1, 2, 3)


def test_after_a_restart_while_idle_the_next_write_lands(home: AgentHome, server: FaultyServer) -> None:
    say(home, 1)
    expect(home, 1)
    server.stop()
    server.start()
    say(home, 2)
    expect(home, 1, 2)


def test_an_outage_is_told_once_at_its_beginning_and_once_at_its_end(
    home: AgentHome, server: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    say(home, 1)
    expect(home, 1)
    with caplog.at_level(logging.WARNING, logger="hermes_memory_pgvector.writer.writer"):
        server.stop()
        say(home, 2)
        outage(home)
        wait_until(lambda: home.engine.writer.breaker.status().failures >= 3)
        say(home, 3)
        block = home.provider().system_prompt_block()
        server.start()
        expect(home, 1, 2, 3)
        wait_until(lambda: not home.engine.writer.breaker.is_open)
    told = [record.getMessage() for record in caplog.records if record.name.endswith(".writer")]
    assert len(told) == 2, told
    assert "memories wait in the journal" in told[0]
    assert "4 waiting records were stored" in told[1]
    assert "out of reach" in block
    assert "out of reach" not in home.provider().system_prompt_block()


def test_a_frozen_server_loses_nothing(home: AgentHome, server: FaultyServer) -> None:
    say(home, 1)
    expect(home, 1)
    frozen = server.freeze()
    try:
        with promptly(HOOK_SECONDS):
            say(home, 2, 3)
    finally:
        server.thaw(frozen)
    expect(home, 1, 2, 3)


def test_backends_that_are_terminated_lose_nothing(home: AgentHome, server: FaultyServer) -> None:
    for number in range(1, 11):
        say(home, number)
        server.admin(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hermes-pgvector'"
        )
    expect(home, *range(1, 11))


def test_a_read_only_database_loses_nothing(home: AgentHome, server: FaultyServer, database: Database) -> None:
    server.admin(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    say(home, 1, 2)
    outage(home)
    assert "25006" in home.engine.writer.last_error
    server.admin(f"ALTER DATABASE {database.name} RESET default_transaction_read_only")
    server.admin(END_OURS)
    expect(home, 1, 2)


def test_a_server_that_cannot_extend_its_files_loses_nothing(
    home: AgentHome, server: FaultyServer, database: Database
) -> None:
    """As on a full disk: Postgres may not make the table's file any larger until there is room again."""
    say(home, 1)
    expect(home, 1)
    server.stop()
    # The files of the write-ahead log have that size from the start.
    server.start_unable_to_grow(16 * MIB)
    _fill(database)
    say(home, 2)
    outage(home)
    server.stop()
    server.start()
    expect(home, 1, 2)
    assert home.stored.count("dead_letters") == 0


def test_too_many_connections_lose_nothing(home: AgentHome, server: FaultyServer, database: Database) -> None:
    server.admin(f"ALTER ROLE {RUNTIME_ROLE} CONNECTION LIMIT 0")
    try:
        say(home, 1, 2)
        outage(home)
    finally:
        server.admin(f"ALTER ROLE {RUNTIME_ROLE} CONNECTION LIMIT -1")
    expect(home, 1, 2)


@pytest.mark.parametrize("table", ["conversations", "memory_entries", "journal_writers", "pending_vectors"])
def test_a_lock_on_a_table_loses_nothing(home: AgentHome, database: Database, table: str) -> None:
    home.settings["embed_on_write"] = True
    say(home, 1)
    expect(home, 1)
    with psycopg.connect(database.owner_dsn) as holder:
        holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        with promptly(HOOK_SECONDS):
            say(home, 2, 3)
        wait_until(lambda: _waits_for_lock(database))
    expect(home, 1, 2, 3)


def test_a_changed_password_loses_nothing(home: AgentHome, server: FaultyServer, database: Database) -> None:
    with Proxy(server.socket) as proxy:
        home.dsn = through(database.runtime_dsn, proxy)
        right = psycopg.conninfo.conninfo_to_dict(home.dsn)["password"]
        server.admin(f"ALTER ROLE {RUNTIME_ROLE} PASSWORD 'another'")
        try:
            say(home, 1, 2)
            outage(home)
            assert str(right) not in home.engine.writer.last_error
        finally:
            server.admin(f"ALTER ROLE {RUNTIME_ROLE} PASSWORD '{right}'")
        expect(home, 1, 2)


def test_a_role_that_may_not_write_holds_and_says_so(home: AgentHome, database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(f"REVOKE INSERT ON conversations FROM {RUNTIME_ROLE}".encode())
        say(home, 1)
        outage(home)
        assert home.stored.count("dead_letters") == 0
        owner.execute(f"GRANT INSERT ON conversations TO {RUNTIME_ROLE}".encode())
    expect(home, 1)
    assert home.stored.count("dead_letters") == 0


def test_a_missing_schema_is_named_and_migrating_it_brings_everything(
    tmp_path: Path, server: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    with new_database(server) as empty:
        home = AgentHome.create(tmp_path / "home", empty)
        with caplog.at_level(logging.WARNING):
            say(home, 1, 2)
            outage(home)
        assert "run: hermes-pgvector migrate" in caplog.text
        migrate.apply(empty.owner_dsn, runtime_role=RUNTIME_ROLE, model=NewModel(MODEL, DIM))
        expect(home, 1, 2)
        home.close()


def _fill(database: Database) -> None:
    """Write turns of another theme until the file may not grow any more."""
    row = "SELECT 'filler', 's', 'user', repeat(md5(n::text), %s) FROM generate_series(1, 200) AS n"
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("ALTER TABLE conversations ALTER COLUMN content SET STORAGE PLAIN")
        for size in (200, 20, 1):
            with contextlib.suppress(psycopg.Error):
                while True:
                    insert = "INSERT INTO conversations (agent_identity, session_id, role, content) " + row
                    owner.execute(insert.encode(), (size,))


def _waits_for_lock(database: Database) -> Any:
    with psycopg.connect(database.owner_dsn, autocommit=True) as watcher:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        return watcher.execute(waiting, (database.name,)).fetchone()
