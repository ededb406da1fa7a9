"""A small HTTP client for one origin; every call ends by its deadline, because the watchdog cuts its socket then.

Redirects are not followed; proxies from the environment are ignored; bodies have a cap; a few idle connections are kept
and checked before reuse. getaddrinfo cannot be interrupted and may hang for as long as the resolver does: a daemon
thread does the lookup. The breaker keeps callers from a dead resolver, so that few of them hang.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from queue import Empty, SimpleQueue
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.url import Endpoint, is_localhost
from hermes_memory_pgvector.errors import EmbeddingRejected, EmbeddingUnavailable, ThreadUnavailable
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.service import start_thread
from hermes_memory_pgvector.watchdog import WATCHDOG

MAX_IDLE = 4
_CHUNK_BYTES = 64 * 1024
Address = tuple[int, tuple[Any, ...]]
"""Address family and what `connect` takes for it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and, when it is a success, the body."""

    status: int
    body: bytes


class _Unanswered(EmbeddingUnavailable):
    """The connection broke before an answer began."""


class HttpClient:
    """Posts JSON to one origin, over connections that are kept between calls."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._headers = {
            "Host": endpoint.authority,
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "hermes-memory-pgvector",
            **headers,
        }
        self._tls: ssl.SSLContext | None = None
        self._idle: list[HTTPConnection] = []
        renew_after_fork(self)

    def post(self, target: str, content: bytes, deadline: Deadline, max_body: int) -> Reply:
        """The answer to one POST; the body is read only when the status is a success."""
        while (kept := self._take()) is not None:
            if not is_quiet(kept):
                kept.close()
                continue
            try:
                return self._exchange(kept, target, content, deadline, max_body)
            except _Unanswered:
                # The server may have closed the kept connection just as the request left: that says nothing about it.
                if deadline.is_over:
                    raise
                break
        return self._exchange(self._connect(deadline), target, content, deadline, max_body)

    def close(self) -> None:
        """Close the idle connections."""
        while (connection := self._take()) is not None:
            connection.close()

    def after_fork_in_child(self) -> None:
        """The parent goes on using its connections; the child closes its copies and opens its own."""
        self.close()

    def _take(self) -> HTTPConnection | None:
        # Taking and adding are atomic: there is no lock that a fork could leave held.
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self, deadline: Deadline) -> HTTPConnection:
        sock = dial(self._endpoint.host, self._endpoint.port, deadline)
        try:
            if self._endpoint.scheme == "https":
                if self._tls is None:
                    self._tls = ssl.create_default_context()
                # The handshake honours the socket's timeout as a whole, however many messages it takes.
                sock.settimeout(max(deadline.remaining(), 0.001))
                sock = self._tls.wrap_socket(sock, server_hostname=self._endpoint.host)
            # From here on the watchdog ends every wait.
            sock.settimeout(None)
        except OSError as error:
            sock.close()
            raise EmbeddingUnavailable(
                f"no TLS connection to {self._endpoint.origin} ({type(error).__name__})"
            ) from None
        connection = HTTPConnection(self._endpoint.host, self._endpoint.port)
        connection.sock = sock
        # It would look up the name by itself, for as long as that takes.
        connection.auto_open = 0
        return connection

    def _exchange(
        self, connection: HTTPConnection, target: str, content: bytes, deadline: Deadline, max_body: int
    ) -> Reply:
        origin = self._endpoint.origin
        has_answered = may_keep = False
        try:
            with WATCHDOG.watching(connection.sock.fileno(), deadline):
                connection.request("POST", target, content, self._headers)
                with connection.getresponse() as response:
                    has_answered = True
                    is_success = 200 <= response.status < 300
                    body = self._read(response, max_body) if is_success else b""
                    # An answer without a length that is cut looks as if it had ended.
                    if deadline.is_over:
                        raise TimeoutError
                    may_keep = is_success and not response.will_close
                    return Reply(response.status, body)
        except ThreadUnavailable as error:
            raise EmbeddingUnavailable(f"{error} to watch the connection to {origin}") from None
        except (OSError, HTTPException) as error:
            if deadline.is_over:
                raise EmbeddingUnavailable(f"{origin} did not answer in time") from None
            if not isinstance(error, (OSError, IncompleteRead)):
                raise EmbeddingRejected(f"{origin} does not answer in HTTP ({type(error).__name__})") from None
            kind = EmbeddingUnavailable if has_answered else _Unanswered
            raise kind(f"the connection to {origin} broke ({type(error).__name__})") from None
        finally:
            if may_keep and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    def _read(self, response: HTTPResponse, cap: int) -> bytes:
        if response.length is not None and response.length > cap:
            raise EmbeddingRejected(
                f"{self._endpoint.origin} announced a body of {response.length} bytes; the most is {cap}"
            )
        body = bytearray()
        while chunk := response.read(_CHUNK_BYTES):
            body += chunk
            if len(body) > cap:
                raise EmbeddingRejected(f"{self._endpoint.origin} sent more than {cap} bytes")
        if response.length:
            raise IncompleteRead(b"", response.length)
        return bytes(body)


def is_quiet(connection: HTTPConnection) -> bool:
    """Whether the server has neither closed the idle connection nor said anything nobody asked for."""
    poll = select.poll()
    try:
        poll.register(connection.sock, select.POLLIN)
        return not poll.poll(0)
    except (OSError, ValueError):
        return False


def _addresses(host: str, port: int, flags: int = 0) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def _resolve(host: str, port: int, deadline: Deadline) -> list[Address]:
    if is_localhost(host):
        return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port, 0, 0))]
    with contextlib.suppress(OSError, UnicodeError):
        return _addresses(host, port, socket.AI_NUMERICHOST)
    found: SimpleQueue[list[Address]] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(_addresses(host, port))
        except (OSError, UnicodeError):
            found.put([])

    try:
        start_thread(look_up, "hermes-pgvector-lookup")
        addresses = found.get(timeout=deadline.remaining())
    except ThreadUnavailable as error:
        raise EmbeddingUnavailable(f"{error} to look up {host}") from None
    except Empty:
        raise EmbeddingUnavailable(f"the name {host} was not resolved in time") from None
    if not addresses:
        raise EmbeddingUnavailable(f"the name {host} cannot be resolved")
    return addresses


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
