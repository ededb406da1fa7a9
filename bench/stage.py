"""What both systems share in a run: one Postgres, one embed server; and what each gets anew: a database and a home."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import yaml
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench.system import Child, System, child, migrate_peer
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[1]
MODEL = "nomic-embed-text"
DIM = 768
# A usual server's memory; everything else as Postgres ships it, synchronous_commit and fsync included.
SERVER = {"shared_buffers": "1GB", "max_wal_size": "4GB", "maintenance_work_mem": "256MB"}
# A database is used for one measurement, so all its vectors belong to it; no text is so long that it has two.
WITH_VECTOR = {
    "ours": "SELECT (SELECT count(*) FROM turn_vectors_1) + (SELECT count(*) FROM memory_vectors_1)",
    "peer": "SELECT (SELECT count(embedding) FROM conversations) + (SELECT count(embedding) FROM memory_entries)",
}


class Embedder:
    """The embed server's process."""

    def __init__(self, dim: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.embedder", str(dim)],
            cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError("the embed server did not start")

    def set(self, **order: Any) -> None:
        """Change latency (seconds), mode or stored vectors."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(30)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@dataclass(frozen=True, slots=True)
class Seat:
    """One system with a database and a home of its own."""

    system: System
    home: Path
    dsn: str
    owner_dsn: str

    def child(self, name: str = "adapter") -> contextlib.AbstractContextManager[Child]:
        """A new process of the system, with a log of its own under that name."""
        return child(self.system, self.home, name)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection that sees everything."""
        return psycopg.connect(self.owner_dsn, autocommit=True, application_name="bench", prepare_threshold=None)

    def count(self, connection: psycopg.Connection[tuple[Any, ...]], statement: str, *values: Any) -> int:
        """The number a statement answers."""
        row = connection.execute(statement.encode(), values).fetchone()
        assert row is not None
        return int(row[0])

    def stored(self, connection: psycopg.Connection[tuple[Any, ...]], tag: str) -> int:
        """Turns whose text contains the tag."""
        return self.count(connection, "SELECT count(*) FROM conversations WHERE strpos(content, %s) > 0", tag)

    def with_vector(self, connection: psycopg.Connection[tuple[Any, ...]]) -> int:
        """Turns and memories that have a vector."""
        return self.count(connection, WITH_VECTOR[self.system.name])

    def backends(self, connection: psycopg.Connection[tuple[Any, ...]]) -> int:
        """Connections that are not the bench's own."""
        return self.count(
            connection,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND application_name <> 'bench'",
        )


class Stage:
    """Postgres, embedder, and the two systems."""

    def __init__(self, folder: Path, systems: Sequence[System]) -> None:
        self.folder = folder
        self.systems = tuple(systems)
        self.server = EmbeddedPostgres(folder / "pgvector", extra_settings=SERVER)
        self._numbers = itertools.count(1)
        self._round = 0

    def __enter__(self) -> Self:
        self._info = self.server.ensure_running(Deadline.after(120))
        self.embedder = Embedder(DIM)
        for system in self.systems:
            self._make_template(system)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.embedder.close()
        self.server.stop(Deadline.after(60), mode="immediate")

    def server_version(self) -> str:
        """Postgres and pgvector."""
        with psycopg.connect(self._info.owner_dsn) as connection:
            row = connection.execute(
                "SELECT current_setting('server_version'),"
                " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')"
            ).fetchone()
        assert row is not None
        return f"PostgreSQL {row[0]}, pgvector {row[1]}"

    @contextlib.contextmanager
    def seat(self, system: System, **settings: Any) -> Iterator[Seat]:
        """A migrated database and a configured home, both gone at the end."""
        name = f"{system.name}_{next(self._numbers)}"
        home = self.folder / "homes" / name
        home.mkdir(parents=True)
        self._admin("CREATE DATABASE {} TEMPLATE {}", name, f"template_{system.name}")
        seat = Seat(system, home, make_conninfo(self._info.runtime_dsn, dbname=name),
                    make_conninfo(self._info.owner_dsn, dbname=name))  # fmt: skip
        # The peer reads this section only; it is one of the two that ours reads.
        section = {"dsn": seat.dsn, "embed_url": self.embedder.url, "embed_model": MODEL, "embed_dim": DIM, **settings}
        config = {"memory": {"provider": "pgvector"}, "plugins": {"pgvector": section}}
        (home / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        try:
            yield seat
        finally:
            self.start_server()
            self.embedder.set(latency=0.0, mode="ok")
            self._admin("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def stop_server(self) -> None:
        """Postgres goes away, as in a fast shutdown."""
        self.server.stop(Deadline.after(60))

    def start_server(self) -> None:
        """Postgres is there."""
        self.server.ensure_running(Deadline.after(60))

    def rounds(self, count: int) -> Iterator[tuple[System, ...]]:
        """The systems, `count` times; who goes first changes each time."""
        for _ in range(count):
            self._round += 1
            yield self.systems if self._round % 2 else self.systems[::-1]

    def each(self, rounds: int, measure: Callable[[System], dict[str, float]]) -> dict[str, dict[str, list[float]]]:
        """Every system measured in turn, `rounds` times: figure -> system -> one value per round."""
        found: dict[str, dict[str, list[float]]] = {}
        for systems in self.rounds(rounds):
            for system in systems:
                for name, value in measure(system).items():
                    found.setdefault(name, {}).setdefault(system.name, []).append(value)
        return found

    def _make_template(self, system: System) -> None:
        name = f"template_{system.name}"
        self._admin("CREATE DATABASE {}", name)
        owner_dsn = make_conninfo(self._info.owner_dsn, dbname=name)
        if system.name == "ours":
            migrate.apply(owner_dsn, runtime_role=RUNTIME_ROLE, model=NewModel(MODEL, DIM, -2.0, 0.001))
        else:
            migrate_peer(system, owner_dsn, RUNTIME_ROLE)

    def _admin(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._info.owner_dsn, autocommit=True) as connection:
            text: Any = statement
            connection.execute(sql.SQL(text).format(*map(sql.Identifier, names)))


def wait_for(count: Callable[[], int], wanted: int, *, seconds: float, idle_seconds: float, poll: float = 0.02) -> int:
    """Wait until the count is reached, or has not moved for a while, or time is up; answers the last count."""
    end = time.monotonic() + seconds
    last, moved = count(), time.monotonic()
    while last < wanted and time.monotonic() < min(end, moved + idle_seconds):
        time.sleep(poll)
        now = count()
        if now != last:
            last, moved = now, time.monotonic()
    return last
