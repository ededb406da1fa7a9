"""The command tree: quick, helpful, and clear about mistakes."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_pgvector import __version__, command, command_line
from hermes_memory_pgvector.errors import ConfigError, DatabaseUnavailable, EmbeddingUnavailable, ServerError
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal.operation import Operation
from testing.command import PROGRAM, Commands

PROMISED = (
    "up", "try", "migrate", "doctor", "status", "recall", "import", "export", "reembed", "config", "journal",
    "list", "show", "why", "undo", "edit", "mute",
)  # fmt: skip
LIGHT = """
import sys
from hermes_memory_pgvector.command_line import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = ("psycopg", "numpy", "wordllama", "asyncio", "http.client", "hermes_memory_pgvector.runtime.engine")
print([name for name in heavy if name in sys.modules])
"""


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


def test_the_first_page_of_help_fits_a_screen_and_lists_ten_commands(commands: Commands) -> None:
    done = commands.call("--help")
    assert done.code == 0
    lines = done.out.splitlines()
    known = [each.name for each in command_line.EVERY]
    first = [name for name in command_line.FIRST if name in known]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line.startswith("    ")] == first


def test_help_all_names_every_command(commands: Commands) -> None:
    done = commands.call("help", "--all")
    assert done.code == 0
    for name in PROMISED:
        assert f"    {name}" in done.out
    assert commands.call("help", "recall").out == commands.call("recall", "--help").out


@pytest.mark.parametrize(
    "name",
    ["stats", "cleanup", "prune", "remap", "backfill", "install", "completion", "history", "scan", "index"],
)
def test_names_of_former_days_work(name: str, commands: Commands) -> None:
    done = commands.call(name, "--help")
    assert done.code == 0
    assert done.out.startswith("usage: ")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("search", "recall"), ("rm", "forget"), ("version", "--version"), ("stop", "up --stop"), ("tour", "try"),
        ("grant", "up --own-database"),
    ],
)  # fmt: skip
def test_words_of_other_programs_are_answered_with_ours(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main([word])
    assert ended.value.code == 2
    assert f"there is no command {word!r}; it is: hermes-pgvector {meant}\n" in capsys.readouterr().err


def test_global_options_stand_before_or_after_the_name(commands: Commands) -> None:
    nowhere = str(commands.folder / "nowhere")
    before, after = (
        commands.call("--hermes-home", nowhere, "--json", "status"),
        commands.call("status", "--json", "--hermes-home", nowhere),
    )
    assert before == after
    assert "nowhere" in before.json["error"]


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version(commands: Commands) -> None:
    assert commands.call("--version").out.strip() == f"hermes-memory-pgvector {__version__}"


def test_without_a_command_help_is_shown_and_it_is_a_usage_error(commands: Commands) -> None:
    done = commands.call()
    assert done.code == 2
    assert "recall" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "nonsense"), ("index", "create", "--all", "--theme", "x"), ("index", "create", "--memory", "0"),
        ("nonsense",), ("recall",), ("recall", "x", "--limit", "0"), ("recall", "x", "--limit", "many"),
        ("recall", "x", "--kind", "dreams"), ("backfill", "--limit", "-3"), ("config", "get"),
        ("config", "get", "nonsense"),
        ("config", "set", "prefetch_limit"), ("journal",), ("journal", "retry"), ("journal", "drop", "t3"),
        ("status", "--limit", "none"), ("up", "--nonsense"),
    ],
)  # fmt: skip
def test_wrong_usage_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    try:
        code: object = command_line.main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 2


def test_a_home_that_is_not_there_is_named(commands: Commands) -> None:
    done = commands.call("status", "--hermes-home", str(commands.folder / "nowhere"))
    assert done.code == 1
    assert "nowhere" in done.err


@pytest.mark.slow
def test_reading_commands_make_no_database(commands: Commands) -> None:
    commands.home.mkdir()
    for arguments in (("status",), ("recall", "anything"), ("doctor",)):
        done = commands.run(*arguments)
        assert done.code == 2, done
        assert "hermes-pgvector up" in done.everything
    assert not list(commands.home.glob("pgvector/postmaster*"))
    assert not list(commands.home.rglob("PG_VERSION"))


def test_stopping_what_does_not_run_is_no_error(commands: Commands) -> None:
    done = commands.call("up", "--stop", "--json")
    assert done.code == 0
    assert done.json == {"stopped": False}
    assert commands.call("stop").code == 2


def test_a_terminal_without_unicode_gets_letters(commands: Commands) -> None:
    done = commands.run(
        "config", "show", variables={"PYTHONIOENCODING": "ascii", "HERMES_PGVECTOR_TURN_MIN_CHARS": "x"}
    )
    assert done.code == 1
    assert " xx turn_min_chars" in done.out
    assert done.out.isascii()


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error_message(commands: Commands) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.Popen(
        [PROGRAM, "migrate", "--print"], env=commands.environment, stdout=write_end, stderr=subprocess.PIPE
    )
    os.close(write_end)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert err == b""


def _failing(error: BaseException) -> argparse.Namespace:
    def run(args: argparse.Namespace) -> int:
        raise error

    return argparse.Namespace(pgvector_run=run, pgvector_parser=tree.Parser(prog="hermes-pgvector"), json=False)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x is wrong"), 1), (DatabaseUnavailable("x is away"), 2), (EmbeddingUnavailable("x is away"), 2),
        (ServerError("x does not start"), 2), (KeyboardInterrupt(), 130),
    ],
)  # fmt: skip
def test_an_error_becomes_one_sentence_and_a_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.dispatch(_failing(error)) == code
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert str(error) in said.err


def test_an_unexpected_error_says_its_class_and_not_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Path) -> None:
        raise RuntimeError("the secret sauce is mustard")

    monkeypatch.setattr("hermes_memory_pgvector.ops.setup.checks.examine", fail)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    assert command_line.main(["doctor"]) == 1
    said = capsys.readouterr()
    assert "RuntimeError" in said.err
    assert "mustard" not in said.err + said.out


@pytest.mark.slow
def test_an_error_is_json_where_json_was_asked_for(commands: Commands) -> None:
    commands.home.mkdir()
    done = commands.run("recall", "anything", "--json")
    assert done.code == 2
    assert "hermes-pgvector up" in done.json["error"]


def test_print_connects_to_nothing(commands: Commands) -> None:
    commands.configure(dsn="postgresql://nobody@127.0.0.1:9/none", embed_url="http://127.0.0.1:9/v1", embed_dim=64)
    done = commands.call("migrate", "--print", "--runtime-role", "agents")
    assert done.code == 0
    assert "CREATE TABLE memory_entries" in done.out
    assert "halfvec(64)" in done.out
    assert '"agents"' in done.out
    assert done.err == ""


@pytest.mark.slow
def test_print_says_which_part_it_cannot_know(commands: Commands) -> None:
    commands.configure(embed_url="http://127.0.0.1:9/v1")
    done = commands.run("migrate", "--print")
    assert done.code == 0
    assert "set embed_dim" in done.out
    assert "halfvec(768)" not in done.out


@pytest.mark.parametrize("command", command_line.EVERY, ids=lambda command: command.name)
def test_every_command_has_a_heading_and_examples_that_it_accepts(command: Operation) -> None:
    assert command.group in tree.GROUPS
    assert not command.help.endswith(".")
    assert all(option.help for option in command.all_options)
    assert command.examples
    for line, meaning in command.examples:
        parser = tree.Parser(prog="hermes-pgvector")
        command_line.configure(parser)
        args = parser.parse_args(shlex.split(line.partition(" > ")[0]))
        assert args.pgvector_command in (command.name, *command.aliases)
        assert meaning[0].islower() or meaning[0].isdigit()
        assert not meaning.endswith(".")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("recal", "x"), "there is no command 'recal'; did you mean recall?"),
        (("conf",), "there is no command 'conf'; did you mean config?"),
        (("zzz",), "there is no command 'zzz'\n   → see: hermes-pgvector --help"),
        (("fixture",), "there is no command 'fixture'\n   → see: hermes-pgvector --help"),
        (("config", "list"), "there is no 'config list'; there is: show, get, set, unset"),
        (("list", "turn"), "there is no 'list turn'; did you mean turns?"),
        (("recall", "x", "--kind", "turn"), "there is no '--kind turn'; did you mean turns?"),
        (("recall", "x", "--limt", "3"), "there is no option --limt; did you mean --limit?"),
        (("recall", "x", "y"), "there is one argument too many: 'y'"),
        (
            ("prune", "--days", "30", "--execute"),
            "there is no option --days; instead: config set ttl_days DAYS, which agents follow as well; then: prune",
        ),
        (("backfill", "--dry-run"), "there is no option --dry-run; instead: reembed --status"),
        (("install", "--remove"), "there is no option --remove; instead: uninstall --execute"),
        (("stats", "--dsm", "x"), "there is no option --dsm\n   → see: hermes-pgvector status --help"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_looks_like_it(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert f"hermes-pgvector: {sentence}\n" in capsys.readouterr().err


def test_ctrl_c_before_a_command_begins_ends_with_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "main", interrupted)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert command.main() == command_line.INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "interrupted\n"
