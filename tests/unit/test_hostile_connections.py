"""Connections that say little and slowly: whoever has a token is served all the same."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from unit.test_page_server import NO_MEMORY, Browser

from hermes_memory_pgvector.web import server as page_server
from hermes_memory_pgvector.web.server import PageServer

CONNECTIONS = 64
WELL_AFTER = 10.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    made = PageServer(tmp_path, "127.0.0.1", 0)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


SILENT = b""
HALF_A_HEADER = b"GET / HTTP/1.1\r\nHost: {host}\r\nX: "
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 100\r\n\r\n{"


@pytest.mark.parametrize("begun", [SILENT, HALF_A_HEADER, HALF_A_BODY], ids=["silent", "header", "body"])
def test_slow_strangers_do_not_shut_out_whoever_has_the_token(server: PageServer, begun: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            _connect(stack, server, begun)
        browser = Browser(server)
        assert browser.ask("GET", "/").status == 200
        assert browser.read().status == NO_MEMORY


def test_a_request_has_a_deadline_however_it_spreads_its_bytes(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "REQUEST_SECONDS", 0.3)
    with ExitStack() as stack:
        stranger = _connect(stack, server, HALF_A_HEADER)
        stranger.settimeout(0.05)
        began = time.monotonic()
        while time.monotonic() - began < WELL_AFTER:
            try:
                stranger.sendall(b"x")
                if stranger.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        pytest.fail("still waiting for the request")


def _connect(stack: ExitStack, server: PageServer, begun: bytes) -> socket.socket:
    stranger = stack.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=10))
    stranger.sendall(begun.replace(b"{host}", f"127.0.0.1:{server.server_port}".encode()))
    return stranger
