"""Private files appear whole, once, and leave nothing beside them."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes_memory_pgvector import files


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_replaced_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert files.replace(tmp_path / "note", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "note").read_bytes() == b"new"
    assert mode_of(tmp_path / "note") == files.PRIVATE
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_another_mode_is_kept_when_it_is_asked_for(tmp_path: Path) -> None:
    files.replace(tmp_path / "note", b"new", mode=0o644)
    assert mode_of(tmp_path / "note") == 0o644


def test_the_content_may_name_the_new_file_itself(tmp_path: Path) -> None:
    files.replace(tmp_path / "note", lambda status: str(status.st_ino).encode())
    assert int((tmp_path / "note").read_bytes()) == (tmp_path / "note").stat().st_ino


def test_nothing_is_replaced_when_the_last_look_says_no(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"old")
    assert files.replace(tmp_path / "note", b"new", only_if=lambda: False) is False
    assert (tmp_path / "note").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_content_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    def fails(_: os.stat_result) -> bytes:
        raise OSError

    (tmp_path / "note").write_bytes(b"old")
    with pytest.raises(OSError):
        files.replace(tmp_path / "note", fails)
    assert (tmp_path / "note").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_of_many_creators_one_is_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        first = list(pool.map(lambda number: files.create(tmp_path / "key", b"%d" % number), range(8)))
    assert first.count(True) == 1
    assert (tmp_path / "key").read_bytes() == b"%d" % first.index(True)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_what_root_writes_belongs_to_the_owner_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda _, user, group: given.append((user, group)))
    files.replace(tmp_path / "note", b"new")
    files.create(tmp_path / "key", b"new")
    files.replace(tmp_path / "conf", b"new", owner=(7, 8))
    assert given == [files.owner_of(tmp_path), files.owner_of(tmp_path), (7, 8)]
