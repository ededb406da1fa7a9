"""Opens a TCP connection within a deadline that covers name resolution too.

getaddrinfo cannot be interrupted and may hang for as long as the resolver does. One daemon thread per host does the
lookup, however many callers wait for it, and only for a few hosts at a time: a dead resolver ties up few threads.
"""

from __future__ import annotations

import functools
import socket
import threading
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.url import is_localhost
from hermes_memory_pgvector.errors import EmbeddingUnavailable, ThreadUnavailable
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.service import start_thread

MAX_LOOKUPS = 2

Address = tuple[int, tuple[Any, ...]]
"""Address family and what `connect` takes for it."""


class _Lookup:
    """One name being resolved."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.addresses: list[Address] = []


class _Lookups:
    """The names being resolved in this process."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], _Lookup] = {}

    def resolve(self, host: str, port: int, deadline: Deadline) -> list[Address]:
        """The addresses of a host; EmbeddingUnavailable when there are none in time."""
        with self._lock:
            lookup = self._running.get((host, port))
            if lookup is None:
                if len(self._running) >= MAX_LOOKUPS:
                    raise EmbeddingUnavailable(f"{MAX_LOOKUPS} name lookups are stuck; {host} was not looked up")
                lookup = self._running[host, port] = _Lookup()
                try:
                    start_thread(functools.partial(self._run, host, port, lookup), "hermes-pgvector-lookup")
                except ThreadUnavailable as error:
                    del self._running[host, port]
                    raise EmbeddingUnavailable(f"{error} to look up {host}") from None
        if not lookup.done.wait(deadline.remaining()):
            raise EmbeddingUnavailable(f"the name {host} was not resolved in time")
        if not lookup.addresses:
            raise EmbeddingUnavailable(f"the name {host} cannot be resolved")
        return lookup.addresses

    def _run(self, host: str, port: int, lookup: _Lookup) -> None:
        try:
            lookup.addresses = _addresses(host, port)
        except (OSError, UnicodeError):
            lookup.addresses = []
        finally:
            with self._lock:
                self._running.pop((host, port), None)
            lookup.done.set()


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
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            reason = type(error).__name__
            continue
        try:
            sock.settimeout(share)
            sock.connect(address)
            # Without this the last part of a request may wait until the first is acknowledged.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            reason = type(error).__name__
            sock.close()
            continue
        return sock
    raise EmbeddingUnavailable(f"no connection to {host} port {port} ({reason})")
