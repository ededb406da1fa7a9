"""Samples of output, and what guides may show."""

from __future__ import annotations

import re

import pytest
from docs.pages import Page, page, written
from psycopg.conninfo import conninfo_to_dict

from hermes_memory_pgvector.terminal.sink import NARROWEST

SAMPLE = re.compile(r"<!-- sample: ([\w-]+) -->\n```\n(.*?)\n```\n", re.DOTALL)
WIDTH = 80


def test_the_first_screen_of_the_readme_shows_a_recall() -> None:
    first = "\n".join(page("README.md").text.splitlines()[:20])
    name, shown = SAMPLE.findall(first)[0]
    assert name == "recall"
    assert re.search(r"^ +m\d+  MEMORY.md  workshop  \d{4}-\d\d-\d\d +\d\.\d\d$", shown, re.MULTILINE)
    assert re.search(r"^ · \d+ hits in workshop, \d+", shown, re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "docs/quickstart.md"])
def test_samples_fit_a_terminal(name: str) -> None:
    samples = SAMPLE.findall(page(name).text)
    assert samples
    assert NARROWEST < WIDTH
    for _, shown in samples:
        assert [line for line in shown.splitlines() if len(line) > WIDTH] == []
        assert "\x1b" not in shown


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_no_page_shows_a_password_on_a_command_line(one: Page) -> None:
    for dsn in re.findall(r"postgres(?:ql)?://[^\s'\"`]+", one.text):
        assert not conninfo_to_dict(dsn.partition("?")[0]).get("password"), f"{one.name}: {dsn}"
    for block in one.blocks("sh"):
        assert not re.search(r"\bpassword=(?!\$)", block), one.name


@pytest.mark.parametrize("word", ["theme", "journal", "mirror"])
def test_the_readme_explains_its_words(word: str) -> None:
    assert f"*{word}*" in page("README.md").text
