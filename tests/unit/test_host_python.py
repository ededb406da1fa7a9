"""The Python that runs hermes is found wherever people install it, and the command that installs into it is exact."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from hermes_memory_pgvector import distribution
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import host_install, host_python
from testing.environments import borrowed_environment

SETTINGS = Settings()


@pytest.fixture(scope="module")
def hermes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with hermes and without this package."""
    return borrowed_environment(tmp_path_factory.mktemp("hermes") / "venvs" / "hermes-agent", has_hermes=True)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user with nothing on the PATH, and a Python of our own that has no hermes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)
    for name in ("XDG_DATA_HOME", "UV_TOOL_DIR", "PIPX_HOME", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    has = host_python._has
    monkeypatch.setattr(host_python, "_has", lambda module: module != "hermes_cli" and has(module))


def test_nothing_is_found_where_there_is_no_hermes(tmp_path: Path) -> None:
    assert host_python.find(tmp_path, SETTINGS) is None


def test_the_hermes_on_the_path_comes_first(hermes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_TOOL_DIR", str(tmp_path / "other"))
    link = tmp_path / "bin" / "hermes"
    link.parent.mkdir()
    link.symlink_to(hermes / "hermes")
    monkeypatch.setenv("PATH", f"{link.parent}:{os.defpath}")
    found = host_python.find(tmp_path, SETTINGS)
    assert found is not None
    assert found.path == hermes / "python"
    assert str(link) in found.how
    assert not found.sees_package
    assert found.lacks[0] == "hermes_memory_pgvector"


@pytest.mark.parametrize(("variable", "above"), [("UV_TOOL_DIR", 2), ("PIPX_HOME", 3)], ids=["uv tool", "pipx"])
def test_tools_keep_it_off_the_path(
    hermes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, above: int
) -> None:
    monkeypatch.setenv(variable, str(hermes.parents[above - 1]))
    found = host_python.find(tmp_path, SETTINGS)
    assert found is not None
    assert found.path == hermes / "python"


@pytest.mark.parametrize("given", ["", "python", "hermes"], ids=["folder", "python", "command"])
def test_the_operator_may_name_it_and_it_is_kept(hermes: Path, tmp_path: Path, given: str) -> None:
    found = host_python.find(tmp_path, SETTINGS, hermes / given if given else hermes.parent)
    assert found is not None
    assert found.path == hermes / "python"
    host_python.remember(tmp_path, found)
    later = host_python.find(tmp_path, SETTINGS)
    assert later is not None
    assert later.path == found.path


def test_a_python_without_hermes_is_refused(tmp_path: Path) -> None:
    empty = borrowed_environment(tmp_path / "empty", has_hermes=False)
    with pytest.raises(ConfigError, match="hermes-agent is not installed there"):
        host_python.find(tmp_path, SETTINGS, empty / "python")
    with pytest.raises(ConfigError, match="is not a Python"):
        host_python.find(tmp_path, SETTINGS, tmp_path / "nowhere")


def test_the_command_names_the_clone_and_its_extra(hermes: Path, tmp_path: Path) -> None:
    found = host_python.find(tmp_path, SETTINGS, hermes.parent)
    assert found is not None
    clone = distribution.folder().parent.parent
    expected = [str(hermes / "python"), "-m", "pip", "install", f"{clone}[embedded]"]
    assert host_install.command(found) == expected
    assert shlex.split(host_install.typed(expected)) == expected


def test_a_python_of_the_operating_system_is_told_that_it_may(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho pip\necho managed\n", encoding="utf-8")
    python.chmod(0o755)
    host = host_python.HostPython(python, "on the PATH")
    pip, consent = [str(python), "-m", "pip"], "--break-system-packages"
    assert host_install.command(host) == [*pip, "install", consent, distribution.requirement()]
    assert host_install.removal_command(host) == [*pip, "uninstall", consent, distribution.NAME]


@pytest.mark.parametrize(("version", "lacks"), [([3, 13], ("wordllama",)), ([3, 14], ())], ids=["3.13", "3.14"])
def test_a_python_for_which_there_is_no_local_model_can_use_the_memory(
    tmp_path: Path, version: list[int], lacks: tuple[str, ...]
) -> None:
    python = tmp_path / "python3"
    told = {"host": True, "package": "", "lacks": ["wordllama"], "python": version}
    python.write_text(f"#!/bin/sh\necho {shlex.quote(json.dumps(told))}\n", encoding="utf-8")
    python.chmod(0o755)
    found = host_python.find(tmp_path, SETTINGS, python)
    assert found is not None
    assert (found.lacks, found.sees_package) == (lacks, not lacks)


@pytest.mark.slow
def test_an_installed_copy_that_differs_is_noticed(hermes: Path, tmp_path: Path) -> None:
    site = next(hermes.parent.glob("lib/*/site-packages"))
    copy = site / "hermes_memory_pgvector"
    shutil.copytree(distribution.folder(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        found = host_python.find(tmp_path, SETTINGS, hermes.parent)
        assert found is not None
        assert found.sees_package
        assert found.is_current
        (copy / "clock.py").write_text((copy / "clock.py").read_text(encoding="utf-8") + "\n# edited\n", "utf-8")
        edited = host_python.examine(found, SETTINGS)
        assert edited.sees_package
        assert not edited.is_current
    finally:
        shutil.rmtree(copy)


@pytest.mark.slow
def test_what_pip_says_last_is_the_reason(hermes: Path) -> None:
    words = [str(hermes / "python"), "-m", "pip", "install", "--no-index", "no-such-package-at-all"]
    with pytest.raises(ConfigError, match="No matching distribution"):
        host_install.run(words, lambda _: None)


def put_hermes(folder: Path, python: Path | str) -> Path:
    """A script called hermes that this Python runs."""
    folder.mkdir(exist_ok=True)
    script = folder / "hermes"
    script.write_text(f"#!{python}\nprint('a messenger of the gods')\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def test_another_program_called_hermes_is_not_the_host(
    hermes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = borrowed_environment(tmp_path / "empty", has_hermes=False)
    script = put_hermes(tmp_path / "bin", empty / "python")
    monkeypatch.setenv("PATH", f"{script.parent}:{os.defpath}")
    assert host_python.find(tmp_path, SETTINGS) is None
    monkeypatch.setenv("UV_TOOL_DIR", str(hermes.parents[1]))
    found = host_python.find(tmp_path, SETTINGS)
    assert found is not None
    assert found.path == hermes / "python"
    monkeypatch.delenv("UV_TOOL_DIR")
    (script.parent / "hermes_cli").mkdir()
    (script.parent / "hermes_cli" / "__init__.py").touch()
    clone = host_python.find(tmp_path, SETTINGS)
    assert clone is not None, "the script of a clone finds the modules beside it"
    assert clone.path == empty / "python"


def test_another_python_in_the_same_folder_is_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = borrowed_environment(tmp_path / "empty", has_hermes=False)
    own = empty / "python3.99"
    shutil.copy((empty / "python").resolve(), own)
    monkeypatch.setattr("sys.executable", str(own))
    assert host_python._is_this(own)
    assert not host_python._is_this(empty / "python")
    (empty / "python4").symlink_to(own)
    assert host_python._is_this(empty / "python4")
    monkeypatch.setattr(host_python, "_has", lambda _: True)
    with pytest.raises(ConfigError, match="hermes-agent is not installed there"):
        host_python.find(tmp_path, SETTINGS, empty / "python")
