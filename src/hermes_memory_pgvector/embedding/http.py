"""A small HTTP client for one origin; every call ends by its deadline.

The socket's timeout is set to the time left before each send and receive, so a server that drips bytes is cut off like
one that hangs. The store's Watchdog would do the same from a thread of its own; here every wait is a socket call of
ours, so a timeout is enough and costs no thread. Redirects are not followed; proxies from the environment are ignored;
bodies have a cap; a few idle connections are kept and checked before reuse.
"""

from __future__ import annotations

import io
import select
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Literal, cast

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.dial import dial
from hermes_memory_pgvector.embedding.url import Endpoint
from hermes_memory_pgvector.errors import EmbeddingRejected, EmbeddingUnavailable
from hermes_memory_pgvector.fork import renew_after_fork

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_IDLE = 4
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and, when it is a success, the body."""

    status: int
    body: bytes


class _Connection:
    """A socket that looks at the deadline before every single send and receive."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.deadline = Deadline(0.0)
        self.has_received = False

    def _arm(self) -> None:
        left = self.deadline.remaining()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)

    def begin(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.has_received = False

    def send(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            self._arm()
            view = view[self._sock.send(view) :]

    def receive_into(self, buffer: WriteableBuffer) -> int:
        self._arm()
        count = self._sock.recv_into(buffer)
        self.has_received = self.has_received or count > 0
        return count

    def makefile(self, _mode: Literal["rb"]) -> io.BufferedReader:
        """What http.client asks of a socket."""
        return io.BufferedReader(_Receiver(self), _CHUNK_BYTES)

    def is_quiet(self) -> bool:
        """Whether the server has neither closed the idle connection nor said anything nobody asked for."""
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        self._sock.close()


class _Receiver(io.RawIOBase):
    """The receiving half of a connection as a raw stream; closing it leaves the connection open."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._connection.receive_into(buffer)


class HttpClient:
    """Posts JSON to one origin, over connections that are kept between calls."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        renew_after_fork(self)

    def post(self, target: str, content: bytes, deadline: Deadline, max_body: int) -> Reply:
        """The answer to one POST; the body is read only when the status is a success."""
        head = (
            f"POST {target} HTTP/1.1\r\nHost: {self._endpoint.authority}\r\n"
            "Accept: application/json\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nUser-Agent: hermes-memory-pgvector\r\n{self._headers}\r\n"
        ).encode("latin-1")
        request = head + content
        kept = self._take_idle()
        if kept is not None:
            try:
                return self._exchange(kept, request, deadline, max_body)
            except EmbeddingUnavailable:
                # The server may have closed the kept connection just as the request left: that says nothing about it.
                if kept.has_received or deadline.is_over:
                    raise
        return self._exchange(self._connect(deadline), request, deadline, max_body)

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

    def _take_idle(self) -> _Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_quiet():
                return connection
            connection.close()

    def _keep(self, connection: _Connection) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self, deadline: Deadline) -> _Connection:
        sock = dial(self._endpoint.host, self._endpoint.port, deadline)
        if self._endpoint.scheme == "http":
            return _Connection(sock)
        if self._tls is None:
            self._tls = ssl.create_default_context()
        try:
            # The handshake honours the socket's timeout as a whole, however many messages it takes.
            sock.settimeout(max(deadline.remaining(), 0.001))
            return _Connection(self._tls.wrap_socket(sock, server_hostname=self._endpoint.host))
        except OSError as error:
            sock.close()
            raise EmbeddingUnavailable(
                f"no TLS connection to {self._endpoint.origin} ({type(error).__name__})"
            ) from None

    def _exchange(self, connection: _Connection, request: bytes, deadline: Deadline, max_body: int) -> Reply:
        connection.begin(deadline)
        may_keep = False
        try:
            connection.send(request)
            response = HTTPResponse(cast(socket.socket, connection), method="POST")
            response.begin()
            if not 200 <= response.status < 300:
                return Reply(response.status, b"")
            body = self._read(response, min(max_body, MAX_BODY_BYTES))
            may_keep = not response.will_close
            return Reply(response.status, body)
        except TimeoutError:
            raise EmbeddingUnavailable(f"{self._endpoint.origin} did not answer in time") from None
        except (OSError, IncompleteRead) as error:
            raise EmbeddingUnavailable(
                f"the connection to {self._endpoint.origin} broke ({type(error).__name__})"
            ) from None
        except HTTPException as error:
            raise EmbeddingRejected(
                f"{self._endpoint.origin} does not answer in HTTP ({type(error).__name__})"
            ) from None
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
