"""A home of which nothing is known: one command, and hermes has a memory with a Postgres and a model of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector import carried
from testing.hermes_home import BareHome
from testing.llm_server import Say, ScriptedLLM

QUESTION = "Which flowers grow on the northern slope of the vineyard hill in early April?"
ANSWER = "Wild tulips and grape hyacinths grow on the northern slope of the vineyard hill."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLLM) -> Iterator[BareHome]:
    """A home that knows its language model and nothing else, after `hermes-pgvector up`."""
    bare = BareHome.create(tmp_path_factory.mktemp("bare"), llm, "# kept\nmemory:\n  nudge_interval: 7\n")
    try:
        done = bare.command("hermes-pgvector", "up")
        assert done.code == 0, done
        yield bare
    finally:
        stopped = bare.command("hermes-pgvector", "up", "--stop")
    assert stopped.code == 0, stopped


@pytest.fixture(scope="module")
def chatted(home: BareHome, llm: ScriptedLLM) -> BareHome:
    """The same home after a first chat."""
    llm.when(QUESTION, Say(ANSWER))
    assert home.ask(QUESTION) == ANSWER
    return home


def test_up_activates_the_provider_and_keeps_the_rest_of_the_configuration(home: BareHome) -> None:
    text = home.config_file.read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    assert "# kept" in text
    assert document["memory"]["provider"] == "pgvector"
    assert document["memory"]["nudge_interval"] == 7
    assert "dsn" not in document["memory"].get("pgvector", {})


def test_up_can_be_repeated(home: BareHome) -> None:
    before = home.config_file.read_text(encoding="utf-8")
    done = home.command("hermes-pgvector", "up")
    assert done.code == 0, done
    assert home.config_file.read_text(encoding="utf-8") == before


def test_hermes_calls_the_memory_available(home: BareHome) -> None:
    assert "available ✓" in home.run("memory", "status").out


def test_what_was_said_is_found_by_meaning_in_the_next_chat(chatted: BareHome, llm: ScriptedLLM) -> None:
    question = "Which blossoms could I see in April on the slope of our vineyard hill?"
    chatted.ask(question)
    (request,) = llm.about(question)
    assert ANSWER in request.recalled


def test_the_command_inside_hermes_recalls_it_too(chatted: BareHome) -> None:
    done = chatted.run("pgvector", "recall", "tulips on the vineyard hill", "--json")
    assert done.code == 0, done
    assert ANSWER in json.dumps(json.loads(done.out))


def test_backup_is_complete_while_the_database_runs(chatted: BareHome) -> None:
    target = chatted.user / "backup.zip"
    done = chatted.run("backup", "-o", str(target))
    assert "Backup complete" in done.out, done.out
    assert target.is_file()


def test_nobody_else_can_read_what_is_stored(chatted: BareHome) -> None:
    folder = chatted.path / "pgvector"
    libraries = carried.folders(chatted.path)
    stored = [path for path in (folder, *folder.rglob("*")) if not any(map(path.is_relative_to, libraries))]
    assert [path for path in stored if _is_readable_by_others(path)] == []


def _is_readable_by_others(path: Path) -> bool:
    return not path.is_symlink() and bool(path.stat().st_mode & 0o004) and bool(path.parent.stat().st_mode & 0o001)
