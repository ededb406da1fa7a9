"""The README's commands, as a newcomer runs them: from a home of which nothing is known to a recall, and out again."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from docs.pages import ROOT, page

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.runtime import processes
from testing.command import PROGRAM, Commands, Finished
from testing.environments import BASE
from testing.terminal import on_terminal

REMEMBERED = "grandmother's appointment"


CHECKING = ("doctor", "status", "recall")


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A user with nothing but the package, after the first command."""

    commands: Commands
    first: Finished


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """A home that stays as `up` has made it."""
    with arrived(tmp_path_factory.mktemp("newcomer")) as made:
        yield made


@contextlib.contextmanager
def arrived(folder: Path) -> Iterator[Newcomer]:
    commands = Commands(folder)
    try:
        yield Newcomer(commands, commands.run("up"))
    finally:
        commands.run("up", "--stop")


def test_up_ends_with_a_green_doctor_and_a_recall(newcomer: Newcomer) -> None:
    done = newcomer.first
    assert done.code == 0, done.everything
    assert "checks passed" in done.out
    assert REMEMBERED in " ".join(done.out.partition("recalled")[2].split()), done.out
    assert "Ready." in done.out


def test_the_quickstart_shows_what_up_prints(newcomer: Newcomer) -> None:
    shown = [steps(text) for text in page("docs/quickstart.md").blocks("") if "Setting up the memory" in text]
    assert shown == [steps(newcomer.first.out)], "run: make samples"


def steps(text: str) -> list[str]:
    """What each step is called, without what it found and how long it took."""
    found = [line[3:].partition(",")[0] for line in text.splitlines() if line.startswith(" ✓ ")]
    return [line[:17].strip() for line in found if not line.startswith(("Ready", "memory tab", "Done"))]


@pytest.mark.parametrize(
    "words", [each for each in page("README.md").commands("hermes-pgvector") if each[1] in CHECKING], ids=" ".join
)
def test_every_command_that_checks_does_so(newcomer: Newcomer, words: list[str]) -> None:
    done = newcomer.commands.run(*words[1:])
    assert done.code == 0, done.everything


def test_the_two_minute_tour_needs_no_home(tmp_path: Path) -> None:
    visitor = Commands(tmp_path)
    done = visitor.run("try")
    assert done.code == 0, done.everything
    assert " ✗ " not in done.out
    assert "SKF-6203" in done.out
    assert not visitor.home.exists()
    shown = [steps(text) for text in page("docs/quickstart.md").blocks("") if "A tour of" in text]
    assert shown == [steps(done.out)], "run: make samples"


def test_it_can_be_taken_out_again(tmp_path: Path) -> None:
    (block,) = [text for text in page("README.md").blocks("sh") if "uninstall" in text]
    with arrived(tmp_path) as user:
        home = user.commands.home
        user.commands.run("config", "set", "dsn", "postgresql://ada:s3cret@127.0.0.1:1/x", "--force")
        (home / "profiles" / "coder").mkdir(parents=True)
        user.commands.run("install", "--all-profiles")
        hermes(user.commands, "backup", "-o", str(tmp_path / "home.zip"))
        before = sorted(home.rglob("*"))
        for number, line in enumerate(block.splitlines()):
            done = user.commands.run(*shlex.split(line, comments=True)[1:])
            assert done.code == 0, done.everything
            if number == 0:
                assert sorted(home.rglob("*")) == before, "a dry run changes nothing"
        assert not list(home.rglob("pgvector"))
        assert "s3cret" not in (home / ".env").read_text(encoding="utf-8")
        assert not (tmp_path / ".hermes-pgvector").exists()
        assert "pgvector" not in hermes(user.commands, "memory", "status")


