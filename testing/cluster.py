"""A coordinator and workers of Citus on loopback, from an installation of Postgres with citus and vector.

    with Cluster(folder, workers=2) as cluster:
        ... connect to cluster.coordinator.dsn(database="fleet")
        cluster.workers[0].kill()       its themes are away
        cluster.workers[0].start()

PGINSTALL names the installation: the folder that holds bin, lib and share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from hermes_memory_pgvector.server.accounts import account_for
from hermes_memory_pgvector.server.binaries import Binaries
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.postgres import Database
from testing.replication import Node

DATABASE = "fleet"
# One machine carries all servers: a prepared transaction and a replication slot for each move and each command.
SETTINGS = {
    "shared_preload_libraries": "citus",
    "citus.node_conninfo": "sslmode=disable connect_timeout=2 tcp_user_timeout=5000",
    "citus.node_connection_timeout": "2s",
    "max_prepared_transactions": "200",
    "wal_level": "logical",
    "max_worker_processes": "32",
}


def installation() -> Binaries:
    """The installation that PGINSTALL names."""
    folder = Path(os.environ["PGINSTALL"]).resolve()
    return Binaries(folder, "PGINSTALL", "18")


class Cluster:
    """Servers on loopback ports for the length of a block; the database is empty at first."""

    def __init__(self, folder: Path, *, workers: int = 2, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self._folder = folder
        self._settings = {**SETTINGS, **settings}
        self._stack = ExitStack()
        self.coordinator = self._node("coordinator")
        self.workers = [self._node(f"worker-{number}") for number in range(1, workers + 1)]

    def __enter__(self) -> Cluster:
        with self._stack:
            for node in (self.coordinator, *self.workers):
                self._start(node)
            self.new_database(DATABASE)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _node(self, name: str) -> Node:
        account = account_for(self._folder, self._folder / name)
        return Node(self._folder / name, installation(), account, self._settings)

    def _start(self, node: Node) -> None:
        node.create()
        self._stack.callback(node.abort)
        node.start()
        node.rows(f"CREATE ROLE {RUNTIME_ROLE} LOGIN", database="postgres")

    def new_database(self, name: str) -> Database:
        """A database of this cluster, with both extensions and nothing else."""
        for node in (self.coordinator, *self.workers):
            self._prepare(node, name)
        self.coordinator.rows(
            "SELECT citus_set_coordinator_host('127.0.0.1', %s)", self.coordinator.port, database=name
        )
        for node in self.workers:
            self.coordinator.rows("SELECT citus_add_node('127.0.0.1', %s)", node.port, database=name)
        dsns = (self.coordinator.dsn(database=name), self.coordinator.dsn(RUNTIME_ROLE, name))
        return Database(owner_dsn=dsns[0], runtime_dsn=dsns[1], name=name)

    def _prepare(self, node: Node, name: str) -> None:
        node.rows(f"CREATE DATABASE {name}", database="postgres")
        node.rows("CREATE EXTENSION citus", database=name)
        node.rows("CREATE EXTENSION vector", database=name)

    def place_of(self, schema: str, name: str = DATABASE) -> int:
        """The port of the worker that has a schema."""
        query = (
            "SELECT DISTINCT shard.nodeport FROM citus_shards AS shard JOIN pg_class AS c ON c.oid = shard.table_name"
            " WHERE c.relnamespace = to_regnamespace(%s)"
        )
        ((port,),) = self.coordinator.rows(query, schema, database=name)
        return int(port)
