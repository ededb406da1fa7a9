"""A primary and a standby, as an operator sets them up: pg_basebackup, streaming, promotion.

    with Replicated(folder) as pair:
        ... connect to pair.dsn, which names both
        pair.cut()                    the standby gets nothing more
        pair.primary.kill()           as if its machine had lost its power
        pair.standby.promote()
        pair.primary.start()          it returns, and believes that it is still the primary

No pytest in here: the battery uses it too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import psycopg
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.server.accounts import account_for, executable_by
from hermes_memory_pgvector.server.binaries import Binaries, find_binaries, initialise
from hermes_memory_pgvector.server.programs import Account, reachable, run_program
from hermes_memory_pgvector.server.server import OWNER_ROLE, RUNTIME_ROLE
from testing.hermes_servers import free_port
from testing.postgres import DIM, MODEL, Database
from testing.proxy import Proxy
from testing.waiting import wait_until

DATABASE = "fleet"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "dynamic_shared_memory_type": "mmap",
    "jit": "off",
    "timezone": "UTC",
    # A test survives no power cut, but what was committed before a kill must be there.
    "fsync": "off",
    "full_page_writes": "off",
    "wal_keep_size": "512MB",
    "wal_retrieve_retry_interval": "100ms",
    "hot_standby": "on",
    "max_standby_streaming_delay": "2s",
}
TRUST = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n"


class Node:
    """One server of the pair."""

    def __init__(
        self, data: Path, binaries: Binaries, account: Account, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._data = data
        self._settings = {**SETTINGS, **settings}
        self._binaries = binaries
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        data.mkdir(mode=0o700)
        if account.switches:
            os.chown(data, account.uid, account.gid)

    def dsn(self, role: str = OWNER_ROLE, database: str = DATABASE) -> str:
        """How to connect to this server alone."""
        return make_conninfo(host="127.0.0.1", port=self.port, dbname=database, user=role)

    def create(self) -> None:
        """Make an empty cluster."""
        initialise(self._data, OWNER_ROLE, self._binaries, self._account, Deadline.after(120), syncs=False)
        (self._data / "pg_hba.conf").write_text(TRUST, encoding="utf-8")

    def copy(self, port: int) -> None:
        """Become a copy of the server on that port, and go on as its standby."""
        with reachable(self._data, self._account) as (path, descriptors):
            command = [self._binaries.program("pg_basebackup"), "-D", path, "-R", "-X", "stream", "-c", "fast", "-N"]
            command += ["-h", "127.0.0.1", "-p", str(port), "-U", OWNER_ROLE]
            done = run_program(command, self._account, Deadline.after(120), inherit=descriptors)
        assert done.returncode == 0, done.output

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (
            reachable(self._data, self._account) as (path, descriptors),
            (self._data.parent / f"{self._data.name}.log").open("ab") as log,
        ):
            command = [self._binaries.program("postgres"), "-D", path, "-c", f"port={self.port}"]
            for name, value in self._settings.items():
                command += ["-c", f"{name}={value}"]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, pass_fds=descriptors, start_new_session=True, cwd="/",
                user=self._account.uid if self._account.switches else None,
                group=self._account.gid if self._account.switches else None,
                extra_groups=[] if self._account.switches else None,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            )  # fmt: skip
        wait_until(self._answers, seconds=60)

    def kill(self) -> None:
        """End it without a word; its processes notice that nobody leads them any more."""
        self._end(signal.SIGKILL)

    def abort(self) -> None:
        """End it at once, with all its processes: nobody needs it any more."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Shut it down in order."""
        self._end(signal.SIGINT)

    def promote(self) -> None:
        """Make the standby a primary; returns when it takes writes."""
        assert self.rows("SELECT pg_promote(true, 60)", database="postgres") == [(True,)]

    def rows(self, statement: str, *values: Any, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """What one statement returns, as a superuser."""
        with psycopg.connect(self.dsn(database=database), autocommit=True, application_name="test") as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def set_up(self) -> None:
        """Make a cluster with our database and the agents' role, and start it."""
        from hermes_memory_pgvector.schema import migrate
        from hermes_memory_pgvector.schema.model_tables import NewModel

        self.create()
        self.start()
        self.rows(f"CREATE ROLE {RUNTIME_ROLE} LOGIN", database="postgres")
        self.rows(f"CREATE DATABASE {DATABASE}", database="postgres")
        migrate.apply(self.dsn(), runtime_role=RUNTIME_ROLE, model=NewModel(MODEL, DIM, 0.0, 0.125))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._data.parent / f"{self._data.name}.log").read_text(encoding="utf-8")
        with contextlib.suppress(psycopg.OperationalError):
            return bool(self.rows("SELECT 1", database="postgres"))
        return False

    def _pids(self) -> list[int]:
        if self._process is None:
            return []
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True, check=False
        )
        return [self._process.pid, *map(int, children.stdout.split())]

    def _end(self, number: signal.Signals) -> None:
        process, pids = self._process, self._pids()
        if process is None:
            return
        process.send_signal(number)
        process.wait(60)
        self._process = None
        # A server starts again only when the last process of the one before has let go of its memory.
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def new_node(folder: Path, name: str) -> Node:
    """A server in a folder, not yet made."""
    folder.mkdir(parents=True, exist_ok=True)
    account = account_for(folder, folder / name)
    return Node(folder / name, executable_by(find_binaries(), account), account)


class Single:
    """One server on a loopback port, where programs of other users reach it, for the length of a block."""

    def __init__(self, folder: Path) -> None:
        self.node = new_node(folder, "server")

    @property
    def runtime_dsn(self) -> str:
        """How agents connect."""
        return self.node.dsn(RUNTIME_ROLE)

    @property
    def database(self) -> Database:
        """As tests know a database."""
        return Database(owner_dsn=self.node.dsn(), runtime_dsn=self.runtime_dsn, name=DATABASE)

    def __enter__(self) -> Self:
        try:
            self.node.set_up()
        except BaseException:
            self.node.abort()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.node.abort()


class Replicated:
    """A primary with one standby, for the length of a block."""

    def __init__(self, folder: Path) -> None:
        self.primary, self.standby = (new_node(folder, name) for name in ("primary", "standby"))
        self._line = Proxy(("127.0.0.1", self.primary.port))
        """What the standby hears of the primary goes this way."""

    @property
    def dsn(self) -> str:
        """Both servers, as the fleet's agents name them: whichever takes writes."""
        return make_conninfo(
            host="127.0.0.1,127.0.0.1", port=f"{self.primary.port},{self.standby.port}", dbname=DATABASE,
            user=RUNTIME_ROLE, target_session_attrs="read-write", connect_timeout="2",
        )  # fmt: skip

    @property
    def database(self) -> Database:
        """As tests know a database; the owner's login follows a promotion, too."""
        owner = make_conninfo(self.dsn, user=OWNER_ROLE)
        return Database(owner_dsn=owner, runtime_dsn=self.dsn, name=DATABASE)

    def __enter__(self) -> Self:
        self._line.__enter__()
        try:
            self.primary.set_up()
            self.standby.copy(self._line.port)
            self.standby.start()
            self.wait_for_standby()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in (self.standby, self.primary):
            node.abort()
        self._line.__exit__(kind, error, trace)

    def cut(self) -> None:
        """From now on the standby hears nothing of the primary."""
        self._line.mode = "refuse"

    def wait_for_standby(self) -> None:
        """Wait until the standby has what the primary had at this moment."""
        ((position,),) = self.primary.rows("SELECT pg_current_wal_insert_lsn()")
        wait_until(lambda: self.standby.rows("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", position) == [(True,)])
