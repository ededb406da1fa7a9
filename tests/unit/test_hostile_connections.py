"""Connections that say little and slowly: whoever has a token is served all the same."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from unit.test_page_server import Browser

from hermes_memory_pgvector.web.server import PageServer

CONNECTIONS = 64
UNBUILT = pytest.mark.xfail(strict=True, reason="the page waits for strangers: a deadline per request is not built")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    made = PageServer(tmp_path, "127.0.0.1", 0)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"", id="silent", marks=UNBUILT),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
            id="in the middle of a header",
            marks=[UNBUILT, pytest.mark.large],
        ),
        pytest.param(b"POST /api/forget HTTP/1.1\r\nContent-Length: 100\r\n\r\n{", id="in the middle of a body"),
    ],
)
def test_slow_strangers_do_not_shut_out_whoever_has_the_token(server: PageServer, begun: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=10))
            stranger.sendall(begun)
        browser = Browser(server)
        assert browser.enter().status == 303
        assert browser.ask("GET", "/").status == 200
        assert browser.read().status == 200
