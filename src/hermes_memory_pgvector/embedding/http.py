"""A small HTTP client for one origin; every call ends by its deadline, whatever the resolver or the server do.

The work is done by a thread: looking up a name cannot be interrupted, and a server may send an answer byte by byte.
Whoever is late cuts the connection and leaves. The breaker keeps callers from what hangs, so few threads do.
Redirects are not followed; proxies from the environment are ignored; bodies have a cap; a few idle connections are kept
and checked before reuse.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from queue import Empty, SimpleQueue
from typing import NamedTuple

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.url import Endpoint
from hermes_memory_pgvector.errors import EmbeddingRejected, EmbeddingUnavailable, ThreadUnavailable
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.service import start_thread

MAX_IDLE = 4
_CHUNK_BYTES = 64 * 1024
_REASON_BYTES = 2048


class Reply(NamedTuple):
    """A status and, when it is a success or nothing is there, the body."""

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
        # Taking and adding are atomic: there is no lock that a fork could leave held.
        self._idle: list[HTTPConnection] = []
        renew_after_fork(self)

    def post(self, target: str, content: bytes, deadline: Deadline, max_body: int) -> Reply:
        """The answer to one POST; other bodies than those of a success or of nothing found may repeat what was said."""
        used: list[HTTPConnection] = []
        answers: SimpleQueue[Reply | BaseException] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._answer(used, target, content, deadline, max_body))
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                answers.put(error)

        try:
            start_thread(ask, "hermes-pgvector-embed")
            answer = answers.get(timeout=deadline.remaining())
        except ThreadUnavailable as error:
            raise EmbeddingUnavailable(f"{error} to ask {self._endpoint.origin}") from None
        except Empty:
            for each in used:
                with contextlib.suppress(OSError, AttributeError):
                    each.sock.shutdown(socket.SHUT_RDWR)
            raise self._late() from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            with contextlib.suppress(IndexError):
                self._idle.pop().close()

    def __del__(self) -> None:
        self.close()

    def after_fork_in_child(self) -> None:
        """The parent goes on using its connections; the child closes its copies and opens its own."""
        self.close()

    def _late(self) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(f"{self._endpoint.origin} did not answer in time")

    def _answer(
        self, used: list[HTTPConnection], target: str, content: bytes, deadline: Deadline, max_body: int
    ) -> Reply:
        used += self._kept()
        for kept in used:
            # The server may have closed it just as the request left: that says nothing about the server.
            with contextlib.suppress(_Unanswered):
                return self._exchange(kept, target, content, deadline, max_body)
        used.append(self._connected(deadline))
        return self._exchange(used[-1], target, content, deadline, max_body)

    def _kept(self) -> list[HTTPConnection]:
        """An idle connection that can be used again, if there is one."""
        with contextlib.suppress(IndexError):
            while not is_quiet(found := self._idle.pop()):
                found.close()
            return [found]
        return []

    def _connected(self, deadline: Deadline) -> HTTPConnection:
        """A new connection; a dead address leaves time for the next."""
        host, port, share = self._endpoint.host, self._endpoint.port, max(deadline.remaining() / 2, 0.001)
        try:
            if self._endpoint.scheme == "https":
                self._tls = self._tls or ssl.create_default_context()
                connection: HTTPConnection = HTTPSConnection(host, port, timeout=share, context=self._tls)
            else:
                connection = HTTPConnection(host, port, timeout=share)
            connection.connect()
        except (OSError, UnicodeError) as error:
            raise EmbeddingUnavailable(f"no connection to {self._endpoint.origin} ({type(error).__name__})") from None
        # It would open itself again, with another time.
        connection.auto_open = 0
        return connection

    def _exchange(
        self, connection: HTTPConnection, target: str, content: bytes, deadline: Deadline, max_body: int
    ) -> Reply:
        origin = self._endpoint.origin
        has_answered = may_keep = False
        try:
            connection.sock.settimeout(max(deadline.remaining(), 0.001))
            connection.request("POST", target, content, self._headers)
            with connection.getresponse() as response:
                has_answered = True
                is_success = 200 <= response.status < 300
                body = self._read(response, max_body) if is_success else b""
                if response.status == HTTPStatus.NOT_FOUND:
                    body = response.read(_REASON_BYTES)
                # Whoever asked too late may have closed this client since.
                may_keep = is_success and not response.will_close and not deadline.is_over
                return Reply(response.status, body)
        except TimeoutError:
            raise self._late() from None
        except (OSError, HTTPException) as error:
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