def test_it_is_not_taken_out_under_a_running_process(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    folder = commands.home / "pgvector"
    folder.mkdir(parents=True)
    journal = Journal(folder / "journal", max_bytes=1_000_000)
    journal.open()
    journal.tell(processes.text_of_now([]))
    done = commands.run("uninstall", "--purge", "--execute")
    assert done.code == 1
    assert f"{os.getpid()} still uses this memory" in done.err
    assert folder.is_dir()
    journal.close(Deadline.after(5))


def hermes(commands: Commands, *arguments: str) -> str:
    """Run the host's own command; what it says."""
    done = subprocess.run(
        [PROGRAM.with_name("hermes"), *arguments], env=commands.environment | {"PYTHONWARNINGS": ""},
        cwd=commands.folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# start.py as a whole is run by tests/host/test_newcomer.py; what it decides is tested here.


def write_project(folder: Path, *, needs: str = "", tool: str = "") -> None:
    text = f"[build-system]\nrequires = []\n[project]\nname = 'x'\ndependencies = ['{needs}']\n[tool.x]\ny = '{tool}'\n"
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """start.py in a clone of its own, with its steps written down instead of taken."""
    shutil.copy(ROOT / "start.py", tmp_path)
    write_project(tmp_path)
    spec = importlib.util.spec_from_file_location("start", tmp_path / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    taken: list[list[str]] = []

    def hand_over(command: list[str], _: Path | None) -> int:
        taken.append(command)
        return 7

    monkeypatch.setattr(module, "make_environment", lambda: module.BIN.mkdir(parents=True, exist_ok=True))
    monkeypatch.setattr(module, "run_pip", taken.append)
    monkeypatch.setattr(module, "hand_over", hand_over)
    module.taken = taken
    return module  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("arguments", "extra", "ends"),
    [
        ([], "embedded", ["hermes-pgvector", "up"]),
        (["--yes"], "embedded", ["hermes-pgvector", "up", "--yes"]),
        (["try"], "embedded", ["hermes-pgvector", "try"]),
        (["recall", "x", "--json"], "embedded", ["hermes-pgvector", "recall", "x", "--json"]),
        (["test", "tests/unit"], "dev", ["python", "-m", "pytest", "-q", "tests/unit"]),
    ],
    ids=["nothing", "an option", "try", "a command", "test"],
)
def test_start_installs_and_hands_over(start: Any, arguments: list[str], extra: str, ends: list[str]) -> None:
    assert start.main(arguments) == 7
    pip, command = start.taken
    assert pip[-1].endswith(f"[{extra}]")
    assert [Path(command[0]).name, *command[1:]] == ends
    assert Path(command[0]).parent == start.BIN


def test_start_installs_once_until_the_package_needs_something_else(start: Any) -> None:
    start.main([])
    start.main([])
    assert len(start.taken) == 3
    write_project(start.ROOT, tool="other")
    start.main([])
    assert len(start.taken) == 4, "how the code is checked is nothing to install"
    write_project(start.ROOT, needs="psycopg")
    start.main([])
    assert len(start.taken) == 6


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 15, 0)], ids=["older", "newer"])
def test_start_refuses_another_python(
    start: Any, version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "sys", SimpleNamespace(version_info=version, version=".".join(map(str, version))))
    assert start.main([]) == 2
    assert start.taken == []
    assert "3.11 to 3.14" in capsys.readouterr().out


def test_start_serves_the_pythons_the_package_serves(start: Any) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest, newest = start.OLDEST, start.NEWEST
    assert f'requires-python = ">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"' in text
    assert oldest <= sys.version_info[:2] <= newest


# What can go wrong on a newcomer's machine: the real start.py, in processes of its own.

NO_VENV_MODULE = "import sys\nprint('ensurepip is not available', file=sys.stderr)\nsys.exit(1)\n"


def run_start(clone: Path, *become: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`python3 start.py` to its end; never a traceback."""
    environment = {"PATH": os.defpath, "HOME": str(clone), "LANG": "C.UTF-8", **variables}
    done = subprocess.run(
        [*become, BASE, clone / "start.py"], env=environment, cwd=clone, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def bare_clone(tmp_path: Path) -> Path:
    """start.py and what it reads."""
    shutil.copy(ROOT / "start.py", tmp_path)
    write_project(tmp_path)
    return tmp_path


def test_without_the_venv_package_it_names_it_and_leaves_nothing_half_made(bare_clone: Path) -> None:
    shadow = bare_clone / "shadow"
    shadow.mkdir()
    (shadow / "venv.py").write_text(NO_VENV_MODULE, encoding="utf-8")
    done = run_start(bare_clone, PYTHONPATH=str(shadow))
    assert done.returncode == 1
    assert "apt install python3." in done.stderr
    assert not (bare_clone / ".venv").exists()


def test_a_broken_environment_is_made_anew_and_pip_says_why_it_fails(bare_clone: Path) -> None:
    (bare_clone / ".venv" / "bin").mkdir(parents=True)
    (bare_clone / ".venv" / "bin" / "python").touch()
    (bare_clone / ".venv" / ".made-by-start").touch()
    done = run_start(bare_clone, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1
    assert "pip could not install the package" in done.stderr
    assert (bare_clone / ".venv" / "bin" / "pip").exists()


def test_somebody_elses_environment_without_pip_is_left_alone(bare_clone: Path) -> None:
    subprocess.run([BASE, "-m", "venv", "--without-pip", bare_clone / ".venv"], check=True)
    before = sorted((bare_clone / ".venv").rglob("*"))
    done = run_start(bare_clone)
    assert done.returncode == 1
    assert "start.py did not make it" in done.stderr
    assert sorted((bare_clone / ".venv").rglob("*")) == before


def test_a_clone_that_is_not_ours_to_write_is_an_error_in_words(bare_clone: Path) -> None:
    bare_clone.chmod(0o555)
    # Root without the right to write everywhere is like any other user.
    become = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    done = run_start(bare_clone, *become)
    bare_clone.chmod(0o755)
    assert done.returncode == 1
    assert "not yours to write" in done.stderr


def test_ctrl_c_while_it_installs_ends_with_a_sentence(bare_clone: Path) -> None:
    shadow = bare_clone / "shadow"
    shadow.mkdir()
    (shadow / "venv.py").write_text("import time\nprint('making', flush=True)\ntime.sleep(60)\n", encoding="utf-8")
    environment = {"PATH": os.defpath, "HOME": str(bare_clone), "PYTHONPATH": str(shadow)}
    command = [BASE, bare_clone / "start.py"]
    done = on_terminal(command, environment=environment, folder=bare_clone, answers={"Installing": "\x03"})
    assert done.code == 130
    assert "Interrupted" in done.shown
    assert "Traceback" not in done.shown
