"""No page leads nowhere, and none is out of reach."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.pages import DOCS, ROOT, Page, page, pages

MOST_README_LINES = 150
PACKAGE = ROOT / "src" / "hermes_memory_pgvector"
_FILE = re.compile(r"[a-z_]+(?:/[a-z_]+)*\.py|(?:[a-z_]+/)+")


@pytest.mark.parametrize("one", pages(), ids=lambda one: one.name)
def test_every_relative_link_leads_to_a_file_and_a_heading(one: Page) -> None:
    for target in one.links():
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (one.path.parent / file).resolve() if file else one.path
        assert path.exists(), f"{one.name} links to {target}"
        if anchor:
            assert anchor in page(str(path.relative_to(ROOT))).anchors(), f"{one.name} links to {target}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached or path.suffix != ".md" or not path.exists():
            continue
        reached.add(path)
        links = (target.partition("#")[0] for target in page(str(path.relative_to(ROOT))).links())
        waiting += [(path.parent / file).resolve() for file in links if file and "://" not in file]
    assert set(DOCS.rglob("*.md")) <= reached


def test_the_readme_is_short() -> None:
    assert len(page("README.md").text.splitlines()) <= MOST_README_LINES


def test_every_file_and_folder_the_walk_names_exists() -> None:
    named = [code for code in page("ARCHITECTURE.md").codes() if _FILE.fullmatch(code)]
    assert len(named) > 40
    below = (PACKAGE, PACKAGE / "sql", ROOT)
    assert [name for name in named if not any((top / name).exists() for top in below)] == []


def test_the_walk_passes_every_room() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms - set(page("ARCHITECTURE.md").codes()) == set()
