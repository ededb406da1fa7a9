"""A few connections per database, shared by everyone in the process, opened in the background and closed when idle.

Not psycopg_pool, because callers here need three things at once: never to wait beyond their Deadline, even for a server
that accepts and stays silent; to learn at once *why* there is no connection; and an idle process with neither
connections nor threads. Connections carry no session state, so pgbouncer's transaction mode works.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    DatabaseError,
    DatabaseUnavailable,
    MemoryPluginError,
    ThreadUnavailable,
)
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.postgres import buckets, conventions
from hermes_memory_pgvector.postgres.conninfo import complete_conninfo
from hermes_memory_pgvector.postgres.errors import MOVED_STATES, OF_ONE_BUCKET, translate, translated
from hermes_memory_pgvector.postgres.socket import Connection, is_usable, watched
from hermes_memory_pgvector.service import start_thread

__all__ = ["Connection", "Pool"]
MAX_IDLE_SECONDS = 30.0
MAX_CONNECTING = 2
MAX_CONNECTING_IN_ALL = 3
# How long the server may still work after our deadline before it stops by itself.
SERVER_GRACE_SECONDS = 0.25
# How long a transaction waits for a lock.
LOCK_SECONDS = 10.0
# How long a transaction may stand still between two statements: far longer than we ever take to send the next one.
PAUSE_SECONDS = 10.0
TRANSACTION_TIMEOUT_SINCE = 170_000


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record of psycopg's own log says more than the error we translate and report anyway."""
    return not str(record.msg).startswith("error ignored")


# What psycopg says while it cleans up after a broken connection is the server's text, with names and addresses. A
# filter holds for its own logger only, not for those below it.
for _name in ("psycopg", "psycopg.transaction"):
    logging.getLogger(_name).addFilter(_is_news)


@dataclass(slots=True)
class _Idle:
    connection: Connection
    since: float


class _Database:
    """The connections of this process to one database, whichever home asked for them."""

    def __init__(self) -> None:
        self.idle: list[_Idle] = []
        self.in_use = 0
        self.connecting = 0
        self.users: weakref.WeakSet[Pool] = weakref.WeakSet()
        self.admitted: weakref.WeakKeyDictionary[Connection, weakref.WeakSet[Pool]] = weakref.WeakKeyDictionary()
        """Which homes have found that a connection leads to their database."""


class _Process:
    """All databases that this process is connected to, by their connection strings."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        """The parent's connections are not the child's."""
        self.condition = threading.Condition()
        self.connecting = 0
        self.databases: dict[str, _Database] = {}

    def database(self, conninfo: str, used: _Database) -> _Database:
        """The connections under this string; those of a pool that comes first become everybody's."""
        return self.databases.setdefault(conninfo, used)

    def forget(self, database: _Database) -> None:
        self.databases = {key: each for key, each in self.databases.items() if each is not database}


_process = _Process()


