"""A real Citus cluster for tests and benches: a coordinator and workers on this machine.

    with Cluster(folder, pginstall, workers=2) as cluster:
        with cluster.database("bench") as database: ...

`pginstall` is a Postgres installation with Citus and pgvector in it. A database exists on every node under the same
name, and the nodes know each other by address alone: so a database that knows its nodes can be cloned on each of them.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.server.server import OWNER_ROLE, RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.store.distributed import adapt
from testing.waiting import wait_until

ADMIN = "postgres"
PLAIN = "knows_its_nodes"
"""The template of every database: Citus, pgvector and the list of nodes, no table of ours."""
SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_prepared_transactions": "300",
    "max_connections": "300",
    "max_worker_processes": "60",
    "shared_buffers": "128MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "jit": "off",
    "timezone": "UTC",
    "dynamic_shared_memory_type": "mmap",
    "citus.shard_count": "8",
    "citus.enable_statistics_collection": "off",
    "citus.node_connection_timeout": "5000",
}


class Node:
    """One Postgres of a cluster."""

    def __init__(self, folder: Path, pginstall: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self._programs = pginstall / "bin"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    def dsn(self, database: str = ADMIN, user: str = OWNER_ROLE) -> str:
        """How to reach a database of this node."""
        return make_conninfo(host="127.0.0.1", port=self.port, dbname=database, user=user)

    def create(self) -> None:
        """Make the data folder; anybody on this machine may log in as anybody."""
        self.folder.mkdir(parents=True)
        if self._account is not None:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
            for parent in self.folder.parents:
                if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o1:
                    parent.chmod(parent.stat().st_mode | 0o1)
        self._run(
            "initdb", "-D", str(self.folder / "data"), "-U", OWNER_ROLE, "-A", "trust", "--no-sync", "--encoding=UTF8",
            "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-ctype=C.UTF-8",
        )  # fmt: skip

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {**SETTINGS, **self._settings, "port": str(self.port), "listen_addresses": "127.0.0.1",
                   "unix_socket_directories": ""}  # fmt: skip
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data")]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **self._as_account()
            )
        wait_until(self._answers, seconds=60)

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped since."""
        return self._process is not None

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server at once, without a checkpoint."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text(encoding="utf-8")
        try:
            with psycopg.connect(self.dsn(), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([str(self._programs / program), *arguments], check=True, cwd="/", stdout=subprocess.DEVNULL,
                       **self._as_account())  # fmt: skip

    def _as_account(self) -> dict[str, Any]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid}


class Cluster:
    """Runs while its block does."""

    def __init__(
        self, folder: Path, pginstall: Path, *, workers: int = 2, settings: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._pginstall = pginstall
        self._settings = settings or {}
        self.coordinator = self._node("coordinator")
        self._added: list[Node] = []
        """Workers that one database knows, and no other."""
        self.workers = [self._node(f"worker-{number + 1}") for number in range(workers)]

    def _node(self, name: str) -> Node:
        return Node(self._folder / name, self._pginstall, self._settings)

    @property
    def nodes(self) -> list[Node]:
        """All of them, the coordinator first."""
        return [self.coordinator, *self.workers]

    @property
    def info(self) -> ConnectionInfo:
        """The coordinator as a server."""
        return ConnectionInfo(self.coordinator.dsn(), self.coordinator.dsn(user=RUNTIME_ROLE), ADMIN)

    def __enter__(self) -> Self:
        for node in self.nodes:
            self._begin(node)
        with psycopg.connect(self.coordinator.dsn(PLAIN), autocommit=True) as connection:
            connection.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", (self.coordinator.port,))
            for worker in self.workers:
                connection.execute("SELECT citus_add_node('127.0.0.1', %s)", (worker.port,))
            connection.execute(
                "SELECT citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', false)", (self.coordinator.port,)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in (*self.nodes, *self._added):
            node.stop()
        shutil.rmtree(self._folder.parent, ignore_errors=True)

    @staticmethod
    def _begin(node: Node) -> None:
        node.create()
        node.start()
        with psycopg.connect(node.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(RUNTIME_ROLE)))
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(PLAIN)))
        with psycopg.connect(node.dsn(PLAIN), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION citus")

    def add_worker(self, database: str) -> Node:
        """A further worker that this database knows and has no shards on yet."""
        node = self._node(f"worker-{len(self.workers) + len(self._added) + 1}")
        self._begin(node)
        with psycopg.connect(node.dsn(), autocommit=True) as admin:
            admin.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(database), sql.Identifier(PLAIN))
            )
        self._added.append(node)
        with psycopg.connect(self.coordinator.dsn(database), autocommit=True) as connection:
            connection.execute("SELECT citus_add_node('127.0.0.1', %s)", (node.port,))
            connection.execute("SELECT replicate_reference_tables('block_writes')")
        return node

    def create_database(self, name: str, template: str = PLAIN) -> None:
        """Clone a database on every node. Citus's own process is in it, and nobody may be."""
        made, source = sql.Identifier(name), sql.Identifier(template)
        for node in self.nodes:
            with psycopg.connect(node.dsn(), autocommit=True) as admin:
                admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(source))
                try:
                    for _ in range(100):
                        admin.execute(
                            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (template,)
                        )
                        with contextlib.suppress(psycopg.errors.ObjectInUse):
                            admin.execute(
                                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(made, source)
                            )
                            break
                        time.sleep(0.05)
                    else:
                        raise AssertionError(f"{template} is in use")
                finally:
                    admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(source))
                admin.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(made))
                admin.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(made, sql.Identifier(RUNTIME_ROLE)))

    def drop_database(self, name: str) -> None:
        """Drop it from every node, whoever is connected."""
        for node in self.nodes:
            with psycopg.connect(node.dsn(), autocommit=True) as admin:
                for _ in range(50):
                    # Citus's own process comes back at once.
                    with contextlib.suppress(psycopg.errors.ObjectInUse):
                        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
                        break
                    time.sleep(0.1)

    @contextlib.contextmanager
    def database(self, name: str, template: str = PLAIN) -> Iterator[ConnectionInfo]:
        """A database of every node, for the length of the block; how to reach it on the coordinator."""
        self.create_database(name, template)
        try:
            yield ConnectionInfo(self.coordinator.dsn(name), self.coordinator.dsn(name, RUNTIME_ROLE), name)
        finally:
            self.drop_database(name)


def let_tests_speak() -> None:
    """Connections that tests open themselves speak as the pool's do; those of the package are left as they are."""
    plain = psycopg.connect

    def connect(*arguments: Any, **more: Any) -> psycopg.Connection[Any]:
        connection = plain(*arguments, **more)
        if not sys._getframe(1).f_globals["__name__"].startswith("hermes_memory_pgvector"):
            with contextlib.suppress(psycopg.Error):
                adapt(connection)
            if not connection.autocommit:
                connection.rollback()
        return connection

    psycopg.connect = connect
