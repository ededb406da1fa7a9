"""A browser, a filled memory behind a proxy, and the two places where its page is served."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from playwright.sync_api import Browser, Page, Request, sync_playwright
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.config.settings_file import update
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL, WORDLLAMA
from hermes_memory_pgvector.ops.setup import plugin_folder
from hermes_memory_pgvector.runtime.registry import close_all
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from testing import made_up_fleet
from testing.command import with_password
from testing.hermes_servers import free_port
from testing.postgres import new_database
from testing.proxy import Proxy
from testing.waiting import wait_until

PROGRAMS = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
NOT_OURS = "/api/auth/me"
"""The host asks it on every load and gets 401, which the browser notes as an error."""


@dataclass(slots=True)
class Fleet:
    """A home with two weeks of a fleet, and the proxy before its database."""

    home: Path
    proxy: Proxy

    @property
    def environment(self) -> dict[str, str]:
        """The only variables a process of this home sees."""
        return {
            "PATH": f"{PROGRAMS}{os.pathsep}{os.defpath}",
            "HOME": str(self.home.parent),
            "HERMES_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "HERMES_DISABLE_LAZY_INSTALLS": "1",
        }


@dataclass(slots=True)
class Tab:
    """The page in one place, with everything the browser complained about."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, place: str = "") -> Page:
        """Go to a view and wait until it is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#{place}")
        self.page.wait_for_selector(".pgv-strip")
        return self.page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's browser."""
    path = shutil.which("chromium")
    if path is None or not AXE.exists():
        pytest.fail("the browser's tests need chromium and axe-core; install them: tests/browser/install.sh")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, postgres_server: ConnectionInfo) -> Iterator[Fleet]:
    """Filled once; the tests change different parts of it."""
    folder = tmp_path_factory.mktemp("fleet")
    home = folder / "hermes"
    home.mkdir()
    with new_database(postgres_server) as database:
        model = NewModel(LOCAL_MODEL, WORDLLAMA.dim or 0)
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=model)
        runtime, _ = with_password(database.runtime_dsn)
        parts = conninfo_to_dict(runtime)
        upstream = Path(str(parts["host"])) / f".s.PGSQL.{parts['port']}"
        with Proxy(upstream) as proxy:
            dsn = make_conninfo(runtime, host="127.0.0.1", port=str(proxy.port))
            config = {"memory": {"provider": "pgvector", "pgvector": {"dsn": dsn}}}
            (home / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
            made_up_fleet.fill(home)
            close_all(Deadline.after(10))
            plugin_folder.install(home)
            update(home, ("plugins",), {"enabled": ["pgvector"]})
            yield Fleet(home, proxy)


@pytest.fixture(scope="module")
def dashboard(fleet: Fleet) -> Iterator[str]:
    """The address of the tab in the real `hermes dashboard`."""
    port = free_port()
    command: list[str | Path] = [
        PROGRAMS / "hermes",
        "dashboard",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-open",
        "--skip-build",
    ]
    with _served(command, fleet, r"HERMES_DASHBOARD_READY port=\d+"):
        yield f"http://127.0.0.1:{port}/memory"


@pytest.fixture(scope="module")
def standalone(fleet: Fleet) -> Iterator[str]:
    """The address that `hermes-pgvector ui` prints, with its token."""
    with _served([PROGRAMS / "hermes-pgvector", "ui"], fleet, r"http://127\.0\.0\.1:\d+/#k=\S+") as said:
        yield said


@pytest.fixture(params=["dashboard", "ui"])
def tab(request: pytest.FixtureRequest, chromium: Browser, fleet: Fleet) -> Iterator[Tab]:
    """The page in the host's dashboard and on its own; whatever happens, nobody complains and nothing leaves."""
    fleet.proxy.mode = "pass"
    address, _, key = request.getfixturevalue("dashboard" if request.param == "dashboard" else "standalone").partition(
        "#"
    )
    context = chromium.new_context()
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    made = Tab(page, address)
    if key:
        page.goto(f"{address}#{key}")
        page.wait_for_selector(".pgv-strip")
        assert page.url == address
    origin = urlsplit(address).netloc

    def note(asked: Request) -> None:
        made.requests.append(asked.url)

    page.on("request", note)
    page.on("pageerror", lambda error: made.complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: made.complaints.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda said: (
            made.complaints.append(f"console: {said.text} {said.location['url']}")
            if said.type in ("error", "warning") and NOT_OURS not in said.location["url"]
            else None
        ),
    )
    yield made
    context.close()
    foreign = [url for url in made.requests if urlsplit(url).netloc not in (origin, "") and not url.startswith("data:")]
    assert foreign == []
    assert made.complaints == []


@contextmanager
def _served(command: list[str | Path], fleet: Fleet, ready: str) -> Iterator[str]:
    said = fleet.home.parent / f"{Path(command[0]).name}.out"
    with said.open("wb") as stream:
        process = subprocess.Popen(
            command, env=fleet.environment, cwd=fleet.home.parent, stdin=subprocess.DEVNULL, stdout=stream,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        found: list[str] = []

        def is_ready() -> bool:
            assert process.poll() is None, said.read_text(encoding="utf-8")
            found.extend(re.findall(ready, said.read_text(encoding="utf-8")))
            return bool(found)

        wait_until(is_ready, seconds=60, every=0.1)
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