class Pool:
    """A home's way to its database, over connections it shares with the other homes of the process.

    All pools with one connection string have at most `maximum` connections together, opened when they are needed.
    """

    def __init__(
        self,
        conninfo: Callable[[Deadline], str],
        *,
        maximum: int,
        connect_seconds: float,
        admit: Callable[[Connection], None] | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._admit = admit
        """Checks a connection before this home first uses it; raises when it may not."""
        self._maximum = maximum
        self._connect_seconds = connect_seconds
        self._database = _Database()
        """Its own until it is known whether others have connections to the same one."""
        self._failures = 0
        self._last_error: MemoryPluginError | None = None
        self._closed = False
        self._database.users.add(self)

    @contextmanager
    def connection(self, deadline: Deadline, *, patience: float | None = None) -> Iterator[Connection]:
        """A connection in autocommit mode for the length of the block; its socket is cut at the deadline.

        For what needs no transaction: the schema, the installation, the server. `patience`: how long to wait for it, if
        not until the deadline.
        """
        connection, database = self._take(deadline if patience is None else deadline.earlier(patience))
        try:
            with translated(), watched(connection, deadline):
                self._check(connection, database)
                yield connection
        except DatabaseError as error:
            if error.sqlstate in MOVED_STATES:
                # The tables may lie elsewhere since `migrate --buckets`.
                buckets.forget(connection)
            raise
        finally:
            self._give_back(connection, database)

    def _check(self, connection: Connection, database: _Database) -> None:
        """Have this home look at a connection that it uses for the first time."""
        if self._admit is not None and self not in database.admitted.get(connection, ()):
            self._admit(connection)
            database.admitted.setdefault(connection, weakref.WeakSet()).add(self)

    def buckets(self, deadline: Deadline) -> int:
        """How many buckets the database has."""
        with self.connection(deadline) as connection:
            return buckets.layout(connection, may_ask=True).count

    @contextmanager
    def reading(
        self,
        deadline: Deadline,
        *,
        theme: str | None = None,
        bucket: int | None = None,
        patience: float | None = None,
    ) -> Iterator[Connection]:
        """Statements that travel together: until the first fetch they are one round trip and one transaction.

        They mean the tables of a theme's bucket, or of the one that is named.

        It needs no BEGIN and COMMIT of its own: between two synchronisations the server keeps one open by itself.
        """
        with self._placed(deadline, theme, bucket, patience) as (connection, path):
            # Asked within the pipeline, this would end the transaction that the limits belong to.
            buckets.layout(connection)
            with connection.pipeline():
                self._limit(connection, deadline, 2.0, PAUSE_SECONDS, path)
                yield connection

    @contextmanager
    def transaction(
        self,
        deadline: Deadline,
        *,
        theme: str | None = None,
        bucket: int | None = None,
        lock_seconds: float = LOCK_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> Iterator[Connection]:
        """A transaction whose statements the server itself ends at the deadline.

        They mean the tables of a theme's bucket, or of the one that is named; without either, those of the whole
        installation. The server also ends it when we send nothing for `pause_seconds`.
        """
        with self._placed(deadline, theme, bucket) as (connection, path), connection.transaction():
            self._limit(connection, deadline, lock_seconds, pause_seconds, path)
            yield connection

    @contextmanager
    def _placed(
        self, deadline: Deadline, theme: str | None, bucket: int | None, patience: float | None = None
    ) -> Iterator[tuple[Connection, str | None]]:
        """A connection, and the search path that leads to a bucket; None where no other is needed."""
        path: str | None = None
        try:
            with self.connection(deadline, patience=patience) as connection:
                if theme is not None or bucket is not None:
                    found = buckets.layout(connection, may_ask=True)
                    path = found.path_to(found.of(theme) if theme is not None else bucket or 0)
                yield connection, path
        except DatabaseError as error:
            if path is not None and not error.kind:
                error.kind = OF_ONE_BUCKET
            raise

    @staticmethod
    def _limit(
        connection: Connection, deadline: Deadline, lock_seconds: float, pause_seconds: float, path: str | None
    ) -> None:
        """What statements depend on, and limits that the server keeps by itself, for this transaction only.

        They also end what nobody here can end any more: a process frozen in the middle of a transaction, or a machine
        that lost its network, would otherwise hold its locks against every other home.
        """
        server_ms = max(1, int((deadline.remaining() + SERVER_GRACE_SECONDS) * 1000))
        limits: dict[str, object] = {
            "statement_timeout": server_ms,
            "lock_timeout": max(1, min(server_ms, int(lock_seconds * 1000))),
            "idle_in_transaction_session_timeout": max(1, min(server_ms, int(pause_seconds * 1000))),
        }
        if connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
            # Between statements that travel together no other limit applies.
            limits["transaction_timeout"] = server_ms
        if path is not None:
            limits["search_path"] = path
        conventions.keep_to(connection, limits)

    def close(self) -> None:
        """Refuse new uses, and close what is idle unless another home uses it; what is in use goes when given back."""
        with _process.condition:
            self._closed = True
            database = self._database
            database.users.discard(self)
            idle: list[_Idle] = []
            if not database.users:
                idle, database.idle = database.idle, []
                _process.forget(database)
            _process.condition.notify_all()
        for item in idle:
            item.connection.close()

    def reap(self, idle_seconds: float = MAX_IDLE_SECONDS) -> None:
        """Close connections that nobody has used for that long."""
        limit = time.monotonic() - idle_seconds
        with _process.condition:
            database = self._database
            old = [item for item in database.idle if item.since <= limit]
            database.idle = [item for item in database.idle if item.since > limit]
        for item in old:
            item.connection.close()

    def _take(self, deadline: Deadline) -> tuple[Connection, _Database]:
        failures = self._failures
        while (taken := self._wait(deadline, failures)) is None:
            self._connect()
        return taken

    def _wait(self, deadline: Deadline, failures: int) -> tuple[Connection, _Database] | None:
        """A connection as soon as there is one; None when the caller must connect itself and has the time."""
        with _process.condition:
            while True:
                if self._closed:
                    raise DatabaseUnavailable("the connection pool is closed")
                database = self._database
                while database.idle:
                    connection = database.idle.pop().connection
                    if is_usable(connection):
                        database.in_use += 1
                        return connection, database
                    connection.close()
                if self._failures != failures and self._last_error is not None:
                    raise copy.copy(self._last_error)
                if self._may_connect(database):
                    database.connecting += 1
                    _process.connecting += 1
                    try:
                        start_thread(self._connect, "hermes-pgvector-connect")
                    except ThreadUnavailable as error:
                        if deadline.remaining() <= self._connect_seconds:
                            database.connecting -= 1
                            _process.connecting -= 1
                            raise DatabaseUnavailable(f"{error} to connect to Postgres") from None
                        return None
                if deadline.is_over:
                    raise DatabaseUnavailable("no connection to Postgres within the time given")
                _process.condition.wait(deadline.remaining())

    def _may_connect(self, database: _Database) -> bool:
        return (
            database.connecting < MAX_CONNECTING
            and _process.connecting < MAX_CONNECTING_IN_ALL
            and database.in_use + database.connecting < self._maximum
        )

    def _connect(self) -> None:
        """Make the connection that was counted as being made; with `self._database`, whatever that is by then."""
        database = self._database
        connection: Connection | None = None
        error: MemoryPluginError | None = None
        try:
            # A first connection may have to start the embedded server, which takes longer than a connection does.
            conninfo = self._conninfo(Deadline.after(max(60.0, self._connect_seconds)))
            complete = complete_conninfo(conninfo, self._connect_seconds)
            with _process.condition:
                shared = _process.database(complete, database)
                if shared is not database:
                    self._move(database, shared)
                    database = shared
                    if shared.idle or shared.in_use + shared.connecting > self._maximum:
                        return
            connection = psycopg.connect(complete, autocommit=True, prepare_threshold=None)
            conventions.adapt(connection)
        except (psycopg.Error, UnicodeError) as foreign:
            error = translate(foreign)
        except MemoryPluginError as own:
            error = own
        except OSError as foreign:
            # The home's own files: its id, the server's folder.
            where = f" ({foreign.filename})" if isinstance(foreign.filename, str) else ""
            error = DatabaseUnavailable(f"{foreign.strerror or type(foreign).__name__}{where}")
        finally:
            self._connected(database, connection, error)

    def _move(self, before: _Database, shared: _Database) -> None:
        """Share connections from now on: another home has some, or the connection string has changed."""
        before.connecting -= 1
        shared.connecting += 1
        before.users.discard(self)
        shared.users.add(self)
        self._database = shared
        if not before.users:
            for item in before.idle:
                item.connection.close()
            before.idle = []
            _process.forget(before)

    def _connected(self, database: _Database, connection: Connection | None, error: MemoryPluginError | None) -> None:
        with _process.condition:
            database.connecting -= 1
            _process.connecting -= 1
            if connection is not None and not self._closed:
                database.idle.append(_Idle(connection, time.monotonic()))
                self._last_error = None
            elif connection is not None:
                connection.close()
            elif error is not None:
                self._failures += 1
                self._last_error = error
            _process.condition.notify_all()

    def _give_back(self, connection: Connection, database: _Database) -> None:
        with _process.condition:
            database.in_use -= 1
            is_idle = not connection.closed and connection.info.transaction_status == _IDLE_STATUS
            discard = not is_idle or not database.users
            if not discard:
                database.idle.append(_Idle(connection, time.monotonic()))
            _process.condition.notify_all()
        if discard:
            connection.close()


_IDLE_STATUS = psycopg.pq.TransactionStatus.IDLE
