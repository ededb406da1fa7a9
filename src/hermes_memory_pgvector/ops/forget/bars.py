"""What a home remembers of what was forgotten, so that a restored backup does not bring it back.

`forgotten.bars` lies in the home's folder and is only added to: a line for each mark, with the installation that makes
such marks, its time and its receipt. A database that is restored gets the marks of its installation, and whatever has
one of them goes before anybody uses it.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hermes_memory_pgvector import files
from hermes_memory_pgvector.ops.forget import marked, rows
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import gate, marks

NAME: Final = "forgotten.bars"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def append(folder: Path, key: bytes, receipt: int, made: Mapping[bytes, datetime]) -> None:
    """Remember marks in the folder of a home."""
    if not folder.is_dir():
        return
    own = _name_of(key)
    lines = "".join(f"{own} {mark.hex()} {marks.micros(until)} {receipt}\n" for mark, until in made.items())
    handle = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(handle, "ab") as file:  # noqa: PTH123 - a descriptor
        files.give(file.fileno(), files.owner_of(folder))
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def apply(connection: Connection, folders: Iterable[Path]) -> dict[str, int]:
    """Take out of a restored database what these homes remember to be forgotten; how much there was."""
    gate.close(connection)
    own = _name_of(marks.key(connection))
    by_receipt: dict[int, dict[bytes, datetime]] = defaultdict(dict)
    for folder in folders:
        for key, mark, until, receipt in _lines(folder / NAME):
            if key == own:
                known = by_receipt[receipt]
                known[mark] = max(until, known.get(mark, until))
    for receipt, made in by_receipt.items():
        marks.insert(connection, receipt, made)
    if not by_receipt:
        return {}
    told = {mark: until for made in by_receipt.values() for mark, until in made.items()}
    found = marked.find(connection, gate.look(connection), told)
    rows.erase(connection, found, ())
    return {name: count for name, count in found.counts().items() if count}


def _lines(path: Path) -> Iterator[tuple[str, bytes, datetime, int]]:
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        words = line.split()
        # The machine may have ended while a line was written.
        if len(words) == len(("key", "mark", "until", "receipt")):
            key, mark, until, receipt = words
            yield key, bytes.fromhex(mark), EPOCH + timedelta(microseconds=int(until)), int(receipt)


def _name_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]
