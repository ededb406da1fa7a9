"""Proof that something is forgotten: every table, every file that can be read, and what cannot be looked at by name.

A receipt keeps no text. Without the text, whole entries, turns and records are recognised by their keyed hashes, and
what is in files by forgotten parts; with it (`match`), every column of every table and every byte of the files is
searched, too. A search finds exactly what forgetting a text erases: what was said until then and the metadata of that.
Names of themes, sessions and homes are told apart, and so is what was said afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from hermes_memory_pgvector.care import leftovers
from hermes_memory_pgvector.care.forgetting import JOURNAL_NAME, database_homes, items_of_payload
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.journal.redaction import damaged_files, items_in, unreadable_in
from hermes_memory_pgvector.journal.segment import list_directory
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
from hermes_memory_pgvector.mirror.memory_file import read as read_entries
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.server.folder import PostgresFolder
from hermes_memory_pgvector.store import erasure, receipts
from hermes_memory_pgvector.store.receipts import FoundTexts, Receipt
from hermes_memory_pgvector.store.selection import NAMES, Selection, contains, spellings, stamps_of, texts_of
from hermes_memory_pgvector.store.tombstones import Tombstones, micros
from hermes_memory_pgvector.values import WriteItem

VERIFY_SECONDS = 3600.0
WINDOW = 8 * 1024 * 1024
NAMES_OF_ITEMS = ("theme", "session_id", "child_session_id", "parent_session_id", "home_id")


@dataclass(frozen=True, slots=True)
class Check:
    """One place that was searched."""

    where: str
    found: int
    """-1 when it could not be searched."""
    is_text: bool = False
    """Whether a text was looked for that was given, and not what the receipt knows."""


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
    besides: tuple[str, ...]
    """Where the text stands, and is no leftover."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found, and the receipt is whole."""
        is_whole = self.is_intact and self.receipt.finished_at is not None
        return is_whole and not any(each.found > 0 for each in self.checks)


