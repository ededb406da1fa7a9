"""The host's backup gets a whole copy of the embedded database, never a torn one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ServerError
from hermes_memory_pgvector.provider import host_config
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.binaries import find_binaries
from hermes_memory_pgvector.server.dump import running
from hermes_memory_pgvector.server.folder import PostgresFolder, has_data
from hermes_memory_pgvector.server.server import ConnectionInfo, EmbeddedPostgres
from testing.postgres import FAST


def test_a_backup_declares_a_dump_that_can_be_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / "hermes"
    server = EmbeddedPostgres(home / "pgvector", extra_settings=FAST)
    info = server.ensure_running(Deadline.after(60))
    try:
        migrate.apply(info.owner_dsn)
        with psycopg.connect(info.runtime_dsn) as connection:
            connection.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'kept')")
        (path,) = host_config.backup_paths(home, Settings())
        assert Path(path).stat().st_mode & 0o077 == 0
        with psycopg.connect(info.owner_dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE restored")
        dsn = psycopg.conninfo.make_conninfo(info.owner_dsn, dbname="restored")
        subprocess.run([find_binaries().program("pg_restore"), "--dbname", dsn, path], check=True)
        with psycopg.connect(dsn) as connection:
            # Restoring has no search_path: the words are made anew all the same.
            found = "SELECT content FROM memory_entries WHERE lexemes @@ 'kept:A'"
            assert connection.execute(found).fetchall() == [("kept",)]
    finally:
        server.stop(Deadline.after(30), mode="immediate")


def test_a_server_that_is_too_busy_to_answer_is_not_stopped_after_its_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EmbeddedPostgres(tmp_path, extra_settings=FAST)
    info = server.ensure_running(Deadline.after(60))
    wait = EmbeddedPostgres.ensure_running
    postmaster = server.folder.own_pid()
    assert postmaster is not None

    def go_on(self: EmbeddedPostgres, deadline: Deadline) -> ConnectionInfo:
        os.kill(postmaster, signal.SIGCONT)
        return wait(self, deadline)

    monkeypatch.setattr(EmbeddedPostgres, "ensure_running", go_on)
    try:
        with psycopg.connect(info.owner_dsn) as agent:
            os.kill(postmaster, signal.SIGSTOP)
            with running(tmp_path, Deadline.after(60)):
                pass
            assert agent.execute("SELECT 1").fetchone() == (1,), "whoever uses it goes on"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(postmaster, signal.SIGCONT)
        server.stop(Deadline.after(30), mode="immediate")


def test_nothing_is_declared_without_an_embedded_database(tmp_path: Path) -> None:
    assert host_config.backup_paths(tmp_path, Settings()) == []
    assert host_config.backup_paths(tmp_path, Settings(dsn="dbname=x")) == []


def test_every_profile_comes_back_from_a_backup_with_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root, restored = tmp_path / "hermes", tmp_path / "elsewhere"
    names = (".", "profiles/work")
    servers = [EmbeddedPostgres(root / name / "pgvector", extra_settings=FAST) for name in names]
    again = [EmbeddedPostgres(restored / name / "pgvector", extra_settings=FAST) for name in names]
    try:
        for name, server in zip(names, servers, strict=True):
            home_id(root / name)
            with psycopg.connect(server.ensure_running(Deadline.after(120)).owner_dsn) as connection:
                connection.execute("CREATE TABLE kept AS SELECT %s::text AS name", (name,))
        servers[1].stop(Deadline.after(60))
        dumps = host_config.backup_paths(root / "profiles" / "work", Settings())
        assert len(dumps) == 2
        assert not servers[1].status().running, "a server that was started for the dump is stopped again"
        servers[0].stop(Deadline.after(60))
        # The host's backup has all but the data; the disk it was made of is no more.
        without_data = shutil.ignore_patterns("checkpoints", ".cache")
        shutil.copytree(root, restored, ignore=without_data)
        shutil.rmtree(root)
        assert host_config.backup_paths(restored, Settings()) == dumps
        for name, server in zip(names, again, strict=True):
            assert has_data(restored / name / "pgvector")
            with psycopg.connect(server.ensure_running(Deadline.after(120)).owner_dsn) as connection:
                assert connection.execute("SELECT name FROM kept").fetchall() == [(name,)]
    finally:
        for server in (*servers, *again):
            server.stop(Deadline.after(60), mode="immediate")


def test_a_dump_that_cannot_be_restored_is_named_and_nothing_empty_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "hermes" / "pgvector"
    dump = tmp_path / ".hermes-pgvector" / f"{home_id(tmp_path / 'hermes')}.dump"
    dump.parent.mkdir(mode=0o700)
    dump.write_bytes(b"PGDMP, but only the beginning")
    server = EmbeddedPostgres(folder, extra_settings=FAST)
    try:
        with pytest.raises(ServerError, match=r"could not be restored .*move it away"):
            server.ensure_running(Deadline.after(120))
        assert not PostgresFolder(folder).data.exists()
        dump.unlink()
        server.ensure_running(Deadline.after(120))
    finally:
        server.stop(Deadline.after(60), mode="immediate")
