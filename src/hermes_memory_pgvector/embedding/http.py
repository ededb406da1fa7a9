"""A small HTTP client for one origin; every call ends by its deadline, because the watchdog cuts its socket then.

Redirects are not followed; proxies from the environment are ignored; bodies have a cap; a few idle connections are kept
and checked before reuse.
"""

from __future__ import annotations

import select
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.dial import dial
from hermes_memory_pgvector.embedding.url import Endpoint
from hermes_memory_pgvector.errors import EmbeddingRejected, EmbeddingUnavailable, ThreadUnavailable
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.watchdog import WATCHDOG

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_IDLE = 4
_CHUNK_BYTES = 64 * 1024


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
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        renew_after_fork(self)

    def post(self, target: str, content: bytes, deadline: Deadline, max_body: int) -> Reply:
        """The answer to one POST; the body is read only when the status is a success."""
        kept = self._take_idle()
        if kept is not None:
            try:
                return self._exchange(kept, target, content, deadline, max_body)
            except _Unanswered:
                # The server may have closed the kept connection just as the request left: that says nothing about it.
                if deadline.is_over:
                    raise
        return self._exchange(self._connect(deadline), target, content, deadline, max_body)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def after_fork_in_child(self) -> None:
        """The parent goes on using its connections; the child closes its copies and opens its own."""
        self._lock = threading.Lock()
        self.close()

    def _take_idle(self) -> HTTPConnection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if is_quiet(connection):
                return connection
            connection.close()

    def _keep(self, connection: HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

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
            with WATCHDOG.watching(connection.sock.fileno(), deadline) as was_cut:
                connection.request("POST", target, content, self._headers)
                with connection.getresponse() as response:
                    has_answered = True
                    is_success = 200 <= response.status < 300
                    body = self._read(response, min(max_body, MAX_BODY_BYTES)) if is_success else b""
                    # An answer without a length that is cut looks as if it had ended.
                    if was_cut():
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
            if may_keep:
                self._keep(connection)
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
