"""The Python that runs hermes is found wherever people install it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.setup import host_python, plugin_folder
from testing.environments import borrowed_environment

REAL_PYTHON = sys.executable


@pytest.fixture(scope="module")
def hermes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with hermes and without this package."""
    return borrowed_environment(tmp_path_factory.mktemp("hermes") / "venvs" / "hermes-agent", has_hermes=True)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment without hermes."""
    return borrowed_environment(tmp_path_factory.mktemp("empty") / "venv", has_hermes=False)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: Path) -> None:
    """A user with nothing on the PATH, and a Python of our own that has no hermes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr("sys.executable", str(empty / "python"))


def test_nothing_is_found_where_there_is_no_hermes(tmp_path: Path) -> None:
    assert host_python.find(tmp_path) is None


def test_the_hermes_on_the_path_comes_first(hermes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "bin" / "hermes"
    link.parent.mkdir()
    link.symlink_to(hermes / "hermes")
    monkeypatch.setenv("PATH", f"{link.parent}:{os.defpath}")
    found = host_python.find(tmp_path)
    assert found is not None
    assert found.path == hermes / "python"
    assert str(link) in found.how
    assert not found.sees_package
    assert found.lacks[0] == "hermes_memory_pgvector"


def test_a_new_shell_would_find_it(hermes: Path, tmp_path: Path) -> None:
    """uv, pipx and the host's own script put the command there, and the shell that ran them does not know it yet."""
    link = tmp_path / ".local" / "bin" / "hermes"
    link.parent.mkdir(parents=True)
    link.symlink_to(hermes / "hermes")
    found = host_python.find(tmp_path)
    assert found is not None
    assert found.path == hermes / "python"


@pytest.mark.parametrize("given", ["", "python", "hermes"], ids=["folder", "python", "command"])
def test_the_operator_may_name_it_and_it_is_kept(hermes: Path, tmp_path: Path, given: str) -> None:
    found = host_python.find(tmp_path, hermes / given if given else hermes.parent)
    assert found is not None
    assert found.path == hermes / "python"
    host_python.remember(tmp_path, found)
    later = host_python.find(tmp_path)
    assert later is not None
    assert later.path == found.path


def test_a_python_without_hermes_is_refused(tmp_path: Path, empty: Path) -> None:
    with pytest.raises(ConfigError, match="hermes-agent is not installed there"):
        host_python.find(tmp_path, empty / "python")
    with pytest.raises(ConfigError, match="is not a Python"):
        host_python.find(tmp_path, tmp_path / "nowhere")


def put_hermes(folder: Path, python: Path | str) -> Path:
    """A script called hermes that this Python runs."""
    folder.mkdir(exist_ok=True)
    script = folder / "hermes"
    script.write_text(f"#!{python}\nprint('a messenger of the gods')\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def test_another_program_called_hermes_is_not_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: Path
) -> None:
    script = put_hermes(tmp_path / "bin", empty / "python")
    monkeypatch.setenv("PATH", f"{script.parent}:{os.defpath}")
    assert host_python.find(tmp_path) is None
    (script.parent / "hermes_cli").mkdir()
    (script.parent / "hermes_cli" / "__init__.py").touch()
    clone = host_python.find(tmp_path)
    assert clone is not None, "the script of a clone finds the modules beside it"
    assert clone.path == empty / "python"


@pytest.mark.slow
def test_hermes_can_use_the_memory_once_the_home_has_what_it_needs(hermes: Path, tmp_path: Path) -> None:
    before = host_python.find(tmp_path, hermes.parent)
    assert before is not None
    assert not before.sees_package
    assert "the plugin folder is not in place" in host_python.shortcoming(before)
    for note in host_python.carry(tmp_path, before):
        assert note.mark == "ok"
    plugin_folder.install(tmp_path)
    after = host_python.examine(tmp_path, before)
    assert after.sees_package, after


LAUNCHER = """#!/bin/sh
test "$1" = --print-runtime-command || exit 2
exec {python} - "$@" <<'END'
import json, sys
module = sys.argv[sys.argv.index("--module") + 1] if "--module" in sys.argv else "hermes_cli.main"
rest = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
run = "import runpy, sys; sys.argv.pop(0); runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
print(json.dumps(["{hermes}", "-c", run, module, *rest]))
END
"""


def test_a_hermes_that_can_say_what_it_runs_on_is_believed(
    hermes: Path, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its launcher is a shell script, and only the command that it prints puts its libraries on the path."""
    launcher = tmp_path / "named" / "hermes"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(python=REAL_PYTHON, hermes=hermes / "python"), encoding="utf-8")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", f"{launcher.parent}:{os.defpath}")
    found = host_python.find(tmp_path)
    assert found is not None
    assert (found.path, found.named, found.how) == (hermes / "python", hermes / "python", host_python.BY_HOST)
    host_python.remember(tmp_path, host_python.HostPython(empty / "python", "given before"))
    again = host_python.find(tmp_path)
    assert again is not None
    assert again.path == hermes / "python", "what hermes says of itself counts more than a choice of former days"
