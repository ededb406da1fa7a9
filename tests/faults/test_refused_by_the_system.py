"""No command shows a traceback, whatever the machine refuses: homes of others, read-only ones, full disks, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.command import PROGRAM, Commands

# Root without its privileges is refused as everybody is.
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] if os.geteuid() == 0 else []
COMMANDS = (
    "up", "up --stop", "status", "doctor", "recall x", "config show", "config set prefetch_limit 7",
    "uninstall --execute", "migrate", "list rejected", "backfill",
)  # fmt: skip
# All commands in one process: each is short, and the interpreter need not start again.
RUN_ALL = """
import contextlib, io, json, sys, threading
from hermes_memory_pgvector import command_line
crashes = []
threading.excepthook = lambda args: crashes.append(repr(args.exc_value))
told = {}
for command in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = command_line.main([*command.split(), "--hermes-home", sys.argv[2]])
    told[command] = code, out.getvalue() + "".join(crashes)
print(json.dumps(told))
"""


def run_all(home: Path, folder: Path, *become: str) -> dict[str, tuple[int, str]]:
    """What every command says of a home."""
    environment = {**Commands(folder).environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    del environment["PYTHONWARNINGS"]
    done = subprocess.run(
        [*become, sys.executable, "-c", RUN_ALL, json.dumps(COMMANDS), home],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = {command: (code, said) for command, (code, said) in json.loads(done.stdout).items()}
    assert {command: said for command, (_, said) in told.items() if "unexpected" in said or "Trace" in said} == {}
    return told


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Path]:
    """A folder whose contents can be deleted again."""
    yield tmp_path
    for path in (tmp_path, *tmp_path.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)


@pytest.mark.parametrize("closed", ["home", "home/pgvector"])
def test_a_home_that_may_not_be_read_is_named_with_whose_it_is(opened: Path, closed: str) -> None:
    home = opened / "home"
    (home / "pgvector").mkdir(parents=True)
    (opened / closed).chmod(0)
    for command, (code, said) in run_all(home, opened, *UNPRIVILEGED).items():
        assert code == 1, command
        assert f"{opened / closed} cannot be read: permission denied" in said, command


@pytest.mark.parametrize("place", ["home", "home/pgvector"])
def test_a_home_that_is_a_file_or_a_link_to_nowhere_is_called_that(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).symlink_to(tmp_path / "nowhere")
    for command, (code, said) in run_all(tmp_path / "home", tmp_path).items():
        assert (code, "nowhere, which does not exist" in said) == (1, True), command
    (tmp_path / "nowhere").write_text("a file", encoding="utf-8")
    for command, (code, said) in run_all(tmp_path / "home", tmp_path).items():
        assert (code, f"{tmp_path / place} is not a folder" in said) == (1, True), command


def test_a_read_only_home_is_left_as_it_is(opened: Path) -> None:
    home = opened / "home"
    home.mkdir()
    (home / "config.yaml").write_text("memory: {provider: other}\n", encoding="utf-8")
    home.chmod(0o500)
    told = run_all(home, opened, *UNPRIVILEGED)
    assert "cannot be written" in told["up"][1]
    assert "nothing was changed" in told["config set prefetch_limit 7"][1]
    assert sorted(path.name for path in home.iterdir()) == ["config.yaml"]


def test_a_home_that_cannot_be_made_is_an_error_in_words(opened: Path) -> None:
    opened.chmod(0o500)
    told = run_all(opened / "home", Path("/"), *UNPRIVILEGED)
    assert "cannot be made" in told["up"][1]
    assert all(code for command, (code, _) in told.items() if command != "up --stop")


def test_a_full_disk_is_an_error_in_words(tmp_path: Path) -> None:
    unshare = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "sh", "-c"]
    fill = 'mount -t tmpfs -o size=64k none "$0" && mkdir "$0/home" && head -c 1M /dev/zero > "$0/full" 2>/dev/null; '
    told = run_all(tmp_path / "home", Path("/"), *unshare, f'{fill} exec "$@"', str(tmp_path))
    assert "disk is full" in told["up"][1]
    assert told["config set prefetch_limit 7"][0] == 1
    assert "no space left" in told["config set prefetch_limit 7"][1]


@pytest.mark.parametrize("words", [("--help",), ("config", "show"), ("status",)], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    commands = Commands(tmp_path)
    commands.home.mkdir()
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [PROGRAM, *words], env=commands.environment, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    os.close(write)
    assert done.stderr == ""


def test_without_standard_output_a_command_still_works(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" config show >&-', PROGRAM], env=commands.environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == ""


def test_ctrl_c_ends_a_command_at_any_time_without_a_traceback(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    # From the first imports to a server that is being made.
    for lines in (0, 1):
        process = commands.start("up")
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        done = commands.finish(process)
        assert done.code in (130, -signal.SIGINT), done
        assert "Error" not in done.err
    commands.run("up", "--stop")
