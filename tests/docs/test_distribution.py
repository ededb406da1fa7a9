"""What is released holds what is needed, nothing else, and says who made it for whom."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from docs.pages import ROOT

PACKAGE = "hermes_memory_pgvector"
# What a working folder has and a release has not.
LEFT_BY_WORK = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"}


def tracked(*folders: str) -> set[str]:
    """The files of a clone below these folders; outside of one, whatever is there."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *folders], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in found if not LEFT_BY_WORK & set(path.parts)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built from an sdist, and that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def wheel_of(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_and_the_sdist_all_it_takes_to_test_it(built: Path) -> None:
    with wheel_of(built) as wheel:
        in_wheel = {name for name in wheel.namelist() if not name.split("/")[0].endswith(".dist-info")}
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames() if sdist.getmember(name).isfile()}
    source = {name.removeprefix("src/") for name in tracked("src")}
    assert in_wheel == source
    assert {name.removeprefix("src/") for name in in_sdist if name.startswith("src/")} == source
    assert tracked("tests", "testing", "bench", "docs") <= in_sdist
    others = {name for name in in_sdist if "/" not in name}
    assert others - {"PKG-INFO", ".gitignore"} == {
        "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "Makefile",
        "pyproject.toml", "start.py",
    }  # fmt: skip


def test_every_kind_of_file_that_is_read_at_run_time_is_in_the_wheel(built: Path) -> None:
    with wheel_of(built) as wheel:
        names = wheel.namelist()
    for needed in ("py.typed", "sql/base.sql", "sql/functions.sql", "sql/admin/schema.sql", "sql/model.sql"):
        assert f"{PACKAGE}/{needed}" in names
    assert f"{PACKAGE}/hermes_plugin/plugin.yaml" in names
    assert not [name for name in names if name.endswith((".pyc", ".orig", "~"))]


def test_the_metadata_is_complete(built: Path) -> None:
    with wheel_of(built) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        told = Parser().parsestr(wheel.read(name).decode())
        (entries,) = [each for each in wheel.namelist() if each.endswith("entry_points.txt")]
        points = wheel.read(entries).decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (told["Name"], told["Version"]) == (project["name"], project["version"])
    assert told["License-Expression"] == "BSD-3-Clause"
    assert told["License-File"] == "LICENSE"
    assert told["Author"]
    assert told["Keywords"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert str(told.get_payload()).startswith("# hermes-memory-pgvector")
    minors = [
        each for each in told.get_all("Classifier", []) if each.startswith("Programming Language :: Python :: 3.")
    ]
    assert [each.rpartition(".")[2] for each in minors] == ["11", "12", "13", "14"]
    assert f"version: {project['version']}" in (ROOT / f"src/{PACKAGE}/hermes_plugin/plugin.yaml").read_text()
    manifest = (ROOT / f"src/{PACKAGE}/hermes_plugin/dashboard/manifest.json").read_text()
    assert f'"version": "{project["version"]}"' in manifest
    assert f"hermes-pgvector = {project['scripts']['hermes-pgvector']}" in points
    assert "pgvector = hermes_memory_pgvector.hermes_plugin" in points
