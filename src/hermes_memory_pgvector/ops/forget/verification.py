"""`forget --verify`: looks for what a receipt says is forgotten, everywhere it could be, and says where it found it.

Rows and journals are known by their marks, the same way as what comes in; a text that is given once more is looked for
in every text there is. What was said after the receipt is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from hermes_memory_pgvector.config.settings import MEBIBYTE
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.journal.frame import Frame
from hermes_memory_pgvector.journal.segment import list_directory, walk_file
from hermes_memory_pgvector.ops import belonging, journals
from hermes_memory_pgvector.ops.forget import bars, host, stored
from hermes_memory_pgvector.ops.forget.named import Needle
from hermes_memory_pgvector.ops.forget.stored import ANYTHING
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.server.folder import PostgresFolder
from hermes_memory_pgvector.store import gate, marks, receipts
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import WORK_REMAINS, Facts, Note
from hermes_memory_pgvector.values import WriteItem

SECONDS: Final = 3600.0
WINDOW: Final = 4 * MEBIBYTE
TABLES: Final = {"t": "turns", "m": "memories", "e": "events"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where it was looked for."""

    where: str = column("where")
    found: int = column("found", right=True, default=0)
    ours: bool = True
    """Whether we can take it out; what is the host's stays there."""
    remedy: str = column("what helps", rare=True, below=True, default="")


