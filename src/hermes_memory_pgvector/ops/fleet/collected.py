"""The numbers for whoever collects them by HTTP."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.terminal.fields import column

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_SECONDS: Final = 10.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, text: Callable[[], str], host: str, port: int) -> None:
        self.text = text
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Collected)


class _Collected(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        """All numbers, looked up anew."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        assert isinstance(self.server, _Server)
        data = self.server.text().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Whoever collects asks every few seconds."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """Where the numbers are; they are there until somebody ends the process."""

    url: str = column("address")
    advice: str = column("", is_aside=True)


def serve(text: Callable[[], str], host: str, port: int) -> Iterator[Exposed]:
    """Serve a text under /metrics."""
    try:
        server = _Server(text, host, port)
    except OSError as error:
        raise ConfigError(f"{host}:{port} cannot be served: {error.strerror or type(error).__name__}") from None
    shown = f"[{host}]" if ":" in host else host
    with server:
        yield Exposed(f"http://{shown}:{server.server_port}/metrics", "for whoever reaches it; Ctrl-C ends it")
        server.serve_forever()