def verify(
    pool: Pool, home: Path, settings: Settings, number: int, match: str | None, themes: Sequence[str] = ()
) -> Verification:
    """Search everything that can be read for what a receipt says is forgotten."""
    wanted: Text | None = None
    texts: dict[str, FoundTexts] = {}
    with pool.transaction(Deadline.after(VERIFY_SECONDS)) as connection:
        receipt = receipts.find(connection, number)
        if receipt is None:
            raise ConfigError(f"there is no receipt {number}; see: hermes-pgvector forget --receipts")
        known = receipts.tombstones_of(connection, number)
        digest = receipts.seal(number, receipt.forgotten_at, receipt.named, receipt.counts, sorted(known.found))
        tables = receipts.leftovers(connection, number)
        letters = [payload for _, payload in erasure.dead_letters(connection)]
        tables["dead_letters"] = _count([item for each in letters for item in items_of_payload(each)], known)
        if match is not None:
            wanted = Text(match, receipt.forgotten_at, tuple(themes), known.aliases)
            texts = receipts.texts_in_tables(connection, spellings(match), themes, receipt.forgotten_at)
            held = sum(map(wanted.is_in_record, letters))
            texts["dead_letters"] = replace(texts["dead_letters"], rows=held)
    for name, found in texts.items():
        if found.rows >= 0 and _means_everywhere(receipt, themes):
            tables[name] = max(found.rows, tables.get(name, 0))
        else:
            tables.setdefault(name, min(found.rows, 0))
    homes = database_homes(home)
    selections = [Selection(match=match)] if match is not None else []
    files = list(_files(homes, known, wanted))
    return Verification(
        receipt,
        digest == receipt.digest,
        (
            *(Check(f"table {name}", count) for name, count in sorted(tables.items())),
            *(each for each in files if _means_everywhere(receipt, themes) or not each.is_text),
        ),
        tuple(_server_files(home, settings, match)),
        tuple(
            line
            for each in homes
            for line in leftovers.standing([each], settings, selections, _forgotten_entries(each, settings, known))
        ),
        (*_not_searched(settings, match), *leftovers.BEYOND),
        tuple(_besides(receipt, texts, files, themes)),
    )


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is looked for in files: in whatever was said until a time, and not in names."""

    match: str
    until: datetime
    themes: tuple[str, ...]
    aliases: Mapping[str, str]

    def is_in_record(self, payload: bytes) -> bool:
        """Whether a record has it; one that cannot be read, by its bytes."""
        try:
            items = codec.decode(payload)
        except ValueError:
            return any(each.encode() in payload for each in spellings(self.match))
        return any(map(self.is_in, items))

    def is_in(self, item: WriteItem) -> bool:
        """Whether an item has it."""
        if self.is_excused(item):
            return False
        quoted = [getattr(item, name, None) or "" for name in ("old_text", "previous")]
        return any(contains(text, self.match) for text in (*texts_of(item), *quoted, *_stamps(item)))

    def is_excused(self, item: WriteItem) -> bool:
        """Whether an item was said later, or belongs to another theme than those asked for."""
        is_other = bool(self.themes) and self.aliases.get(item.theme, item.theme) not in self.themes
        return is_other or item.when.wall_us > micros(self.until)

    def excused(self, items: Sequence[WriteItem]) -> list[bytes]:
        """What may hold the text in the bytes of these items: names, and what was said later; the longest first."""
        told: set[str] = set()
        for item in items:
            names = (getattr(item, name, None) for name in NAMES_OF_ITEMS)
            told |= {name for name in names if isinstance(name, str)}
            told |= {str(value) for key, value in getattr(item, "metadata", {}).items() if key in NAMES}
            if self.is_excused(item):
                told |= {*texts_of(item), *_stamps(item)}
                told |= {text for name in ("old_text", "previous") if (text := getattr(item, name, None))}
        holding = [text for text in told if contains(text, self.match)]
        forms = {form.encode("utf-8", "surrogatepass") for text in holding
                 for form in (text, json.dumps(text, ensure_ascii=False)[1:-1])}  # fmt: skip
        return sorted(forms, key=len, reverse=True)


def _means_everywhere(receipt: Receipt, themes: Sequence[str]) -> bool:
    """Whether a text that is found is a leftover: not where a session, a time or rows were named with it."""
    told = {"match", "theme", "identities"} if themes else {"match"}
    return set(receipt.named) <= told


def _besides(
    receipt: Receipt, texts: Mapping[str, FoundTexts], files: Sequence[Check], themes: Sequence[str]
) -> Iterator[str]:
    """Where the text stands and is no leftover."""
    newer = {name: each.newer for name, each in texts.items() if each.newer > 0}
    if newer:
        told = ", ".join(f"{count} in {name}" for name, count in sorted(newer.items()))
        yield f"said after it was forgotten, and so new: {told}"
    names = sum(each.in_names for each in texts.values() if each.in_names > 0)
    if names:
        yield f"names alone (of themes, sessions or homes) in {names} rows: forget those by --theme or --session"
    if texts and not _means_everywhere(receipt, themes):
        held = {name: each.rows for name, each in texts.items() if each.rows > 0}
        held |= {each.where: each.found for each in files if each.is_text and each.found > 0}
        if held:
            told = ", ".join(f"{count} in {name}" for name, count in sorted(held.items()))
            yield (
                f"this receipt was asked for by {' and '.join(receipt.named)}, so the text may stand elsewhere: {told};"
                " give --theme to search in one alone"
            )


def _files(homes: Sequence[Path], known: Tombstones, text: Text | None) -> Iterator[Check]:
    for home in homes:
        folder = data_folder(home)
        place = folder / JOURNAL_NAME
        found = unreadable = unread = 0
        items: list[WriteItem] = []
        if place.is_dir():
            segments = [(each.path, each.writer) for each in list_directory(place).segments] + damaged_files(place)
            for path, writer in segments:
                part = [item for items in items_in(path, writer) for item in items]
                found += _count(part, known)
                items += part if text is not None else ()
                unreadable += sum(1 for _ in unreadable_in(path, writer))
        yield Check(f"journal of {home}", found)
        if unreadable and text is None:
            yield Check(f"{unreadable} unreadable parts of journal files of {home}", -1)
        if text is None:
            continue
        needles, excused = [each.encode() for each in spellings(text.match)], text.excused(items)
        if place.is_dir():
            holding, closed = _search(place.iterdir(), needles, excused)
            unread += closed
            yield Check(f"bytes of the journal of {home}", holding, is_text=True)
        if unread:
            yield Check(f"{unread} files of {home} that cannot be read", -1)


def _stamps(item: WriteItem) -> list[str]:
    return list(stamps_of(getattr(item, "metadata", {})))


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


def _search(paths: Iterable[Path], needles: Sequence[bytes], excused: Sequence[bytes] = ()) -> tuple[int, int]:
    """How many of these files hold one of the texts, and how many cannot be read."""
    found = unread = 0
    for path in paths if needles else ():
        try:
            found += path.is_file() and _holds(path, needles, excused)
        except FileNotFoundError:
            # It was drained or replaced meanwhile.
            continue
        except OSError:
            unread += 1
    return found, unread


def _holds(path: Path, needles: Sequence[bytes], excused: Sequence[bytes] = ()) -> bool:
    """Whether a file holds one of the texts otherwise than in what is excused."""
    if excused:
        data = path.read_bytes()
        for each in excused:
            data = data.replace(each, b" " * len(each))
        return any(needle in data for needle in needles)
    overlap = max(map(len, needles))
    with path.open("rb") as file:
        tail = b""
        while part := file.read(WINDOW):
            data = tail + part
            if any(needle in data for needle in needles):
                return True
            tail = data[-overlap:]
    return False
