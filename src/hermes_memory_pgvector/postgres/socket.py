"""The socket under a connection: cut at a deadline, looked at before use."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable, ThreadUnavailable
from hermes_memory_pgvector.watchdog import WATCHDOG

Connection = psycopg.Connection[tuple[object, ...]]


@contextmanager
def watched(connection: Connection, deadline: Deadline) -> Iterator[None]:
    """Have the socket cut when the deadline passes: psycopg waits for ever on a server that is alive but silent."""
    with ExitStack() as watching:
        try:
            was_cut = watching.enter_context(WATCHDOG.watching(connection.fileno(), deadline))
        except ThreadUnavailable as error:
            raise DatabaseUnavailable(f"{error} to watch the connection to Postgres") from None
        try:
            yield
        except psycopg.OperationalError:
            if was_cut():
                # To the driver it looks as if the server had gone.
                raise DatabaseUnavailable("Postgres has not answered within the time given") from None
            raise


def is_usable(connection: Connection) -> bool:
    """Whether an idle connection is still there: a server that went away has left something to read."""
    if connection.closed:
        return False
    poller = select.poll()
    try:
        poller.register(connection.fileno(), select.POLLIN)
        return not poller.poll(0)
    except (OSError, ValueError, psycopg.Error):
        return False
