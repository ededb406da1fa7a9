"""The plugin folder is put where hermes finds it, and never harms what is not ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

import hermes_memory_pgvector
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.setup import plugin_folder

FILES = {
    "__init__.py",
    "cli.py",
    "README.md",
    "plugin.yaml",
    "dashboard/manifest.json",
    "dashboard/plugin_api.py",
    "dashboard/page/index.js",
    "dashboard/page/style.css",
}


def foreign_plugin(home: Path) -> Path:
    folder = home / "plugins" / "pgvector"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("# register_memory_provider of somebody else\n")
    (folder / "plugin.yaml").write_text("name: pgvector\ndescription: like hermes-memory-pgvector, but not it\n")
    return folder


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def doors(folder: Path) -> set[str]:
    return {each for each in tree(folder) if not each.startswith("lib/")}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_installs_the_plugin_and_the_gateway_hook(tmp_path: Path) -> None:
    assert plugin_folder.install(tmp_path) == "installed"
    assert doors(tmp_path / "plugins" / "pgvector") == FILES
    carried = tmp_path / "plugins" / "pgvector" / "lib" / "hermes_memory_pgvector"
    assert tree(carried) == {
        each for each in tree(Path(hermes_memory_pgvector.__file__).parent) if "__pycache__" not in each
    }
    assert tree(tmp_path / "hooks") == {"pgvector/HOOK.yaml", "pgvector/handler.py"}


def test_leaves_no_temporary_folder_behind(tmp_path: Path) -> None:
    plugin_folder.install(tmp_path)
    (tmp_path / "plugins" / "pgvector" / "cli.py").write_text("old")
    plugin_folder.install(tmp_path)
    assert names(tmp_path / "plugins") == ["pgvector"]
    assert names(tmp_path / "hooks") == ["pgvector"]


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    plugin_folder.install(tmp_path)
    before = (tmp_path / "plugins" / "pgvector").stat().st_ino
    assert plugin_folder.install(tmp_path) == "unchanged"
    assert (tmp_path / "plugins" / "pgvector").stat().st_ino == before


def test_bytecode_written_by_hermes_does_not_count_as_a_change(tmp_path: Path) -> None:
    plugin_folder.install(tmp_path)
    cache = tmp_path / "plugins" / "pgvector" / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "cli.cpython-311.pyc").write_bytes(b"")
    assert plugin_folder.install(tmp_path) == "unchanged"


def test_an_older_folder_of_ours_is_replaced_whole(tmp_path: Path) -> None:
    plugin_folder.install(tmp_path)
    folder = tmp_path / "plugins" / "pgvector"
    (folder / "store.py").write_text("from an older version")
    (folder / "cli.py").unlink()
    assert plugin_folder.install(tmp_path) == "updated"
    assert doors(folder) == FILES


def test_refuses_a_folder_that_is_not_ours(tmp_path: Path) -> None:
    folder = foreign_plugin(tmp_path)
    before = tree(folder)
    with pytest.raises(ConfigError, match="move it away"):
        plugin_folder.install(tmp_path)
    assert tree(folder) == before
    assert not (tmp_path / "hooks").exists()


def test_a_link_to_a_working_copy_is_replaced_without_touching_the_copy(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    plugin_folder.install(copy)
    (home / "plugins").mkdir(parents=True)
    (copy / "plugins" / "pgvector" / "note").write_text("mine")
    (home / "plugins" / "pgvector").symlink_to(copy / "plugins" / "pgvector")
    plugin_folder.install(home)
    assert not (home / "plugins" / "pgvector").is_symlink()
    assert (copy / "plugins" / "pgvector" / "note").read_text() == "mine"


def test_remove_takes_out_what_is_ours_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "plugins" / "other").mkdir(parents=True)
    plugin_folder.install(tmp_path)
    for place in plugin_folder.ours(tmp_path):
        plugin_folder.remove(place)
    assert names(tmp_path / "plugins") == ["other"]
    assert names(tmp_path / "hooks") == []
    foreign_plugin(tmp_path)
    assert plugin_folder.ours(tmp_path) == []


@pytest.mark.parametrize("manifest", ["plugins/pgvector/plugin.yaml", "hooks/pgvector/HOOK.yaml"])
def test_manifests_carry_the_version_of_the_package(tmp_path: Path, manifest: str) -> None:
    plugin_folder.install(tmp_path)
    assert yaml.safe_load((tmp_path / manifest).read_text())["version"] == hermes_memory_pgvector.__version__


@pytest.mark.parametrize("was_there", [False, True])
def test_nobody_else_can_write_the_code_whatever_the_umask(tmp_path: Path, was_there: bool) -> None:
    home = tmp_path / "home"
    before = os.umask(0)
    try:
        if was_there:
            plugin_folder.install(home)
            for path in (home / "plugins" / "pgvector", home / "plugins" / "pgvector" / "__init__.py"):
                path.chmod(0o777)
            assert plugin_folder.state_of(home) == "outdated"
        plugin_folder.install(home)
    finally:
        os.umask(before)
    assert [path for path in (home, *home.rglob("*")) if path.stat().st_mode & 0o022] == []
    assert plugin_folder.state_of(home) == "current"
