"""A few connections shared by everyone in the process, opened in the background and closed when idle.

Not psycopg_pool, because callers here need three things at once: never to wait beyond their Deadline, even for a server
that accepts and stays silent; to learn at once *why* there is no connection; and an idle process with neither
connections nor threads. Connections carry no session state, so pgbouncer's transaction mode works.
"""

from __future__ import annotations

import copy
import functools
import logging
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    DatabaseError,
    DatabaseUnavailable,
    MemoryPluginError,
    ThreadUnavailable,
)
from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.errors import translate, translated
from hermes_memory_pgvector.postgres.watchdog import Watchdog
from hermes_memory_pgvector.service import start_thread

Connection = psycopg.Connection[tuple[object, ...]]
APPLICATION_NAME = "hermes-pgvector"
KEEPALIVES = {"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
MAX_IDLE_SECONDS = 30.0
MAX_CONNECTING = 2
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


class Pool:
    """At most `maximum` connections; nothing happens before the first use."""

    def __init__(
        self,
        conninfo: Callable[[Deadline], str],
        *,
        maximum: int,
        connect_seconds: float,
        admit: Callable[[Connection], None] | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        """`watchdog` is another pool's, which is closed after this one: one thread watches them all."""
        self._conninfo = conninfo
        self._admit = admit
        """Checks a new connection before anybody gets it; raises when nobody may use it."""
        self._maximum = maximum
        self._connect_seconds = connect_seconds
        self._condition = threading.Condition()
        self._idle: list[_Idle] = []
        self._in_use = 0
        self._connecting = 0
        self._failures = 0
        self._last_error: MemoryPluginError | None = None
        self._closed = False
        self._shares_watchdog = watchdog is not None
        self.watchdog = watchdog or Watchdog()

    @contextmanager
    def connection(self, deadline: Deadline) -> Iterator[Connection]:
        """A connection in autocommit mode for the length of the block; its socket is cut at the deadline.

        For what needs no transaction: the schema, the installation, the server.
        """
        connection = self._take(deadline)
        try:
            with translated(), self.watchdog.watching(connection.fileno(), deadline):
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def reading(self, deadline: Deadline) -> Iterator[Connection]:
        """Statements that travel together: until the first fetch they are one round trip and one transaction.

        It needs no BEGIN and COMMIT of its own: between two synchronisations the server keeps one open by itself.
        """
        with self.connection(deadline) as connection, connection.pipeline():
            self._limit(connection, deadline, 2.0, PAUSE_SECONDS)
            yield connection

    @contextmanager
    def transaction(
        self,
        deadline: Deadline,
        *,
        lock_seconds: float = LOCK_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> Iterator[Connection]:
        """A transaction whose statements the server itself ends at the deadline.

        The server also ends it when we send nothing for `pause_seconds`.
        """
        with self.connection(deadline) as connection, connection.transaction():
            self._limit(connection, deadline, lock_seconds, pause_seconds)
            yield connection

    @staticmethod
    def translating() -> AbstractContextManager[None]:
        """For a block within a transaction that handles its errors itself."""
        return translated()

    @staticmethod
    def _limit(connection: Connection, deadline: Deadline, lock_seconds: float, pause_seconds: float) -> None:
        """What statements depend on, and limits that the server keeps by itself, for this transaction only.

        They also end what nobody here can end any more: a process frozen in the middle of a transaction, or a machine
        that lost its network, would otherwise hold its locks against every other home.
        """
        server_ms = max(1, int((deadline.remaining() + SERVER_GRACE_SECONDS) * 1000))
        limits = {
            "statement_timeout": server_ms,
            "lock_timeout": max(1, min(server_ms, int(lock_seconds * 1000))),
            "idle_in_transaction_session_timeout": max(1, min(server_ms, int(pause_seconds * 1000))),
        }
        if connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
            # Between statements that travel together no other limit applies.
            limits["transaction_timeout"] = server_ms
        conventions.keep_to(connection, limits)

    def close(self) -> None:
        """Close what is idle and refuse new uses; what is in use closes when it is given back."""
        with self._condition:
            self._closed = True
            idle, self._idle = self._idle, []
            self._condition.notify_all()
        if not self._shares_watchdog:
            self.watchdog.close()
        for item in idle:
            item.connection.close()

    def reap(self, idle_seconds: float = MAX_IDLE_SECONDS) -> None:
        """Close connections that nobody has used for that long."""
        limit = time.monotonic() - idle_seconds
        with self._condition:
            old = [item for item in self._idle if item.since <= limit]
            self._idle = [item for item in self._idle if item.since > limit]
        for item in old:
            item.connection.close()

    def _take(self, deadline: Deadline) -> Connection:
        failures = self._failures
        while (connection := self._wait(deadline, failures)) is None:
            self._connect()
        return connection

    def _wait(self, deadline: Deadline, failures: int) -> Connection | None:
        """A connection as soon as there is one; None when the caller must connect itself and has the time."""
        with self._condition:
            while True:
                if self._closed:
                    raise DatabaseUnavailable("the connection pool is closed")
                while self._idle:
                    connection = self._idle.pop().connection
                    if _is_usable(connection):
                        self._in_use += 1
                        return connection
                    connection.close()
                if self._failures != failures and self._last_error is not None:
                    raise copy.copy(self._last_error)
                if self._connecting < MAX_CONNECTING and self._in_use + self._connecting < self._maximum:
                    try:
                        start_thread(self._connect, "hermes-pgvector-connect")
                    except ThreadUnavailable as error:
                        if deadline.remaining() <= self._connect_seconds:
                            raise DatabaseUnavailable(f"{error} to connect to Postgres") from None
                        self._connecting += 1
                        return None
                    self._connecting += 1
                if deadline.is_over:
                    raise DatabaseUnavailable("no connection to Postgres within the time given")
                self._condition.wait(deadline.remaining())

    def _connect(self) -> None:
        connection: Connection | None = None
        error: MemoryPluginError | None = None
        try:
            # A first connection may have to start the embedded server, which takes longer than a connection does.
            conninfo = self._conninfo(Deadline.after(max(60.0, self._connect_seconds)))
            connection = self._connected(complete_conninfo(conninfo, self._connect_seconds))
        except (psycopg.Error, UnicodeError) as foreign:
            error = translate(foreign)
        except MemoryPluginError as own:
            error = own
        except OSError as foreign:
            # The home's own files: its id, the server's folder.
            where = f" ({foreign.filename})" if isinstance(foreign.filename, str) else ""
            error = DatabaseUnavailable(f"{foreign.strerror or type(foreign).__name__}{where}")
        finally:
            with self._condition:
                self._connecting -= 1
                if connection is not None and not self._closed:
                    self._idle.append(_Idle(connection, time.monotonic()))
                    self._last_error = None
                elif connection is not None:
                    connection.close()
                else:
                    self._failures += 1
                    self._last_error = error or DatabaseUnavailable("connecting failed unexpectedly")
                self._condition.notify_all()

    def _connected(self, conninfo: str) -> Connection:
        """A new connection, if it leads to a database we may use."""
        connection: Connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
        conventions.adapt(connection)
        deadline = Deadline.after(max(2.0, self._connect_seconds))
        try:
            with translated(), self.watchdog.watching(connection.fileno(), deadline):
                if self._admit is not None:
                    self._admit(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._condition:
            self._in_use -= 1
            if self._closed or connection.closed or connection.info.transaction_status != _IDLE_STATUS:
                discard = True
            else:
                discard = False
                self._idle.append(_Idle(connection, time.monotonic()))
            self._condition.notify()
        if discard:
            connection.close()


_IDLE_STATUS = psycopg.pq.TransactionStatus.IDLE


def complete_conninfo(conninfo: str, connect_seconds: float) -> str:
    """The operator's connection string with our defaults for what it leaves open."""
    given = conninfo_to_dict(conninfo)
    wanted = {
        "application_name": APPLICATION_NAME,
        "connect_timeout": str(max(2, round(connect_seconds))),
        **KEEPALIVES,
    }
    open_ones = {key: value for key, value in wanted.items() if key not in given}
    return make_conninfo(conninfo, **open_ones, client_encoding=conventions.ENCODING)


def send_all(connection: Connection) -> None:
    """Hand everything queued in a pipeline to the server, so that it works while we do something else.

    A server that does not take it ends the wait when the watchdog cuts the socket.
    """
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLOUT)
    while connection.pgconn.flush():
        poller.poll()


@functools.lru_cache(maxsize=16)
def check_conninfo(conninfo: str) -> DatabaseError | None:
    """What is wrong with a connection string, without connecting; remembered, because every request asks."""
    try:
        conninfo_to_dict(conninfo)
    except psycopg.Error as error:
        return translate(error)
    return None


def _is_usable(connection: Connection) -> bool:
    """Whether an idle connection is still there: a server that went away has left something to read."""
    if connection.closed:
        return False
    poller = select.poll()
    try:
        poller.register(connection.fileno(), select.POLLIN)
        return not poller.poll(0)
    except (OSError, ValueError, psycopg.Error):
        return False
