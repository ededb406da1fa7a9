"""MCP over streamable HTTP on the loopback interface, for clients that do not start this process themselves.

Every request needs the token, and has to name this server as its host, so that no web site reaches it through a
browser. A request that comes from a page is refused.
"""

from __future__ import annotations

import contextlib
import hmac
import inspect
import json
import signal
import socket
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.mcp.memory import SharedMemory
from hermes_memory_pgvector.mcp.server import server_of
from hermes_memory_pgvector.web.server import LEAST_TOKEN, LOOPBACK_NAMES, is_loopback

PATH = "/mcp"
MOST_BODY = 1024 * 1024
IDLE_SECONDS = 1800.0
"""How long a connection is remembered that nobody uses; newer SDKs forget it then."""


def listening(host: str, port: int, token: str) -> socket.socket:
    """A socket that only this machine reaches; ConfigError says what is wrong."""
    if not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached by others; listen on 127.0.0.1 and let them come through ssh -L or a proxy with TLS"
        )
    if len(token) < LEAST_TOKEN:
        raise ConfigError(f"the token has {len(token)} characters; it needs {LEAST_TOKEN} or more")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or type(error).__name__}") from None
    return made


def url_of(bound: socket.socket) -> str:
    """Where clients find the server."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}{PATH}" if ":" in host else f"http://{host}:{port}{PATH}"


def serve(memory: SharedMemory, bound: socket.socket, token: str, on_ready: Callable[[], None]) -> None:
    """Answer until somebody ends the process."""
    memory.start()
    anyio.run(_serve, memory, bound, token, on_ready)


async def _serve(memory: SharedMemory, bound: socket.socket, token: str, on_ready: Callable[[], None]) -> None:
    known = inspect.signature(StreamableHTTPSessionManager).parameters
    idle: dict[str, Any] = {"session_idle_timeout": IDLE_SECONDS} if "session_idle_timeout" in known else {}
    manager = StreamableHTTPSessionManager(server_of(memory), json_response=True, **idle)
    port = bound.getsockname()[1]
    app = Doorkeeper(manager.handle_request, token, frozenset(f"{name}:{port}" for name in LOOPBACK_NAMES))
    config = uvicorn.Config(
        app, lifespan="off", ws="none", log_config=None, access_log=False, server_header=False, date_header=False,
        timeout_graceful_shutdown=1, limit_concurrency=64,
    )  # fmt: skip
    server = _Server(config)
    async with manager.run(), anyio.create_task_group() as tasks:
        tasks.start_soon(_end_by_signal, server)
        on_ready()
        await server.serve(sockets=[bound])
        tasks.cancel_scope.cancel()


class _Server(uvicorn.Server):
    """A server whose end somebody else decides: after it, the journal is emptied."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


async def _end_by_signal(server: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            server.should_exit = True


class Doorkeeper:
    """Lets in who knows the token and means this server."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, sentence = refusal
        body = json.dumps({"error": sentence}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        # What was sent is not read, so nothing may follow it on this connection.
        headers.append((b"connection", b"close"))
        if status is HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        told: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            told.setdefault(name.lower(), []).append(value)
        names = [_text(value).lower() for value in told.get(b"host", [])]
        if len(names) != 1 or names[0] not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, "This server is not known by that name."
        if b"origin" in told or any(value != b"none" for value in told.get(b"sec-fetch-site", [])):
            return HTTPStatus.FORBIDDEN, "This server answers no web page."
        given = told.get(b"authorization", [])
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return HTTPStatus.UNAUTHORIZED, "The token is missing or wrong."
        if scope["path"].rstrip("/") != PATH:
            return HTTPStatus.NOT_FOUND, f"There is nothing here; the server is at {PATH}."
        return self._body_refusal(scope["method"], told)

    @staticmethod
    def _body_refusal(method: str, told: dict[bytes, list[bytes]]) -> tuple[HTTPStatus, str] | None:
        if method != "POST":
            return None
        length = _text(told.get(b"content-length", [b""])[0])
        if not length.isascii() or not length.isdecimal() or b"transfer-encoding" in told:
            return HTTPStatus.LENGTH_REQUIRED, "The request does not say how long it is."
        if len(length) > 9 or int(length) > MOST_BODY:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is too much for one request."
        return None


def _text(value: Any) -> str:
    return bytes(value).decode("latin-1")
