"""Opens a TCP connection within a deadline that covers name resolution too.

getaddrinfo cannot be interrupted and may hang for as long as the resolver does. A daemon thread does the lookup, and
only a few at a time: a dead resolver ties up few threads.
"""

from __future__ import annotations

import socket
import threading
from queue import Empty, SimpleQueue
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.url import is_localhost
from hermes_memory_pgvector.errors import EmbeddingUnavailable, ThreadUnavailable
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.service import start_thread

MAX_LOOKUPS = 2

Address = tuple[int, tuple[Any, ...]]
"""Address family and what `connect` takes for it."""


class _Lookups:
    """The names being resolved in this process."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        self._free = threading.Semaphore(MAX_LOOKUPS)

    def resolve(self, host: str, port: int, deadline: Deadline) -> list[Address]:
        """The addresses of a host; EmbeddingUnavailable when there are none in time."""
        free = self._free
        found: SimpleQueue[list[Address]] = SimpleQueue()

        def look_up() -> None:
            try:
                found.put(_addresses(host, port))
            except (OSError, UnicodeError):
                found.put([])
            finally:
                free.release()

        late = EmbeddingUnavailable(f"the name {host} was not resolved in time")
        if not free.acquire(timeout=deadline.remaining()):
            raise late
        try:
            start_thread(look_up, "hermes-pgvector-lookup")
        except ThreadUnavailable as error:
            free.release()
            raise EmbeddingUnavailable(f"{error} to look up {host}") from None
        try:
            addresses = found.get(timeout=deadline.remaining())
        except Empty:
            raise late from None
        if not addresses:
            raise EmbeddingUnavailable(f"the name {host} cannot be resolved")
        return addresses


_lookups = _Lookups()


def _addresses(host: str, port: int, flags: int = 0) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def _resolve(host: str, port: int, deadline: Deadline) -> list[Address]:
    if is_localhost(host):
        return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port, 0, 0))]
    try:
        return _addresses(host, port, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return _lookups.resolve(host, port, deadline)


def dial(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A connected socket; each address gets a share of the time left, so that a dead one leaves time for the next."""
    addresses = _resolve(host, port, deadline)
    reason = "no address"
    for tried, (family, address) in enumerate(addresses):
        share = deadline.remaining() / (len(addresses) - tried)
        if share <= 0:
            raise EmbeddingUnavailable(f"connecting to {host} took too long")
        sock = None
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.settimeout(share)
            sock.connect(address)
            # Without this the last part of a request may wait until the first is acknowledged.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            reason = type(error).__name__
            if sock is not None:
                sock.close()
    raise EmbeddingUnavailable(f"no connection to {host} port {port} ({reason})")
