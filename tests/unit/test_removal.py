"""What `uninstall` plans to delete: what is ours in this installation, and nothing that nobody named."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector.config.home import home_id, homes_of, root_of
from hermes_memory_pgvector.config.settings_file import current_provider, update
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.memory import memory_of
from hermes_memory_pgvector.ops.setup.uninstall import uninstall
from testing.command import Commands


@pytest.fixture(autouse=True)
def _user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def make_home(path: Path) -> Path:
    """A home that has this memory."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.yaml").write_text(yaml.safe_dump({"memory": {"provider": "pgvector"}}), encoding="utf-8")
    home_id(path)
    return path


def purge(home: Path) -> list[str]:
    """Take it out for good; what stays."""
    plan = uninstall(memory_of(home), purge=True, execute=True)
    return [note.text for note in plan.notes]


def test_what_lies_beside_a_home_in_a_folder_called_profiles_is_left_alone(tmp_path: Path) -> None:
    clone = tmp_path / "pgvector"
    clone.mkdir()
    (clone / "Makefile").write_text("", encoding="utf-8")
    (tmp_path / ".env").write_text("HERMES_PGVECTOR_PASSWORD=kept\n", encoding="utf-8")
    home, other = (make_home(tmp_path / "profiles" / name) for name in ("x", "other"))
    assert root_of(home) == home
    assert homes_of(home) == [home]
    purge(home)
    assert not (home / "pgvector").exists()
    assert (clone / "Makefile").exists()
    assert (other / "pgvector" / "home-id").exists()
    assert current_provider(other) == "pgvector"
    assert "kept" in (tmp_path / ".env").read_text(encoding="utf-8")


def test_a_folder_of_our_name_that_is_not_ours_stays(tmp_path: Path) -> None:
    root = make_home(tmp_path / "hermes")
    clone = root / "profiles" / "coder" / "pgvector"
    clone.mkdir(parents=True)
    (clone / "Makefile").write_text("", encoding="utf-8")
    stays = purge(root)
    assert not (root / "pgvector").exists()
    assert (clone / "Makefile").exists()
    assert any(str(clone) in line for line in stays)


@pytest.mark.parametrize("link", ["profiles/work", "profiles"])
def test_a_profile_behind_a_link_is_another_installations(tmp_path: Path, link: str) -> None:
    root, other = make_home(tmp_path / "one"), tmp_path / "two"
    behind = make_home(other if link.endswith("work") else other / "work")
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(other)
    stays = purge(root)
    assert not (root / "pgvector").exists()
    assert (behind / "pgvector" / "home-id").exists()
    assert current_provider(behind) == "pgvector"
    assert any(str(behind) in line for line in stays)
    purge(root / "profiles" / "work")
    assert not (behind / "pgvector").exists(), "whoever names it means it"


def test_profiles_of_one_installation_go_together(tmp_path: Path) -> None:
    root = make_home(tmp_path / "hermes")
    coder, writer = (make_home(root / "profiles" / name) for name in ("coder", "writer"))
    purge(coder)
    assert not [home for home in (root, coder, writer) if (home / "pgvector").exists()]


def test_data_on_another_disk_is_refused_before_anything_changes(tmp_path: Path) -> None:
    home = make_home(tmp_path / "hermes")
    disk = (home / "pgvector").rename(tmp_path / "disk")
    (home / "pgvector").symlink_to(disk)
    with pytest.raises(ConfigError, match=r"is a link to .*nothing was changed"):
        uninstall(memory_of(home), purge=True, execute=False)
    uninstall(memory_of(home), purge=False, execute=True)
    assert current_provider(home) == ""
    assert (disk / "home-id").exists()


def test_config_yaml_is_as_it_was_before(tmp_path: Path) -> None:
    home = make_home(tmp_path / "hermes")
    update(home, ("plugins",), {"enabled": ["pgvector"]})
    done = uninstall(memory_of(home), purge=False, execute=True)
    assert yaml.safe_load((home / "config.yaml").read_text(encoding="utf-8")) == {}
    assert [line.step.partition(" from ")[0] for line in done.samples][:2] == [
        "removed memory.provider", "removed pgvector",
    ]  # fmt: skip


def test_what_stays_in_an_own_postgres_is_named_with_the_sql_that_deletes_it(tmp_path: Path) -> None:
    home = make_home(tmp_path / "hermes")
    update(home, ("memory", "pgvector"), {"dsn": "postgresql://hermes@db.example/my%20memory"})
    stays = purge(home)
    assert any("the tables in my memory on db.example" in line for line in stays)
    assert any(line.endswith('DROP DATABASE "my memory"; DROP ROLE "hermes";') for line in stays)


@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_command_to_paste_names_the_home_that_was_shown(tmp_path: Path, how: str) -> None:
    home, usual = make_home(tmp_path / "an other"), make_home(tmp_path / ".hermes")
    commands = Commands(tmp_path)
    given = ("--hermes-home", str(home)) if how == "option" else ()
    shown = commands.call(
        "uninstall", "--purge", *given, variables={"HERMES_HOME": str(usual if how == "option" else home)}
    )
    (line,) = [line for line in shown.out.splitlines() if "hermes-pgvector uninstall" in line]
    words = shlex.split(line[line.index("hermes-pgvector") :])
    done = commands.call(*words[1:], variables={"HERMES_HOME": ""})
    assert done.code == 0, done.everything
    assert not (home / "pgvector").exists()
    assert (usual / "pgvector" / "home-id").exists()
