"""The host's backup gets a whole copy of the embedded database, never a torn one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest
from fixtures.postgres import FAST

from hermes_memory_pgvector import hostconfig, migrate
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres_binaries import find_binaries
from hermes_memory_pgvector.server import EmbeddedPostgres
from hermes_memory_pgvector.settings import Settings


def test_a_backup_declares_a_dump_that_can_be_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / "hermes"
    server = EmbeddedPostgres(home / "pgvector", extra_settings=FAST)
    info = server.ensure_running(Deadline.after(60))
    try:
        migrate.apply(info.owner_dsn)
        with psycopg.connect(info.runtime_dsn) as connection:
            connection.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'kept')")
        (path,) = hostconfig.backup_paths(home, Settings())
        assert Path(path).stat().st_mode & 0o077 == 0
        with psycopg.connect(info.owner_dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE restored")
        dsn = psycopg.conninfo.make_conninfo(info.owner_dsn, dbname="restored")
        subprocess.run([find_binaries().program("pg_restore"), "--dbname", dsn, path], check=True)
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SELECT content FROM memory_entries").fetchall() == [("kept",)]
    finally:
        server.stop(Deadline.after(30), mode="immediate")


def test_nothing_is_declared_without_an_embedded_database(tmp_path: Path) -> None:
    assert hostconfig.backup_paths(tmp_path, Settings()) == []
    assert hostconfig.backup_paths(tmp_path, Settings(dsn="dbname=x")) == []
