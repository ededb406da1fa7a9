"""Settings as the pages speak of them: they exist, take the value shown, and have the default stated."""

from __future__ import annotations

import re
from functools import cache

import pytest
import yaml
from docs.pages import ROOT, Page, written

from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS

SNAKE = re.compile(r"[a-z]+(?:_[a-z]+)+")
ASSIGNED = re.compile(r"(?P<name>[a-z_]+): (?P<value>.+)")
STATED = re.compile(r"`(?P<name>[a-z_]+)`,? \(?(?P<value>\d+(?:\.\d+)?)(?: s| MB|\))")
# What Postgres, the host, the published package, other memories and benchmarks call their own.
FOREIGN = {
    "pg_dump", "pg_restore", "session_search", "memory_agents", "memory_maintenance_log", "v_agent_memory", "user_pref",
    "answer_session_ids",
}  # fmt: skip
SOURCES = ("src", "testing")


@cache
def known_words() -> frozenset[str]:
    """Every word of the sources: settings, tables, columns, hooks, tools."""
    found: set[str] = set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".sql", ".yaml"):
                found.update(re.findall(r"[a-z]+(?:_[a-z]+)+", path.read_text(encoding="utf-8")))
    return frozenset(found | {name.removeprefix("hermes_pgvector_") for name in found})


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_every_name_in_backticks_exists(one: Page) -> None:
    # Prometheus ends the names of counters with a word of its own.
    names = {name for code in one.codes() if SNAKE.fullmatch(name := code.removesuffix("_total"))}
    assert names - known_words() - FOREIGN == set()


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_every_value_shown_is_one_the_setting_takes(one: Page) -> None:
    for code in one.codes():
        found = ASSIGNED.fullmatch(code)
        if found is None or "_" not in found["name"] or found["name"] in FOREIGN:
            continue
        assert found["name"] in DECLARATIONS, f"{one.name}: `{code}`"
        DECLARATIONS[found["name"]].parse(yaml.safe_load(found["value"]))


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_every_default_stated_is_the_default(one: Page) -> None:
    for found in STATED.finditer(one.prose):
        if found["name"] in DEFAULTS:
            assert float(found["value"]) == float(DEFAULTS[found["name"]]), f"{one.name}: {found[0]}"


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_every_configuration_shown_is_valid(one: Page) -> None:
    for block in one.blocks("yaml"):
        # Other programs have their configuration, too.
        ours = yaml.safe_load(block).get("memory") or {}
        for name, value in ours.get("pgvector", {}).items():
            DECLARATIONS[name].parse(value)


def test_every_setting_has_a_sentence_outside_the_reference() -> None:
    told = " ".join(one.text for one in written())
    assert [name for name in DECLARATIONS if not re.search(rf"\b{name}\b", told)] == []


def test_there_are_at_most_forty_settings() -> None:
    assert len(DECLARATIONS) <= 40
