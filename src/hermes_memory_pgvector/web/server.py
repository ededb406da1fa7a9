"""The memory page on its own: a small web server for those without the host's dashboard.

It listens on the loopback interface. The page and its files hold nothing that is stored, so anybody may load them. What
is stored is told to whoever sends the token with the request. The token stands in the fragment of the page's address,
which browsers send to no server; the page keeps it in the storage of its own origin and puts it into a header. There is
no cookie, so no other local program is sent one. Requests must name this server as their host and come from its own
page, so neither a web site nor another local program's page reaches it through the browser. On other interfaces it
serves only those who know the token of a file.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.web import routes

API = "/api/plugins/pgvector/"
OWN_HEADER = "X-Pgvector-Page"
"""Holds the token; the page's shell adds it to what it asks."""
KEY = "k"
"""What the token is called in the address; page/src/shell has the same."""
MOST_CONNECTIONS = 64
"""Each takes a thread. One more, and whoever has kept us waiting longest is hung up on."""
REQUEST_SECONDS = 30.0
"""How long a connection may take to send a request, however it spreads its bytes."""
ROOM_SECONDS = 1.0
"""How long the thread of a connection we hang up on may take to end."""
MOST_BODY = 1024 * 1024
LEAST_TOKEN = 24
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ASSETS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "/": (("web", "static", "index.html"), "text/html; charset=utf-8"),
    "/assets/index.js": (("hermes_plugin", "dashboard", "page", "index.js"), "text/javascript; charset=utf-8"),
    "/assets/style.css": (("hermes_plugin", "dashboard", "page", "style.css"), "text/css; charset=utf-8"),
    "/assets/shell.js": (("web", "static", "shell.js"), "text/javascript; charset=utf-8"),
    "/assets/icon.svg": (("web", "static", "icon.svg"), "image/svg+xml"),
    "/assets/shell.css": (("web", "static", "shell.css"), "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """The page of one home."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, home: Path, host: str, port: int, token: str = "") -> None:
        """`token` is the content of a token file; without one, the server makes a token of its own."""
        if not is_loopback(host) and not token:
            raise ConfigError(f"{host} can be reached by others: give the token they need with --token-file")
        if token and len(token) < LEAST_TOKEN:
            raise ConfigError(f"the token has {len(token)} characters; it needs {LEAST_TOKEN} or more")
        self.home = home
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._waiting: dict[socket.socket, float] = {}
        """Connections that have not shown the token, the oldest first, and until when we wait for a request."""
        self._waiting_lock = threading.Lock()
        self._shows_token = not token
        self.token = token or secrets.token_urlsafe(32)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or type(error).__name__}") from None
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{self.server_port}"
        self.hosts = frozenset(
            f"{name}{port}" for name in {*LOOPBACK_NAMES, shown} for port in self._ports()
        ) if is_loopback(host) else None  # fmt: skip
        """The names by which we may be called; None for any, where a token from a file is needed anyway."""

    @property
    def url(self) -> str:
        """Where to open the page; the token is in it unless it is the operator's own."""
        return f"{self.origin}/#{KEY}={self.token}" if self._shows_token else f"{self.origin}/"

    def _ports(self) -> tuple[str, ...]:
        return (f":{self.server_port}", "") if self.server_port == 80 else (f":{self.server_port}",)

    def leave_alone(self, connection: socket.socket) -> None:
        """The connection has shown the token, or is over."""
        with self._waiting_lock:
            self._waiting.pop(connection, None)

    def service_actions(self) -> None:
        """Hang up on those whose request is overdue."""
        now = time.monotonic()
        self._hang_up([connection for connection, until in self._waiting_now() if until <= now])

    def _waiting_now(self) -> list[tuple[socket.socket, float]]:
        with self._waiting_lock:
            return list(self._waiting.items())

    def _hang_up(self, connections: Iterable[socket.socket]) -> None:
        for connection in connections:
            self.leave_alone(connection)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each connection; strangers make room for whoever comes next."""
        if not self._room.acquire(blocking=False):
            self._hang_up([connection for connection, _ in self._waiting_now()[:1]])
            if not self._room.acquire(timeout=ROOM_SECONDS):
                self.shutdown_request(request)
                return
        with self._waiting_lock:
            self._waiting[request] = time.monotonic() + REQUEST_SECONDS
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Make room at the end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.leave_alone(request)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no event; what else happens is answered before it comes here."""


