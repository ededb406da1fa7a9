"""The memory page on its own: a small web server for those without the host's dashboard.

It listens on the loopback interface. Its address carries a token that works once: the browser that opens it first gets
a session, and everything else needs that session. A session has two halves, a cookie and a key: browsers send a cookie
to every port of a host, so another local program may see it; the key stays in the storage of our own page. Requests
must name this server as their host and come from its own page, so neither a web site nor another local program's page
reaches it through the browser. On other interfaces it serves only those who know the token of a file.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.web import routes
from hermes_memory_pgvector.web.asked import Asked

logger = logging.getLogger(__name__)

API = "/api/plugins/pgvector/"
OWN_HEADER = "X-Pgvector-Page"
"""Holds the session's key; the page's shell adds it to what it asks."""
KEY = "pgv-key"
"""What the key is called in the address that the token leads to; page/src/shell has the same."""
SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 32
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
    "/assets/index.js": (("hermes_plugin", "dashboard", "page", "index.js"), "text/javascript; charset=utf-8"),
    "/assets/style.css": (("hermes_plugin", "dashboard", "page", "style.css"), "text/css; charset=utf-8"),
    "/assets/shell.js": (("web", "static", "shell.js"), "text/javascript; charset=utf-8"),
    "/assets/icon.svg": (("web", "static", "icon.svg"), "image/svg+xml"),
    "/assets/shell.css": (("web", "static", "shell.css"), "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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


@dataclass(slots=True)
class Session:
    """A browser that has come in: what its cookie says, what its page says, and when it was last here."""

    cookie: str
    key: str
    used: float


@dataclass(slots=True)
class Doorkeeper:
    """Who may come in: one token, and the sessions it was exchanged for. Thread-safe."""

    token: str
    is_lasting: bool = False
    """Whether the token works more than once."""
    _sessions: list[Session] = field(default_factory=list)
    _is_used: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, token: str) -> Session | None:
        """A new session for whoever knows the token; None for everybody else."""
        with self._lock:
            if self._is_used or not _is_same(token, self.token):
                return None
            self._is_used = not self.is_lasting
            session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), time.monotonic())
            kept = sorted(self._sessions, key=lambda each: each.used)
            self._sessions = [*kept[-(MOST_SESSIONS - 1) :], session]
            return session

    def knows(self, cookie: str, key: str | None = None) -> bool:
        """Whether this is the cookie, and the key unless it is None, of a session that was used not too long ago.

        Using it keeps it alive.
        """
        now = time.monotonic()
        with self._lock:
            known = next((each for each in self._sessions if _is_same(each.cookie, cookie)), None)
            if known is None or now - known.used > SESSION_SECONDS:
                return False
            if key is not None and not _is_same(known.key, key):
                return False
            known.used = now
            return True


def _is_same(one: str, other: str) -> bool:
    """Compared in a time that tells nothing; what a stranger sends may be any text."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class PageServer(ThreadingHTTPServer):
    """The page of one home."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, home: Path, host: str, port: int, token: str = "") -> None:
        """`token` is the content of a token file; without one, the server makes a token that works once."""
        if not is_loopback(host) and not token:
            raise ConfigError(f"{host} can be reached by others: give the token they need with --token-file")
        if token and len(token) < LEAST_TOKEN:
            raise ConfigError(f"the token has {len(token)} characters; it needs {LEAST_TOKEN} or more")
        self.home = home
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._waiting: dict[socket.socket, float] = {}
        """Connections without a session's request, the oldest first, and until when we wait for one."""
        self._waiting_lock = threading.Lock()
        self.doorkeeper = Doorkeeper(token or secrets.token_urlsafe(32), is_lasting=bool(token))
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or type(error).__name__}") from None
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{self.server_port}"
        self.cookie = f"pgv_session_{self.server_port}"
        """Browsers keep cookies by host, not by port."""
        self.hosts = frozenset(
            f"{name}{port}" for name in {*LOOPBACK_NAMES, shown} for port in self._ports()
        ) if is_loopback(host) else None  # fmt: skip
        """The names by which we may be called; None for any, where a token from a file is needed anyway."""

    @property
    def url(self) -> str:
        """Where to open the page; the token is in it unless it is the operator's own."""
        return f"{self.origin}/" if self.doorkeeper.is_lasting else f"{self.origin}/?token={self.doorkeeper.token}"

    def _ports(self) -> tuple[str, ...]:
        return (f":{self.server_port}", "") if self.server_port == 80 else (f":{self.server_port}",)

    def await_request(self, connection: socket.socket) -> None:
        """From now on the connection may be hung up on: it has to send a request first."""
        with self._waiting_lock:
            self._waiting[connection] = time.monotonic() + REQUEST_SECONDS

    def leave_alone(self, connection: socket.socket) -> None:
        """The connection has shown a session, or is over."""
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
        self.await_request(request)
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
    """One connection of a browser."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_SECONDS

    def handle_one_request(self) -> None:
        """Wait for a request, and answer it."""
        self.server.await_request(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        """The page, its files, and what it reads."""
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            # What is sent along is not read, and must not be taken for the next request.
            self.close_connection = True
        url = self._url()
        if url is None or not self._is_called_by_name():
            return
        if url.path in ASSETS:
            parts, kind = ASSETS[url.path]
            self._send(HTTPStatus.OK, asset(parts), kind)
        elif url.path == "/":
            self._send_page({name: values[0] for name, values in parse_qs(url.query).items()})
        elif url.path.startswith(API):
            query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
            self._answer(routes.READS, url.path.removeprefix(API), query, {})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self) -> None:
        """What the page changes, and the token that somebody types."""
        url = self._url()
        if url is None or not self._is_called_by_name() or (body := self._body()) is None:
            return
        path = url.path
        if path == "/" and self._is_own_origin():
            given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]
            self._enter(given.strip())
        elif path.startswith(API) and self._is_own_origin():
            try:
                document = json.loads(body)
            except (ValueError, RecursionError):
                document = None
            if not isinstance(document, dict):
                self._refuse(HTTPStatus.BAD_REQUEST, "The body is not a JSON object.")
            else:
                self._answer(routes.CHANGES, path.removeprefix(API), {}, document)
        else:
            self._refuse(HTTPStatus.FORBIDDEN, "This server answers only its own page.")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: addresses may hold a token or what somebody looks for."""

    def _answer(
        self, handlers: Mapping[str, routes.Handler], name: str, query: Mapping[str, str], body: Mapping[str, Any]
    ) -> None:
        handler = handlers.get(name)
        if not self._is_own_page():
            self._refuse(HTTPStatus.FORBIDDEN, "This server answers only its own page.")
        elif not self._has_session(self.headers.get(OWN_HEADER, "")):
            self._refuse(HTTPStatus.UNAUTHORIZED, "This page's session is over: start hermes-pgvector ui again.")
        elif handler is None:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        else:
            self.server.leave_alone(self.connection)
            status, document = routes.answer(handler, Asked(self.server.home, query, body))
            self._send_json(status, document)

    def _send_page(self, query: Mapping[str, str]) -> None:
        if "token" in query:
            self._enter(query["token"])
        elif self._has_session():
            self._send(HTTPStatus.OK, asset(("web", "static", "index.html")), "text/html; charset=utf-8")
        else:
            self._send(HTTPStatus.UNAUTHORIZED, asset(("web", "static", "enter.html")), "text/html; charset=utf-8")

    def _enter(self, token: str) -> None:
        session = self.server.doorkeeper.enter(token)
        if session is None and not self._has_session():
            self._send(HTTPStatus.FORBIDDEN, asset(("web", "static", "enter.html")), "text/html; charset=utf-8")
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        # A fragment stays in the browser: no server sees it, and the page takes it out of the address.
        self.send_header("Location", "/" if session is None else f"/#{KEY}={session.key}")
        if session is not None:
            self.send_header("Set-Cookie", f"{self.server.cookie}={session.cookie}; HttpOnly; SameSite=Strict; Path=/")
        self._end(b"", "text/plain; charset=utf-8")

    def _url(self) -> SplitResult | None:
        """What is asked for; None when it was refused."""
        try:
            return urlsplit(self.path)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "That is no address.")
            return None

    def _has_session(self, key: str | None = None) -> bool:
        found = cookie_in(self.headers.get_all("Cookie") or [], self.server.cookie)
        return found is not None and self.server.doorkeeper.knows(found, key)

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
            self.close_connection = True
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "The request does not say how long it is.")
        elif len(length) > 9 or int(length) > MOST_BODY:
            self.close_connection = True
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is too much for one request.")
        else:
            return self.rfile.read(int(length))
        return None

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        # Whatever else was sent is not read, so nothing may follow it on this connection.
        self.close_connection = True
        self._send_json(status, {"detail": sentence})

    def _send_json(self, status: int, document: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self._end(body, kind)

    def _end(self, body: bytes, kind: str) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the library refuses gets our headers, and no page with what was asked in it."""
        self.close_connection = True
        self._send_json(code, {"detail": f"{HTTPStatus(code).phrase}."})

    def version_string(self) -> str:
        """Nothing about versions."""
        return "hermes-pgvector"


def cookie_in(headers: Iterable[str], name: str) -> str | None:
    """The value of a cookie; those that other programs of this machine have left may look like anything."""
    for each in ";".join(headers).split(";"):
        found, _, value = each.strip().partition("=")
        if found == name:
            return value
    return None


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
