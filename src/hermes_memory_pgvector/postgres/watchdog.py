"""Cuts a connection's socket when its deadline is over.

psycopg waits for ever on a server that is alive but silent, and no timeout of the server helps then. One thread
watches all connections in use and exits when there is nothing left to watch.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable, ThreadUnavailable
from hermes_memory_pgvector.service import start_thread

LINGER_SECONDS = 20.0


class Watchdog:
    """Guards any number of sockets with one thread."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._watched: dict[object, tuple[float, int]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._looks_at = 0.0
        """When the thread looks next by itself."""

    def close(self) -> None:
        """Let the thread go as soon as nothing is watched any more."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    @contextmanager
    def watching(self, descriptor: int, deadline: Deadline) -> Iterator[None]:
        """While the block runs, shut the socket down if the deadline passes; DatabaseUnavailable then says so.

        It also says when no thread can watch: a call that nothing can end is worse than none.
        """
        token = object()
        # A duplicate stays valid whatever happens to the original, so the cut can never hit a reused number.
        duplicate = os.dup(descriptor)
        try:
            with self._condition:
                self._ensure_thread()
                self._watched[token] = (deadline.at, duplicate)
                if deadline.at < self._looks_at:
                    self._condition.notify()
            yield
        except psycopg.OperationalError:
            if token not in self._watched:
                # To the driver it looks as if the server had gone.
                raise DatabaseUnavailable("Postgres has not answered within the time given") from None
            raise
        finally:
            with self._condition:
                self._watched.pop(token, None)
                os.close(duplicate)
                if self._is_closed:
                    self._condition.notify()

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            try:
                self._thread = start_thread(self._run, "hermes-pgvector-watchdog")
            except ThreadUnavailable as error:
                raise DatabaseUnavailable(f"{error} to watch the connection to Postgres") from None

    def _run(self) -> None:
        idle_since = time.monotonic()
        with self._condition:
            while True:
                now = time.monotonic()
                if self._watched:
                    idle_since = now
                elif self._is_closed or now - idle_since >= LINGER_SECONDS:
                    self._thread = None
                    return
                for token, (at, descriptor) in list(self._watched.items()):
                    if at <= now:
                        del self._watched[token]
                        _cut(descriptor)
                soonest = min((at for at, _ in self._watched.values()), default=now + LINGER_SECONDS)
                pause = max(0.001, min(soonest - now, LINGER_SECONDS))
                # Calls with a later deadline leave it asleep: waking it for each would take the GIL from their callers.
                self._looks_at = now + pause
                self._condition.wait(pause)


def _cut(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            # Already gone: what the cut wanted.
            return
