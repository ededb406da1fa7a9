"""Who may reach the memory page on its own, and who may not. No memory is behind it: every answer is a refusal."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.web.server import API, KEY, POLICY, PageServer

TOKEN = "a-token-from-a-file-that-is-long-enough"
OWN = "X-Pgvector-Page"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    @property
    def cookie(self) -> str:
        return self.headers.get("Set-Cookie", "").partition(";")[0]

    @property
    def key(self) -> str:
        return self.headers.get("Location", "").partition(f"#{KEY}=")[2]


class Browser:
    """Talks to a server as a browser does, and keeps its cookie."""

    def __init__(self, server: PageServer) -> None:
        self.server = server
        self.cookie = self.key = ""

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        given = {"Cookie": self.cookie} if self.cookie else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)) as connection:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())

    def say(self, text: str) -> str:
        """Send what no library would, and read until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.server.server_port), timeout=10) as connection:
            connection.sendall(text.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def enter(self, token: str | None = None) -> Answer:
        answer = self.ask("GET", f"/?token={quote(token or self.server.doorkeeper.token)}")
        self.cookie, self.key = answer.cookie or self.cookie, answer.key or self.key
        return answer

    def read(self, name: str = "health", **headers: str) -> Answer:
        return self.ask("GET", API + name, **{OWN: self.key, **headers})

    def change(self, name: str = "forget", body: str = "{}", **headers: str) -> Answer:
        return self.ask("POST", API + name, body, **{OWN: self.key, "Origin": self.server.origin, **headers})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    made = PageServer(tmp_path, "127.0.0.1", 0)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def browser(server: PageServer) -> Browser:
    made = Browser(server)
    made.enter()
    return made


def test_the_address_works_once_and_opens_a_session(server: PageServer) -> None:
    first, second = Browser(server), Browser(server)
    entered = first.enter()
    assert (entered.status, entered.headers["Location"]) == (303, f"/#{KEY}={entered.key}")
    assert len(entered.key) > 40
    assert "HttpOnly; SameSite=Strict" in entered.headers["Set-Cookie"]
    assert first.ask("GET", "/").status == 200
    assert json.loads(first.read().body)["set_up"] is False
    assert (second.enter().status, second.cookie) == (403, "")
    assert second.ask("GET", "/").status == 401
    assert second.read().status == 401
    assert first.enter().status == 303


def test_nothing_is_answered_without_a_session(server: PageServer) -> None:
    stranger = Browser(server)
    Browser(server).enter()
    for cookie in (
        "", f"{server.cookie}=", f"{server.cookie}=guess", "pgv_session_1=x", 'a="', f'{server.cookie}="\\351"',
        f'{server.cookie}="\xe9"',
    ):  # fmt: skip
        stranger.cookie = cookie
        assert stranger.read().status == 401
        assert stranger.change().status == 401


def test_a_cookie_that_another_port_has_seen_opens_nothing(browser: Browser) -> None:
    thief = Browser(browser.server)
    thief.cookie = browser.cookie
    for key in ("", "1", "none", browser.key[:-1], "\xe9", browser.cookie):
        thief.key = key
        assert thief.read().status == 401
        assert thief.change().status == 401
    thief.cookie, thief.key = "", browser.key
    assert thief.read().status == 401
    assert browser.read().status == 200


def test_cookies_of_other_programs_do_not_end_the_session(browser: Browser) -> None:
    own = browser.cookie
    for other in (
        'state={"a": "b", "c": 1}',
        "a[b]=1",
        "bare",
        'theme="dark',
        "who=\xe9",
        "secure",
        "path=/",
        "=x",
        "",
    ):
        for cookies in (f"{other}; {own}", f"{own}; {other}", f"{other};{own};{other}"):
            browser.cookie = cookies
            assert browser.read().status == 200, cookies
            assert browser.ask("GET", "/").status == 200


def test_another_sites_page_gets_nothing(browser: Browser) -> None:
    assert browser.read().status == 200
    assert browser.ask("GET", API + "health").status == 403
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
    assert browser.read(Host=f"LOCALHOST:{port}").status == 200


def test_changes_need_a_document_of_bounded_size(browser: Browser) -> None:
    assert browser.change(body="[]").status == 400
    assert browser.change(body="{").status == 400
    assert browser.change(Content_Length=str(10**9)).status == 413
    assert browser.change(Content_Length="-1").status == 411
    assert browser.change(Transfer_Encoding="chunked").status == 411
    assert browser.change("no-such").status == 404
    assert browser.change().status == 503
    assert browser.ask("PUT", API + "forget", "{}").status == 501


def test_what_makes_no_sense_is_refused_with_the_same_headers(browser: Browser) -> None:
    assert browser.change(body="[" * 100_000).status == 400
    for text in ('"\\u0000"', '"a\\ud800"'):
        refused = browser.change(body=f'{{"theme": {text}, "name": "m1"}}')
        assert refused.status in (400, 503), refused
    for method, path in (("GET", "http://["), ("TRACE", "/"), ("GET", "/" + "x" * 70_000)):
        said = browser.say(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{browser.server.server_port}\r\n\r\n")
        assert said.split()[1] in ("400", "414", "501")
        assert f"Content-Security-Policy: {POLICY}" in said
        assert "xxx" not in said


def test_what_is_sent_along_with_a_question_is_not_the_next_one(browser: Browser) -> None:
    host = f"HTTP/1.1\r\nHost: 127.0.0.1:{browser.server.server_port}\r\n"
    smuggled = f"GET {API}health {host}\r\n"
    said = browser.say(f"GET / {host}Content-Length: {len(smuggled)}\r\n\r\n{smuggled}")
    assert said.count("HTTP/1.1") == 1


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
    for answer in (browser.ask("GET", "/"), browser.read(), browser.ask("GET", "/assets/index.js"), browser.enter("x")):
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers
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
    server = PageServer(tmp_path, "127.0.0.1", 0, TOKEN)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        assert TOKEN not in server.url
        for _ in range(2):
            browser = Browser(server)
            form = {"Origin": server.origin, "Content_Type": "application/x-www-form-urlencoded"}
            assert browser.ask("POST", "/", "token=wrong", **form).status == 403
            entered = browser.ask("POST", "/", f"token={TOKEN}", **form)
            browser.cookie, browser.key = entered.cookie, entered.key
            assert browser.read().status == 200
        assert browser.ask("POST", "/", f"token={TOKEN}", Origin="http://evil.example").status == 403
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
