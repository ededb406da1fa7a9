"""The folders in which servers keep their sockets, outside the homes they serve: a deleted home leaves one behind.

A folder goes when nobody answers there and nothing in it was touched for two days: a running server touches its files
every hour, even one on another machine that shares this folder, and a starting one has just touched its folder.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from pathlib import Path

SOCKET_NAME = ".s.PGSQL.5432"
PREFIX = "run-"
UNTOUCHED_SECONDS = 2 * 86400
_FILES = (SOCKET_NAME, f"{SOCKET_NAME}.lock")
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def touch(folder: Path) -> None:
    """Say that a server is about to use a folder."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def remove_stale(parent: Path) -> int:
    """Remove the socket folders that no server uses any more; return how many went. Never raises."""
    removed = 0
    with contextlib.suppress(OSError):
        above = os.open(parent, _FLAGS)
        try:
            for name in _names(above):
                if name.startswith(PREFIX):
                    with contextlib.suppress(OSError):
                        removed += _remove_if_stale(above, parent, name)
        finally:
            os.close(above)
    return removed


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _remove_if_stale(above: int, parent: Path, name: str) -> bool:
    # By descriptor: whoever owns these folders cannot lead root elsewhere with a link.
    folder = os.open(name, _FLAGS, dir_fd=above)
    try:
        found = _names(folder)
        times = [os.fstat(folder).st_mtime]
        for file in found:
            status = os.lstat(file, dir_fd=folder)
            if file not in _FILES or not (stat.S_ISSOCK(status.st_mode) or stat.S_ISREG(status.st_mode)):
                return False
            times.append(status.st_mtime)
        if time.time() - max(times) < UNTOUCHED_SECONDS or _is_answered(parent / name / SOCKET_NAME):
            return False
        for file in found:
            os.unlink(file, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=above)
    return True


def _is_answered(path: Path) -> bool:
    """Whether somebody listens there; a server too busy to answer does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True
    return True
