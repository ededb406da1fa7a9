"""What a home remembers of what was forgotten, so that a restored backup does not bring it back.

`forgotten.bars` lies in the home's folder and is only added to: a line for each mark, with the installation that makes
such marks, its time and its receipt. It follows the database, and nothing is in it that was not forgotten there. A
database that is restored gets the marks of its installation, and whatever has one of them goes before anybody uses it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.ops.forget import rows
from hermes_memory_pgvector.ops.forget.rows import Findings
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import gate, marks, receipts
from hermes_memory_pgvector.terminal.operation import Note

NAME: Final = "forgotten.bars"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def lines(connection: Connection) -> list[str]:
    """All that was forgotten by name in a database, as a home remembers it."""
    own = _name_of(marks.key(connection))
    named = marks.named(connection, receipts.of_expiry(connection))
    return [f"{own} {mark.hex()} {marks.micros(until)} {receipt}" for mark, until, receipt in named]


def keep(homes: Iterable[Path], told: Sequence[str]) -> list[Note]:
    """Add to the files of these homes the lines that they do not have; those that cannot be written, in words.

    Only what is committed may come here. Whoever was killed before this leaves it to the next one.
    """
    unwritten = []
    for folder in (data_folder(home) for home in homes):
        try:
            if told and folder.is_dir():
                _add(folder, told)
        except OSError as error:
            text = f"{folder / NAME} was not written ({error.strerror}): a backup of before would bring it back"
            unwritten.append(Note("warning", text, "mend that, and forget again or prove the receipt: both write it"))
    return unwritten


def apply(connection: Connection, folders: Iterable[Path]) -> Findings:
    """Take out of a restored database what these homes remember to be forgotten; what there was."""
    gate.close(connection)
    own = _name_of(marks.key(connection))
    by_receipt: dict[int, dict[bytes, datetime]] = defaultdict(dict)
    for folder in folders:
        for key, mark, until, receipt in _lines(folder / NAME):
            if key == own:
                known = by_receipt[receipt]
                known[mark] = max(until, known.get(mark, until))
    for _ in buckets.within(connection):
        for receipt, made in by_receipt.items():
            marks.insert(connection, receipt, made)
    if not by_receipt:
        return Findings()
    told = {mark: until for made in by_receipt.values() for mark, until in made.items()}
    found = rows.find_marked(connection, gate.look(connection), told)
    rows.erase(connection, found, ())
    return found


def _add(folder: Path, told: Sequence[str]) -> None:
    path = folder / NAME
    known = dict.fromkeys(path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ())
    if set(told) - set(known):
        text = "".join(f"{line}\n" for line in known | dict.fromkeys(told))
        files.replace(path, text.encode(), owner=files.owner_of(folder))


def _lines(path: Path) -> Iterator[tuple[str, bytes, datetime, int]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        words = line.split()
        if len(words) == len(("key", "mark", "until", "receipt")):
            key, mark, until, receipt = words
            yield key, bytes.fromhex(mark), EPOCH + timedelta(microseconds=int(until)), int(receipt)


def _name_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]