@dataclass(frozen=True, slots=True)
class Verified(Facts):
    """What is left of what a receipt says is forgotten."""

    receipt: int = column("receipt", default=0)
    forgotten_at: datetime | None = column("forgotten")
    named: tuple[str, ...] = column("named", default=())
    new: int = column("said since", rare=True, default=0)
    """In what was said later, which is new."""
    places: tuple[Place, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where nothing is left, 1 where something of ours is, 3 for what is the host's, or cannot be written."""
        left = [each for each in self.places if each.found]
        if any(each.ours for each in left):
            return 1
        return WORK_REMAINS if left or any(each.mark == "warning" for each in self.notes) else 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for."""

    opened: Gate
    known: Mapping[bytes, datetime]
    needle: Needle | None
    until: datetime
    theme: str | None

    def is_left(self, item: WriteItem, quoted: Sequence[str] = ()) -> bool:
        """Whether an item is something that should not be there."""
        if self.theme not in (None, item.theme):
            return False
        return stored.has_mark(item, self.opened, self.known) or (self.is_old(item) and self.says(item, quoted))

    def is_old(self, item: WriteItem) -> bool:
        """Whether it was said before."""
        return item.when.wall_us <= marks.micros(self.until)

    def says(self, item: WriteItem, quoted: Sequence[str] = ()) -> bool:
        """Whether it holds the text."""
        if self.needle is None:
            return False
        metadata = getattr(item, "metadata", {})
        texts = [*marks.texts_of(item), *marks.quotes_of(item), *quoted]
        return any(map(self.needle.is_in, texts)) or self.needle.without(metadata) != metadata


def verify(memory: Memory, number: int, match: str | None, theme: str | None) -> Verified:
    """Search everything that can be read."""
    needle = None if match is None else Needle(match)
    with memory.reading(seconds=SECONDS) as connection:
        receipt = receipts.find(connection, number)
        if receipt is None:
            raise CareError(f"there is no receipt {number}; `list receipts` shows them")
        opened = gate.look(connection)
        known = marks.of_receipt(connection, number)
        wanted = _Wanted(opened, known, needle, receipt.forgotten_at, theme)
        tables, new = _tables(connection, wanted)
        told = bars.lines(connection)
    homes = belonging.sharing(memory.home)
    # Whoever forgot may have been killed before the homes could remember it.
    notes = [*_notes(needle), *host.former(homes), *bars.keep(homes, told)]
    places = [*tables, *(place for home in homes for place in _of_home(home, wanted))]
    notes.append(_verdict(places))
    return Verified(number, receipt.forgotten_at, tuple(receipt.named), new, tuple(places), tuple(notes))


def _tables(connection: Connection, wanted: _Wanted) -> tuple[list[Place], int]:
    found: Counter[str] = Counter(dict.fromkeys((*TABLES.values(), "questions", "rejected", "reasons"), 0))
    new = 0
    for row in stored.everything(connection, wanted.theme):
        item = row.item
        found[TABLES[row.letter]] += wanted.is_left(item, row.quoted)
        new += row.letter != "e" and not wanted.is_old(item) and wanted.says(item)
    for _, payload, _ in stored.letters(connection):
        found["rejected"] += _is_in_payload(payload, wanted)
    if wanted.needle is not None:
        asked = {**ANYTHING, "theme": wanted.theme, "word": wanted.needle.word}
        questions = run(connection, "forget/recalls", **asked)
        found["questions"] = sum(at <= wanted.until and wanted.needle.is_in(query) for _, _, query, at in questions)
        found["reasons"] = sum(wanted.needle.is_in(reason) for _, reason in run(connection, "forget/reasons"))
    return [
        Place(f"table of {name}", count, remedy="forget it again" if count else "") for name, count in found.items()
    ], new


def _of_home(home: Path, wanted: _Wanted) -> Iterator[Place]:
    folder = journals.folder_of(home)
    left = 0
    segments = list_directory(folder).segments if folder.is_dir() else ()
    for segment in segments:
        for each in walk_file(segment.path, segment.writer):
            if isinstance(each, Frame):
                left += _is_in_payload(each.payload, wanted)
    yield Place(f"journals of {home}", left, remedy="forget it again" if left else "")
    needle = wanted.needle
    if needle is None:
        return
    paths = [path for path in _files(home) if path not in {each.path for each in segments}]
    held = sum(_holds(path, needle) for path in paths)
    yield Place(f"other files in {data_folder(home)}", held, remedy="look at them, and delete them" if held else "")
    for path, count in Counter(each.path for _, each in host.entries(home) if needle.is_in(each.content)).items():
        yield Place(str(path), count, ours=False, remedy="forget it again, or delete the entry there")
    sessions = Counter(each.session_id for each in host.messages([home], lambda _, text: needle.is_in(text)))
    for session, count in sorted(sessions.items()):
        yield Place(
            f"state.db of {home}, session {session}", count, ours=False, remedy=f"hermes sessions delete {session}"
        )  # fmt: skip


def _is_in_payload(payload: bytes, wanted: _Wanted) -> bool:
    items = stored.decoded(payload)
    if items is None:
        return wanted.needle is not None and wanted.needle.is_in(payload.decode("utf-8", "replace"))
    return any(wanted.is_left(item) for item in items)


def _files(home: Path) -> Iterator[Path]:
    """The files in the plugin's folder of a home, without those of the server and of other programs' libraries."""
    folder = data_folder(home)
    shelter = PostgresFolder(folder).data.parent
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink() and not path.is_relative_to(shelter):
            yield path


def _holds(path: Path, needle: Needle) -> bool:
    tail = ""
    try:
        with path.open("rb") as file:
            while part := file.read(WINDOW):
                text = tail + part.decode("utf-8", "replace")
                if needle.is_in(text):
                    return True
                tail = text[-1000:]
    except FileNotFoundError:
        # It was drained or replaced meanwhile.
        return False
    return False


def _notes(needle: Needle | None) -> Iterator[Note]:
    if needle is None:
        yield Note("note", "parts of texts were not looked for: give the text again with --match")
    yield Note(
        "note", "not looked into: backups, the server's own files (old row versions go with VACUUM, its log in time), "
        "replicas, and what a running agent has in its context",
    )  # fmt: skip


def _verdict(places: Sequence[Place]) -> Note:
    """The last line, from the same list as everything else."""
    ours = sum(each.found for each in places if each.ours)
    others = sum(each.found for each in places if not each.ours)
    if ours:
        return Note(
            "problem", f"{ours} left of what can be taken out" + (f", and {others} that hermes keeps" if others else "")
        )
    if others:
        return Note("warning", f"nothing is left but {others} that hermes keeps of its own")
    return Note("ok", "nothing of it is left")
