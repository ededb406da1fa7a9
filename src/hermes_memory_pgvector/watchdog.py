"""Cuts a socket when its deadline is over.

Neither psycopg nor the standard library's HTTP client can end a wait for a peer that is alive but silent, or that drips
a byte now and then. One thread watches all sockets in use and exits when there is nothing left to watch.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.service import start_thread

LINGER_SECONDS = 20.0


class Watchdog:
    """Guards any number of sockets with one thread."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        """The parent's thread and its sockets are not the child's."""
        self._condition = threading.Condition()
        self._watched: dict[object, tuple[float, int]] = {}
        self._thread: threading.Thread | None = None
        self._looks_at = 0.0
        """When the thread looks next by itself."""

    @contextmanager
    def watching(self, descriptor: int, deadline: Deadline) -> Iterator[Callable[[], bool]]:
        """While the block runs, shut the socket down if the deadline passes; what it gets tells whether it has.

        ThreadUnavailable when no thread can watch: a call that nothing can end is worse than none.
        """
        token = object()
        # A duplicate stays valid whatever happens to the original, so the cut can never hit a reused number.
        duplicate = os.dup(descriptor)
        try:
            with self._condition:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = start_thread(self._run, "hermes-pgvector-watchdog")
                self._watched[token] = (deadline.at, duplicate)
                if deadline.at < self._looks_at:
                    self._condition.notify()
            yield lambda: token not in self._watched
        finally:
            with self._condition:
                self._watched.pop(token, None)
                os.close(duplicate)

    def _run(self) -> None:
        idle_since = time.monotonic()
        with self._condition:
            while True:
                now = time.monotonic()
                if self._watched:
                    idle_since = now
                elif now - idle_since >= LINGER_SECONDS:
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


WATCHDOG = Watchdog()
"""The one of this process."""


def _cut(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            # Already gone: what the cut wanted.
            return
