"""Proof that something is forgotten: every table, every file that can be read, and what cannot be looked at by name.

A receipt keeps no text. Without the text, whole entries, turns and records are recognised by their keyed hashes; with
it (`match`), every column of every table and every byte of the files is searched, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.capture import refusal_notes
from hermes_memory_pgvector.capture.refused_writes import noted_items
from hermes_memory_pgvector.care import leftovers
from hermes_memory_pgvector.care.forgetting import JOURNAL_NAME, database_homes, items_of_payload
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.journal.redaction import damaged_files, items_in, unreadable_in
from hermes_memory_pgvector.journal.segment import list_directory
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
from hermes_memory_pgvector.mirror.memory_file import read as read_entries
from hermes_memory_pgvector.server.folder import PostgresFolder
from hermes_memory_pgvector.store import erasure, receipts
from hermes_memory_pgvector.store.erasure import Selection, spellings
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import OVERVIEW
from hermes_memory_pgvector.store.receipts import Receipt
from hermes_memory_pgvector.store.tombstones import Tombstones
from hermes_memory_pgvector.values import WriteItem

VERIFY_SECONDS = 3600.0
WINDOW = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One place that was searched."""

    where: str
    found: int
    """-1 when it could not be searched."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What the search found."""

    receipt: Receipt
    is_intact: bool
    """Whether the receipt and all its tombstones are as they were."""
    checks: tuple[Check, ...]
    server_files: tuple[Check, ...]
    """The server's own files, which hold old versions of rows for a while."""
    standing: tuple[leftovers.Line, ...]
    """Lines of the host's files that hold it still."""
    unverified: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found, and the receipt is whole."""
        is_whole = self.is_intact and self.receipt.finished_at is not None
        return is_whole and not any(each.found > 0 for each in self.checks)


def verify(pool: Pool, home: Path, settings: Settings, number: int, match: str | None) -> Verification:
    """Search everything that can be read for what a receipt says is forgotten."""
    with pool.transaction(Deadline.after(VERIFY_SECONDS), reach=OVERVIEW) as connection:
        receipt = receipts.find(connection, number)
        if receipt is None:
            raise ConfigError(f"there is no receipt {number}; see: hermes-pgvector forget --receipts")
        known = receipts.tombstones_of(connection, number)
        hashes = sorted(known.found)
        digest = receipts.seal(number, receipt.forgotten_at, receipt.named, receipt.counts, hashes)
        tables = receipts.leftovers(connection, number)
        letters = [item for _, payload in erasure.dead_letters(connection) for item in items_of_payload(payload)]
        tables["dead_letters"] = _count(letters, known)
        if match is not None:
            for name, count in erasure.texts_in_tables(connection, spellings(match)).items():
                tables[name] = max(count, tables.get(name, 0)) if count >= 0 else tables.get(name, -1)
    homes = database_homes(home)
    selections = [Selection(match=match)] if match is not None else []
    return Verification(
        receipt,
        digest == receipt.digest,
        (
            *(Check(f"table {name}", count) for name, count in sorted(tables.items())),
            *_files(homes, settings, known, match),
        ),
        tuple(_server_files(home, settings, match)),
        tuple(
            line
            for each in homes
            for line in leftovers.standing([each], settings, selections, _forgotten_entries(each, settings, known))
        ),
        (*_not_searched(settings, match), *leftovers.BEYOND),
    )


def _files(homes: Sequence[Path], settings: Settings, known: Tombstones, match: str | None) -> Iterator[Check]:
    for home in homes:
        folder = data_folder(home)
        place = folder / JOURNAL_NAME
        needles = [] if match is None else [each.encode() for each in spellings(match)]
        found = raw = unreadable = unread = 0
        if place.is_dir():
            segments = [(each.path, each.writer) for each in list_directory(place).segments] + damaged_files(place)
            for path, writer in segments:
                found += _count([item for items in items_in(path, writer) for item in items], known)
                unreadable += sum(1 for _ in unreadable_in(path, writer))
            raw, unread = _search(place.iterdir(), needles)
        yield Check(f"journal of {home}", max(found, raw))
        if unreadable and match is None:
            yield Check(f"{unreadable} unreadable parts of journal files of {home}", -1)
        notes = folder / refusal_notes.FOLDER_NAME
        noted = _count(list(noted_items(home, folder, max_chars=settings.turn_max_chars)), known)
        if notes.is_dir():
            holding, closed = _search(notes.iterdir(), needles)
            noted, unread = max(noted, holding), unread + closed
        yield Check(f"refused writes of {home}", noted)
        if unread:
            yield Check(f"{unread} files of {home} that cannot be read", -1)


def _count(items: Sequence[WriteItem], known: Tombstones) -> int:
    return sum(map(known.refuses, items))


def _forgotten_entries(home: Path, settings: Settings, known: Tombstones) -> set[str]:
    entries = [
        entry
        for name in FILE_NAMES.values()
        for entry in read_entries(home / "memories" / name, settings.memory_max_chars) or []
    ]
    return {entry for entry in entries if known.forgets_entry(entry) is not None}


def _server_files(home: Path, settings: Settings, match: str | None) -> Iterator[Check]:
    """The embedded server's data, as far as it can be read."""
    if match is None or settings.dsn:
        return
    data = PostgresFolder(data_folder(home)).data
    needles = [each.encode() for each in spellings(match)]
    for name in ("base", "pg_wal", "global"):
        found, unread = _search((data / name).rglob("*"), needles) if (data / name).is_dir() else (0, 0)
        yield Check(f"the server's {name} files", found)
        if unread:
            yield Check(f"{unread} of the server's {name} files, which cannot be read", -1)


def _not_searched(settings: Settings, match: str | None) -> Iterator[str]:
    if match is None:
        yield "parts of texts, and bytes that are no record: give the text again with --match to search for them"
    if settings.dsn:
        yield "the server's own files: this command does not run on the server"


def _search(paths: Iterable[Path], needles: Sequence[bytes]) -> tuple[int, int]:
    """How many of these files hold one of the texts, and how many cannot be read."""
    found = unread = 0
    for path in paths if needles else ():
        try:
            found += path.is_file() and _holds(path, needles)
        except FileNotFoundError:
            # It was drained or replaced meanwhile.
            continue
        except OSError:
            unread += 1
    return found, unread


def _holds(path: Path, needles: Sequence[bytes]) -> bool:
    overlap = max(map(len, needles))
    with path.open("rb") as file:
        tail = b""
        while part := file.read(WINDOW):
            data = tail + part
            if any(needle in data for needle in needles):
                return True
            tail = data[-overlap:]
    return False
