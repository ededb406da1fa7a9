"""Commands in sentences are those that the reader can run: by the name this one was started by, for the same home."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from hermes_memory_pgvector import command_line
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal import render


@pytest.fixture(autouse=True)
def _called_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # `start.py test` says that it is start.py.
    monkeypatch.delenv("HERMES_PGVECTOR_COMMAND", raising=False)


def completed(text: str, *arguments: str, prog: str = "hermes-pgvector") -> str:
    """The sentence as a command that was called like this prints it."""
    parser = tree.Parser(prog=prog)
    command_line.configure(parser)
    args: argparse.Namespace = parser.parse_args(arguments)
    with render.spoken_to(*command_line.voice_of(args)):
        return render.addressed(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("run: hermes-pgvector migrate", "run: hermes-pgvector migrate --hermes-home /srv/h"),
        ("hermes-pgvector forget m3", "hermes-pgvector forget --hermes-home /srv/h m3"),
        ("hermes-pgvector config set dsn DSN", "hermes-pgvector config --hermes-home /srv/h set dsn DSN"),
        ("see: hermes-pgvector list rejected", "see: hermes-pgvector list --hermes-home /srv/h rejected"),
        (
            "hermes-pgvector index drop --theme a; hermes-pgvector index create --theme b",
            "hermes-pgvector index --hermes-home /srv/h drop --theme a; "
            "hermes-pgvector index --hermes-home /srv/h create --theme b",
        ),
        ("hermes config set memory.provider pgvector", "HERMES_HOME=/srv/h hermes config set memory.provider pgvector"),
        ("hermes-pgvector up --hermes-home /other", "hermes-pgvector up --hermes-home /other"),
        ("another `hermes-pgvector index` is running", "another `hermes-pgvector index` is running"),
        ("see: hermes-pgvector --help", "see: hermes-pgvector --help"),
        ("hermes-pgvector: there is no theme x", "hermes-pgvector: there is no theme x"),
        ("/opt/bin/hermes-pgvector status", "/opt/bin/hermes-pgvector status"),
    ],
)
def test_a_home_that_was_given_is_named_where_the_command_takes_it(text: str, told: str) -> None:
    assert completed(text, "status", "--hermes-home", "/srv/h") == told


def test_a_home_is_quoted_and_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    told = completed("hermes-pgvector up", "status", "--hermes-home", "my home")
    assert told == f"hermes-pgvector up --hermes-home '{tmp_path}/my home'"


def test_every_command_takes_the_home_where_it_is_put() -> None:
    parser = tree.Parser(prog="hermes-pgvector")
    command_line.configure(parser)
    for command in command_line.EVERY:
        for line, _ in command.examples:
            told = completed(f"hermes-pgvector {line}", "status", "--hermes-home", "/srv/h")
            words = told.removeprefix("hermes-pgvector ").split()
            assert words[1:3] == ["--hermes-home", "/srv/h"], told


def test_without_a_home_the_sentence_stays_as_it_is() -> None:
    assert completed("run: hermes-pgvector migrate", "status") == "run: hermes-pgvector migrate"


def test_a_clone_says_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_PGVECTOR_COMMAND", "python3 start.py")
    program = command_line.program().prog
    assert completed("run: hermes-pgvector migrate", "status", prog=program) == "run: python3 start.py migrate"


@pytest.mark.parametrize(
    ("home", "arguments", "told"),
    [
        (".hermes", (), "hermes pgvector migrate"),
        (".hermes/profiles/coder", (), "hermes -p coder pgvector migrate"),
        (".hermes/profiles/coder", ("--hermes-home", "/srv/h"), "hermes pgvector migrate --hermes-home /srv/h"),
    ],
)
def test_within_the_host_it_is_the_hosts_command_for_the_same_profile(
    home: str, arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / home).mkdir(parents=True)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / home))
    assert completed("run: hermes-pgvector migrate", "status", *arguments, prog="hermes pgvector") == f"run: {told}"
