"""The kind of fault in which other programs rewrite the configuration while agents write.

Some lives of the battery have no settings of their own: they read config.yaml of the home, as the host's processes do.
For as long as the fault lasts, that file and .env are rewritten as careless programs do it: emptied and filled in
pieces, removed and made again, cut off, in the wrong encoding, and now and then in one step with a changed value.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from hermes_memory_pgvector.server.folder import DATA_NAME

from .check import Verdict

SECONDS = 3.0
EVERY = 3
"""One life in so many reads its settings from the file."""


def write(home: Path, settings: dict[str, Any]) -> None:
    """The configuration as the operator has it; the database's address comes from .env in part."""
    (home / ".env").write_text("FAULTS_NAME=faults\n", encoding="utf-8")
    (home / "config.yaml").write_text(_text(settings, 5), encoding="utf-8")


def reads_file(number: int) -> bool:
    """Whether a life reads its settings from the home's file."""
    return number % EVERY == 1


def rewrite(home: Path, settings: dict[str, Any]) -> int:
    """Rewrite both files carelessly for a while, and leave them as they should be; returns how often."""
    config, env = home / "config.yaml", home / ".env"
    ways: tuple[Callable[[Path, bytes], None], ...] = (_in_pieces, _anew, _emptied, _broken, _replaced)
    end, done = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        ways[done % len(ways)](config, _text(settings, 1 + done // len(ways) % 9).encode())
        if done % 7 == 0:
            ways[done % 3](env, "FAULTS_NAME=faults\n# gr\xf6\xdfer\n".encode("latin-1" if done % 2 else "utf-8"))
        done += 1
        time.sleep(0.01)
    write(home, settings)
    return done


def check(home: Path) -> list[Verdict]:
    """No torn file may have sent anybody to a database of the home's own."""
    made = (home / "pgvector" / DATA_NAME).exists()
    figure = "one was made" if made else "none was made"
    return [Verdict("a rewritten configuration sends nobody to another database", figure, not made)]


def _text(settings: dict[str, Any], limit: int) -> str:
    dsn = str(settings["dsn"]).replace("dbname=faults", "dbname=${FAULTS_NAME}")
    section = {**settings, "dsn": dsn, "prefetch_limit": limit}
    return yaml.safe_dump({"memory": {"provider": "pgvector", "pgvector": section}, "model": "any"}, sort_keys=False)


def _in_pieces(path: Path, data: bytes) -> None:
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(data), 64):
            file.write(data[start : start + 64])
            time.sleep(0.001)


def _anew(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    time.sleep(0.01)
    path.write_bytes(data)


def _emptied(path: Path, data: bytes) -> None:
    path.write_bytes(b"")
    time.sleep(0.02)
    path.write_bytes(data)


def _broken(path: Path, data: bytes) -> None:
    path.write_bytes(data[: len(data) // 2] + b"\xff: [")
    time.sleep(0.05)
    path.write_bytes(data)


def _replaced(path: Path, data: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(data)
    new.replace(path)
