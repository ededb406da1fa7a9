"""Takes the pictures of the memory page that the documentation shows: `make pictures`.

A made-up fleet in a home of its own, and one whose database is away, in Debian's chromium. Times are those of the run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.runtime.registry import close_all
from testing import made_up_fleet
from testing.waiting import wait_until

FOLDER = Path(__file__).resolve().parent / "images"
PROGRAM = Path(sys.executable).parent / "hermes-pgvector"
AWAY = "postgresql://hermes@127.0.0.1:9/hermes"
"""Nobody listens there."""
WIDTH = 1280


def main() -> int:
    """Take them all."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        home = Path(name)
        _run(home, "up", "--yes")
        made_up_fleet.fill(home)
        close_all(Deadline.after(10))
        with _opened(browser, home) as page:
            for scheme in ("dark", "light"):
                _take(page, f"home-{scheme}", "", ".pgv-themes td", height=1000)
            page.goto(f"{page.url.partition('#')[0]}#view=search&q=how+much+money+may+we+spend+on+advertising")
            page.get_by_role("button", name="Why this hit").first.click()
            _take(page, "why-light", None, ".pgv-why p", height=700)
            page.goto(f"{page.url.partition('#')[0]}#view=theme&theme=support")
            for text in ("The price list", "Refunds above"):
                page.locator(".pgv-row", has_text=text).get_by_role("checkbox").first.check()
            page.get_by_role("toolbar").get_by_role("button", name="Hide…").click()
            _take(page, "hide-light", None, ".pgv-samples", height=800)
        _run(home, "up", "--stop")
        settings = {"memory": {"pgvector": {"dsn": AWAY}}}
        (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        with _opened(browser, home) as page:
            _take(page, "broken-light", "", ".pgv-checks", height=420)
        browser.close()
    return 0


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home), "LANG": "C.UTF-8"}


def _run(home: Path, *command: str) -> None:
    subprocess.run([PROGRAM, *command], env=_environment(home), cwd=home, check=True, stdin=subprocess.DEVNULL)


def _take(page: Page, name: str, place: str | None, shows: str, *, height: int) -> None:
    """One picture, of a place or of what is open already."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.emulate_media(color_scheme="dark" if name.endswith("-dark") else "light")
    if place is not None:
        page.goto(f"{page.url.partition('#')[0]}#{place}")
    page.wait_for_selector(shows)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"page-{name}.png")
    print(f"took {name}")


@contextmanager
def _opened(browser: Browser, home: Path) -> Iterator[Page]:
    """The page of a home."""
    said = home / "said.txt"
    with said.open("wb") as stream:
        served = subprocess.Popen([PROGRAM, "ui"], env=_environment(home), cwd=home, stdout=stream, stderr=stream)
    try:
        found: list[str] = []

        def is_ready() -> bool:
            found.extend(re.findall(r"http://127\.0\.0\.1:\d+/#k=\S+", said.read_text(encoding="utf-8")))
            return bool(found) or served.poll() is not None

        wait_until(is_ready, seconds=60, every=0.2)
        context = browser.new_context(locale="en-GB")
        page = context.new_page()
        page.goto(found[0])
        page.wait_for_selector(".pgv-strip, .pgv-trouble")
        yield page
        context.close()
    finally:
        served.send_signal(signal.SIGTERM)
        served.wait(60)


if __name__ == "__main__":
    raise SystemExit(main())
