"""Socket folders of servers that are gone are removed, and no others."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.server import socket_folders
from hermes_memory_pgvector.server.socket_folders import SOCKET_NAME, UNTOUCHED_SECONDS


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder near the root: pytest's own are too deep for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="sockets-") as name:
        yield Path(name)


def _folder(parent: Path, name: str, *, is_old: bool = True, others: tuple[str, ...] = ()) -> Path:
    made = parent / name
    made.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(made / SOCKET_NAME))
    for other in (f"{SOCKET_NAME}.lock", *others):
        (made / other).write_text("1\n")
    if is_old:
        _age(made)
    return made


def _age(folder: Path) -> None:
    before = time.time() - UNTOUCHED_SECONDS - 60
    for each in (*folder.iterdir(), folder):
        os.utime(each, (before, before))


def test_only_folders_that_nobody_has_used_for_long_go(tmp_path: Path) -> None:
    parent = tmp_path / "p"
    parent.mkdir()
    gone = [_folder(parent, "run-dead"), parent / "run-empty"]
    gone[1].mkdir()
    _age(gone[1])
    elsewhere = _folder(tmp_path, "run-elsewhere")
    (parent / "run-link").symlink_to(elsewhere)
    kept = [
        _folder(parent, "run-new", is_old=False),
        _folder(parent, "run-with-a-stranger", others=("notes.txt",)),
        _folder(parent, "other-name"),
        parent / "run-link",
        elsewhere,
    ]
    (parent / "0123.dump").write_bytes(b"dump")
    starting = _folder(parent, "run-starting")
    socket_folders.touch(starting)
    alive = parent / "run-alive"
    alive.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(alive / SOCKET_NAME))
        server.listen(1)
        _age(alive)
        assert socket_folders.remove_stale(parent) == 2
    assert not any(folder.exists() for folder in gone)
    assert all(folder.exists() for folder in (*kept, starting, alive, parent / "0123.dump"))
    assert (elsewhere / SOCKET_NAME).exists()


def test_a_folder_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    assert socket_folders.remove_stale(tmp_path / "nowhere") == 0
