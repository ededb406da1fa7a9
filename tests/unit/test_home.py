"""Who a home is: the same wherever it is moved to, somebody else wherever it is copied to."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import HomePlace, home_id, identity, is_copy, pseudonym_key
from hermes_memory_pgvector.errors import ConfigError

HERE = HomePlace("m1", "host", "boot 1", 7, 42, "/home/u/.hermes/pgvector/home-id")


@pytest.mark.parametrize(
    ("what", "found", "expected"),
    [
        ("nothing has changed", HERE, False),
        ("renamed", replace(HERE, path="/home/u/other/pgvector/home-id"), False),
        ("after a reboot", replace(HERE, boot="boot 2"), False),
        ("after a reboot, the disk has another number", replace(HERE, boot="boot 2", device=8), False),
        ("the container was restarted", replace(HERE, device=8), False),
        ("the machine got another name", replace(HERE, host="renamed"), False),
        ("another container on the same volume", replace(HERE, machine="m2", host="c2", path="/data/home-id"), False),
        ("a new container on the same volume", replace(HERE, host="c2", boot="boot 2"), False),
        ("restored in its place", replace(HERE, inode=43, boot="boot 2"), False),
        ("cp -r", replace(HERE, inode=43, path="/home/u/copy/pgvector/home-id"), True),
        ("a container of an image made elsewhere", replace(HERE, machine="", host="c2", device=9, inode=43), True),
        ("a container of an image made on this machine", replace(HERE, host="c2", device=9), True),
        ("a clone of the virtual machine", replace(HERE, machine="m2", boot="boot 2"), True),
        ("restored on another machine", replace(HERE, machine="m2", boot="boot 2", inode=43), True),
    ],
)
def test_a_copy_is_told_from_a_home_that_was_moved(what: str, found: HomePlace, expected: bool) -> None:
    assert is_copy(HERE, found) is expected, what


def test_machines_that_share_a_home_do_not_take_it_from_each_other() -> None:
    found = replace(HERE, machine="m2", boot="boot 2")
    assert is_copy(HERE, found)
    assert not is_copy(HERE, found, ("m1", "m2"))


def test_a_copy_gets_an_id_of_its_own_and_the_original_keeps_its(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    first = home_id(original)
    subprocess.run(["cp", "-a", str(original), str(copy)], check=True)
    with caplog.at_level(logging.WARNING):
        second = identity(copy)
    assert second.id != first
    assert second.predecessors == (first,)
    assert second.original == str(original)
    assert [record.getMessage() for record in caplog.records if "copy" in record.getMessage()] == [
        f"this home is a copy of home {first}: it becomes home {second.id}, and neither deletes the other's entries"
    ]
    assert home_id(copy) == second.id
    assert home_id(original) == first


def test_a_copy_with_the_inode_that_another_left_behind_is_another_home(tmp_path: Path) -> None:
    original, one, two = tmp_path / "original", tmp_path / "one", tmp_path / "two"
    first = home_id(original)
    for copy in (one, two):
        shutil.copytree(original, copy)
    # The inode, as it was before the first copy became a home of its own.
    left = tmp_path / "left"
    os.link(one / "pgvector" / "home-id", left)
    second = home_id(one)
    left.replace(two / "pgvector" / "home-id")
    assert len({first, second, home_id(two)}) == 3


def _as_in_a_snapshot(home: Path) -> None:
    """Make the id file name the inode that it has, on another device."""
    file = home / "pgvector" / "home-id"
    name, _, rest = file.read_text().partition("\n")
    told = json.loads(rest)
    told["place"] |= {"inode": file.stat().st_ino, "device": file.stat().st_dev + 1}
    with file.open("r+") as open_file:
        open_file.write(f"{name}\n{json.dumps(told)}\n")
        open_file.truncate()


def test_a_snapshot_beside_its_original_is_a_copy(tmp_path: Path) -> None:
    original, snapshot = tmp_path / "original", tmp_path / "snapshot"
    first = home_id(original)
    shutil.copytree(original, snapshot)
    _as_in_a_snapshot(snapshot)
    second = identity(snapshot)
    assert second.id != first
    assert (second.predecessors, second.original) == ((first,), str(original))
    assert home_id(snapshot) == second.id
    assert home_id(original) == first


@pytest.mark.parametrize("first", ["home", "home.old"])
def test_a_home_that_was_moved_and_copied_back_is_two_homes(tmp_path: Path, first: str) -> None:
    home, old = tmp_path / "home", tmp_path / "home.old"
    known = home_id(home)
    home.rename(old)
    shutil.copytree(old, home)
    home_id(tmp_path / first)
    assert home_id(home) == known
    assert identity(old).predecessors == (known,)


def test_a_copy_made_of_hard_links_is_another_home(tmp_path: Path) -> None:
    first = home_id(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=os.link)
    assert home_id(tmp_path / "two") != first
    assert home_id(tmp_path / "one") == first


def test_a_home_that_is_mounted_at_two_places_is_one_home(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = home_id(one)
    one.rename(tmp_path / "disk")
    for mount in (one, two):
        mount.symlink_to(tmp_path / "disk")
    _as_in_a_snapshot(two)
    assert home_id(two) == first
    assert home_id(one) == first


def test_a_copy_of_a_copy_knows_both(tmp_path: Path) -> None:
    ids = [home_id(tmp_path / "0")]
    for number in range(1, 3):
        shutil.copytree(tmp_path / str(number - 1), tmp_path / str(number))
        ids.append(home_id(tmp_path / str(number)))
    assert len(set(ids)) == 3
    assert identity(tmp_path / "2").predecessors == (ids[1], ids[0])


def test_a_home_that_is_renamed_keeps_its_id(tmp_path: Path) -> None:
    first = home_id(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    assert home_id(tmp_path / "new") == first
    shutil.copytree(tmp_path / "new", tmp_path / "copy")
    assert identity(tmp_path / "copy").original == str(tmp_path / "new")


def test_a_home_restored_in_its_place_keeps_its_id(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = home_id(home)
    subprocess.run(["cp", "-r", str(home), str(tmp_path / "backup")], check=True)
    shutil.rmtree(home)
    subprocess.run(["cp", "-r", str(tmp_path / "backup"), str(home)], check=True)
    assert home_id(home) == first


def test_a_new_home_writes_its_id_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.setattr(files, "replace", lambda path, *_, **__: written.append(path))
    known = identity(tmp_path)
    assert known.place is not None
    assert identity(tmp_path) == known
    assert written == []


def test_a_damaged_place_is_written_anew(tmp_path: Path) -> None:
    first = home_id(tmp_path)
    file = tmp_path / "pgvector" / "home-id"
    file.write_text(f"{first}\n{{half")
    assert home_id(tmp_path) == first
    assert json.loads(file.read_text().partition("\n")[2])["place"]["inode"] == file.stat().st_ino


def test_all_processes_of_a_copy_arrive_at_the_same_id(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    home_id(original)
    shutil.copytree(original, copy)
    with multiprocessing.get_context("fork").Pool(8) as pool:
        ids = set(pool.map(home_id, [copy] * 64, chunksize=1))
    assert len(ids) == 1
    assert ids == {home_id(copy)}
    assert ids.isdisjoint({home_id(original)})


def test_two_copies_are_two_homes(tmp_path: Path) -> None:
    home_id(tmp_path / "original")
    for name in ("a", "b"):
        shutil.copytree(tmp_path / "original", tmp_path / name)
    assert len({home_id(tmp_path / name) for name in ("original", "a", "b")}) == 3


def test_the_same_person_has_the_same_theme_in_every_copy(tmp_path: Path) -> None:
    key = pseudonym_key(tmp_path / "original")
    home_id(tmp_path / "original")
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    home_id(tmp_path / "copy")
    assert pseudonym_key(tmp_path / "copy") == key


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_the_folder_is_closed_to_everybody_else(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        home_id(tmp_path / "new")
        (tmp_path / "open" / "pgvector").mkdir(parents=True)
        home_id(tmp_path / "open")
    finally:
        os.umask(before)
    for home in ("new", "open"):
        assert stat.S_IMODE((tmp_path / home / "pgvector").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / home / "pgvector" / "home-id").stat().st_mode) == 0o600


def test_a_relative_home_stays_where_the_process_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's tools may change the working directory; there, the same name is an empty home of no settings."""
    before = settings_file.absolute("agents/one")
    assert before.is_absolute()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERMES_HOME", " agents/one ")
    assert settings_file.absolute("agents/one") == before == settings_file.default_home()
    monkeypatch.setenv("HERMES_HOME", " ")
    assert settings_file.default_home() == Path.home() / ".hermes"


def test_a_key_that_is_gone_is_not_made_anew_unless_that_is_wanted(tmp_path: Path) -> None:
    key = pseudonym_key(tmp_path)
    path = tmp_path / "pgvector" / "identity.key"
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(ConfigError, match="missing"):
        pseudonym_key(tmp_path)
    path.write_bytes(whole)
    assert pseudonym_key(tmp_path) == key
    path.unlink()
    (tmp_path / "pgvector" / "identity.check").unlink()
    with pytest.raises(ConfigError, match="nobody was given a pseudonym here"):
        pseudonym_key(tmp_path, may_begin=False)
    assert pseudonym_key(tmp_path) != key