class Handler(BaseHTTPRequestHandler):
    """One request of a browser; the connection ends with it, so nothing else that was sent is taken for another one."""

    server: PageServer
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        """The page, its files, and what it reads."""
        url = self._url()
        if url is None or not self._is_called_by_name():
            return
        if url.path in ASSETS:
            parts, kind = ASSETS[url.path]
            self._send(HTTPStatus.OK, asset(parts), kind)
        elif url.path.startswith(API):
            query = parse_qs(url.query, keep_blank_values=True)
            self._answer(url, {name: values if len(values) > 1 else values[0] for name, values in query.items()})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self) -> None:
        """What the page changes."""
        url = self._url()
        if url is None or not self._is_called_by_name() or (body := self._body()) is None:
            return
        if not url.path.startswith(API) or not self._is_own_origin():
            self._refuse(HTTPStatus.FORBIDDEN, "This server answers only its own page.")
            return
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            self._answer(url, document)
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "The body is not a JSON object.")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: addresses may hold a token or what somebody looks for."""

    def _answer(self, url: SplitResult, parameters: Mapping[str, Any]) -> None:
        if not self._is_own_page():
            self._refuse(HTTPStatus.FORBIDDEN, "This server answers only its own page.")
        elif not self._has_token():
            self._refuse(HTTPStatus.UNAUTHORIZED, "This is not the token of this page.")
        else:
            self.server.leave_alone(self.connection)
            name = url.path.removeprefix(API)
            self._send_json(*routes.answer(self.server.home, self.command, name, parameters))

    def _url(self) -> SplitResult | None:
        """What is asked for; None when it was refused."""
        try:
            return urlsplit(self.path)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "That is no address.")
            return None

    def _has_token(self) -> bool:
        """Compared in a time that tells nothing; what a stranger sends may be any text."""
        given = self.headers.get(OWN_HEADER, "")
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode())

    def _is_called_by_name(self) -> bool:
        """Whether the browser means us: a web site whose name leads to this machine has another one."""
        names = self.headers.get_all("Host") or []
        if len(names) == 1 and (self.server.hosts is None or names[0].lower() in self.server.hosts):
            return True
        self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server is not known by that name.")
        return False

    def _is_own_origin(self) -> bool:
        """Whether our own page sent this: browsers say where a change comes from, and scripts cannot lie about it."""
        host = self.headers.get("Host", "")
        return self.headers.get("Origin", "").lower() in (f"http://{host.lower()}", f"https://{host.lower()}")

    def _is_own_page(self) -> bool:
        """Whether a script of our own page asks: others may not add the header without asking first."""
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        return site == "same-origin" and OWN_HEADER in self.headers

    def _body(self) -> bytes | None:
        """What was sent; None when it was refused."""
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal() or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "The request does not say how long it is.")
        elif len(length) > 9 or int(length) > MOST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is too much for one request.")
        else:
            return self.rfile.read(int(length))
        return None

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._send_json(status, {"detail": sentence})

    def _send_json(self, status: int, document: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the library refuses gets our headers, and no page with what was asked in it."""
        self._send_json(code, {"detail": f"{HTTPStatus(code).phrase}."})

    def version_string(self) -> str:
        """Nothing about versions."""
        return "hermes-pgvector"


def asset(parts: tuple[str, ...]) -> bytes:
    """A file of the page as it is in this package."""
    return files("hermes_memory_pgvector").joinpath(*parts).read_bytes()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
