"""Who may reach the memory page on its own, and who may not. No memory is behind it: every answer is a refusal."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.web.server import API, KEY, OWN_HEADER, POLICY, PageServer

TOKEN = "a-token-from-a-file-that-is-long-enough"
NO_MEMORY = 503
"""What is answered to whoever may ask."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str


class Browser:
    """Talks to a server as our page does in a browser."""

    def __init__(self, server: PageServer, token: str | None = None) -> None:
        self.server = server
        self.token = server.token if token is None else token

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)) as connection:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())

    def say(self, text: str) -> str:
        """Send what no library would, and read until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.server.server_port), timeout=10) as connection:
            connection.sendall(text.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def read(self, name: str = "status", **headers: str) -> Answer:
        return self.ask("GET", API + name, **{OWN_HEADER: self.token, **headers})

    def change(self, name: str = "forget", body: str = "{}", **headers: str) -> Answer:
        return self.ask("POST", API + name, body, **{OWN_HEADER: self.token, "Origin": self.server.origin, **headers})


@contextmanager
def serving(home: Path, token: str = "") -> Iterator[PageServer]:
    made = PageServer(home, "127.0.0.1", 0, token)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def browser(server: PageServer) -> Browser:
    return Browser(server)


def test_the_address_opens_the_page_as_often_as_it_is_opened(browser: Browser) -> None:
    assert browser.server.url == f"{browser.server.origin}/#{KEY}={browser.token}"
    assert len(browser.token) > 40
    for _ in range(2):
        assert browser.ask("GET", "/").status == 200
        answer = browser.read()
        assert (answer.status, json.loads(answer.body)["set_up"]) == (NO_MEMORY, False)
        assert "hermes-pgvector up" in answer.body


def test_nothing_is_answered_without_the_token(browser: Browser) -> None:
    for token in ("", "1", "none", browser.token[:-1], browser.token + "x", "\xe9", browser.token.upper()):
        stranger = Browser(browser.server, token)
        assert stranger.read().status == 401
        assert stranger.change().status == 401
    assert browser.ask("GET", API + "status?token=" + browser.token).status == 403
    assert browser.ask("GET", API + "status", Cookie=f"{KEY}={browser.token}").status == 403


def test_another_sites_page_gets_nothing(browser: Browser) -> None:
    assert browser.read().status == NO_MEMORY
    assert browser.ask("GET", API + "status").status == 403
    for site in ("cross-site", "same-site", "none"):
        assert browser.read(Sec_Fetch_Site=site).status == 403
        assert browser.change(Sec_Fetch_Site=site).status == 403
    for origin in ("http://evil.example", "null", "", "http://127.0.0.1:1", browser.server.origin + ".evil.example"):
        assert browser.change(Origin=origin).status == 403
    assert browser.ask("OPTIONS", API + "forget", Origin="http://evil.example").status == 501


def test_a_name_that_leads_here_by_a_trick_is_refused(browser: Browser) -> None:
    port = browser.server.server_port
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1", ""):
        assert browser.ask("GET", "/", Host=host).status == 421
        assert browser.read(Host=host).status == 421
    assert browser.read(Host=f"LOCALHOST:{port}").status == NO_MEMORY


def test_changes_need_a_document_of_bounded_size(browser: Browser) -> None:
    assert browser.change(body="[]").status == 400
    assert browser.change(body="{").status == 400
    assert browser.change(body="[" * 100_000).status == 400
    assert browser.change(Content_Length=str(10**9)).status == 413
    assert browser.change(Content_Length="-1").status == 411
    assert browser.change(Transfer_Encoding="chunked").status == 411
    assert browser.change().status == NO_MEMORY
    assert browser.ask("PUT", API + "forget", "{}").status == 501


def test_what_makes_no_sense_is_refused_with_the_same_headers(browser: Browser) -> None:
    for method, path in (("GET", "http://["), ("TRACE", "/"), ("GET", "/" + "x" * 70_000)):
        said = browser.say(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{browser.server.server_port}\r\n\r\n")
        assert said.split()[1] in ("400", "414", "501")
        assert f"Content-Security-Policy: {POLICY}" in said
        assert "xxx" not in said


def test_what_is_sent_along_with_a_question_is_not_the_next_one(browser: Browser) -> None:
    host = f"HTTP/1.1\r\nHost: 127.0.0.1:{browser.server.server_port}\r\n"
    smuggled = f"GET {API}status {host}\r\n"
    said = browser.say(f"GET / {host}Content-Length: {len(smuggled)}\r\n\r\n{smuggled}")
    assert said.count("HTTP/1.0 ") == 1


def test_files_beside_the_page_are_not_served(browser: Browser) -> None:
    for path in (
        "/assets/../server.py",
        "/assets/%2e%2e/server.py",
        "/etc/passwd",
        "//etc/passwd",
        "/assets/",
        "/api/",
    ):
        assert browser.ask("GET", path).status == 404
    for path in ("index.js", "style.css", "shell.js", "shell.css", "icon.svg"):
        assert browser.ask("GET", f"/assets/{path}").status == 200


def test_every_answer_closes_the_page_to_the_world(browser: Browser) -> None:
    for answer in (browser.ask("GET", "/"), browser.read(), browser.ask("GET", "/assets/index.js"), browser.read("x")):
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert "Set-Cookie" not in answer.headers
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY


def test_the_page_itself_names_no_other_place() -> None:
    from hermes_memory_pgvector.web.server import ASSETS, asset

    for parts, _ in ASSETS.values():
        text = asset(parts).decode()
        known = ("http://www.w3.org/", "https://www.w3.org/", "http://127.0.0.1")
        assert [part[:40] for part in text.split("http")[1:] if not f"http{part}".startswith((*known, "http:\\/\\/"))
                and part.startswith(("://", "s://"))] == []  # fmt: skip


def test_others_need_the_token_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--token-file"):
        PageServer(tmp_path, "0.0.0.0", 0)
    with pytest.raises(ConfigError, match="24 or more"):
        PageServer(tmp_path, "127.0.0.1", 0, "short")
    with serving(tmp_path, TOKEN) as server:
        assert TOKEN not in server.url
        assert Browser(server, "wrong").read().status == 401
        assert Browser(server, TOKEN).read().status == NO_MEMORY
