"""What was forgotten goes from the files of a home, too: journals.

A running process cleans its own files when a command asks it to, by a small file that names the receipt, and when it
starts: another home that shares the database may have been asked.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hermes_memory_pgvector import files
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.journal.redaction import items_of_folder, redact_folder
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import gate, memories, receipts
from hermes_memory_pgvector.store.erasure import Erased
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.store.memory_erasure import added, removed
from hermes_memory_pgvector.store.memory_state import Entry, State, fold, select
from hermes_memory_pgvector.store.selection import Selection, stamps_of
from hermes_memory_pgvector.store.tombstones import Tombstones
from hermes_memory_pgvector.text.secrets import Masker
from hermes_memory_pgvector.values import (
    AddMemory,
    JudgeMemories,
    MemoryOperation,
    RemoveMemory,
    ReplaceMemory,
    Target,
    UndoTurns,
    WriteItem,
)
from hermes_memory_pgvector.writer.masking import without_secrets

_Item = TypeVar("_Item", bound=WriteItem)

logger = logging.getLogger(__name__)

REQUEST_NAME = "forget-request.json"
CLEANED_NAME = "forgotten.json"
LOOK_SECONDS = 2.0
RECHECK_SECONDS = 600.0
DATABASE_SECONDS = 60.0
SEAL_SECONDS = 5.0
MIN_BLANKED = 4
"""Shorter texts are everywhere: in bytes that nobody can read they are not looked for."""


def ask(folder: Path, receipt: int) -> None:
    """Ask the running processes of a home to forget."""
    files.replace(folder / REQUEST_NAME, json.dumps({"receipt": receipt}).encode())


def asked(folder: Path) -> int:
    """The receipt that the processes of this home were last asked for; 0 for none."""
    return _number(folder / REQUEST_NAME)


def cleaned(folder: Path) -> int:
    """The newest receipt that the files of this home were cleaned for, by a process that may have ended since."""
    return _number(folder / CLEANED_NAME)


def note_cleaned(folder: Path, receipt: int) -> None:
    """Remember that the files of this home were cleaned; what cannot be noted is only done again."""
    with suppress(OSError):
        files.replace(folder / CLEANED_NAME, json.dumps({"receipt": receipt}).encode(), is_durable=False)


def _number(path: Path) -> int:
    try:
        return int(json.loads(files.look(path).data)["receipt"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return 0


class Judge:
    """Says what becomes of items in files: what has a tombstone goes, and what an operator has just named."""

    def __init__(
        self,
        pool: Pool,
        selections: Sequence[Selection] = (),
        until_us: int = 0,
        erased: Erased | None = None,
        waiting: Iterable[WriteItem] = (),
        masker: Masker | None = None,
    ) -> None:
        self._pool = pool
        self._masker = masker
        """Files hold secrets that the database does not: what is stored is known without them."""
        self._selections = selections
        self._until_us = until_us
        self._texts = frozenset(text for text in (erased.texts if erased else ()) if text.strip())
        self._entries = frozenset(erased.entries if erased else ())
        self._waiting = [item for item in waiting if isinstance(item, MemoryOperation)]
        """Operations on memories in all files: what one of them means may depend on another."""

    def naming(self, item: WriteItem, opened: Gate) -> Iterator[Selection]:
        """What the operator said that means this item."""
        if self._is_new(item):
            return
        told = opened.renamed(item)
        for selection in self._selections:
            if selection.before is not None and item.when.wall_us >= selection.before.timestamp() * 1e6:
                continue
            if selection.covers(told):
                yield selection

    def __call__(self, items: Sequence[WriteItem]) -> list[WriteItem | None]:
        """What becomes of each item."""
        if not items:
            return []
        with self._pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            opened = gate.look(connection)
            known = opened.tombstones(connection, [*items, *map(self._masked, items)])
            states = _States(connection, opened, self._still_waiting(connection, opened))
            return [self._judged(item, known, opened, states) for item in items]

    def blank(self, data: bytes) -> bytes:
        """Bytes that are no record, with forgotten texts blanked out."""
        for text in self._texts:
            for form in (text.encode("utf-8", "surrogatepass"), json.dumps(text, ensure_ascii=False)[1:-1].encode()):
                if len(form) >= MIN_BLANKED and form in data:
                    data = data.replace(form, b" " * len(form))
        for selection in self._selections:
            for needle in selection.needles or ():
                form = needle.encode()
                data = data.replace(form, b" " * len(form))
        return data

    def _masked(self, item: WriteItem) -> WriteItem:
        return item if self._masker is None else without_secrets(item, self._masker)

    def _is_new(self, item: WriteItem) -> bool:
        """Whether it was said after the request; what is dated later than now has only a wrong date."""
        return self._until_us < item.when.wall_us <= time.time() * 1e6

    def _judged(self, item: WriteItem, known: Tombstones, opened: Gate, states: _States) -> WriteItem | None:
        is_named = any(True for _ in self.naming(item, opened))
        stored = self._masked(item)
        is_forgotten = is_named or known.refuses(item) or known.refuses(stored)
        if not isinstance(item, ReplaceMemory | RemoveMemory):
            return None if is_forgotten else self._unstamped(item, known, opened)
        if known.refuses_scope(item) or (is_forgotten and isinstance(item, RemoveMemory)):
            return None
        kept: ReplaceMemory | RemoveMemory | AddMemory | None = item
        assert isinstance(stored, ReplaceMemory | RemoveMemory)
        if known.quotes(item) or known.quotes(stored) or self._quotes(stored, opened):
            meant = states.meant(stored)
            if meant is None or self._is_gone(meant, item, opened):
                kept = _exact(item, None)
            elif stored is item:
                kept = _exact(item, meant)
        if is_forgotten and isinstance(kept, ReplaceMemory):
            kept = removed(kept, kept.previous, kept.old_text)
        elif is_forgotten:
            kept = None
        return None if kept is None else self._unstamped(kept, known, opened)

    def _quotes(self, item: ReplaceMemory | RemoveMemory, opened: Gate) -> bool:
        """Whether an operation quotes an entry of its theme that is forgotten, or the text that is."""
        if self._is_new(item):
            return False
        told = opened.renamed(item)
        quoted = {text.strip() for text in (item.old_text, item.previous or "")} - {""}
        if any(text in entry for theme, target, entry in self._entries for text in quoted
               if (theme, target) == (told.theme, told.target)):  # fmt: skip
            return True
        return any(
            selection.is_about(told) and selection.tells(text) for selection in self._selections for text in quoted
        )

    def _is_gone(self, entry: Entry, item: ReplaceMemory | RemoveMemory, opened: Gate) -> bool:
        """Whether an entry that an operation means is forgotten itself."""
        told = opened.renamed(item)
        if (told.theme, told.target, entry.content) in self._entries:
            return True
        return any(each.is_about(told) and each.tells(entry.content) for each in self._selections)

    def _unstamped(self, item: _Item, known: Tombstones, opened: Gate) -> _Item:
        """The item, without a forgotten text in its metadata."""
        if isinstance(item, UndoTurns | JudgeMemories) or not item.metadata or (self._is_new(item) and not known.found):
            return item
        told = opened.renamed(item)
        named = [] if self._is_new(item) else [
            each for each in self._selections if each.match is not None and not each.names_rows and each.is_about(told)
        ]  # fmt: skip
        kept = {
            key: value
            for key, value in item.metadata.items()
            if not any(
                known.tells(item, text) or any(selection.tells(text) for selection in named)
                for text in stamps_of({key: value})
            )
        }
        return item if len(kept) == len(item.metadata) else replace(item, metadata=kept)

    def _still_waiting(self, connection: Connection, opened: Gate) -> list[MemoryOperation]:
        """The operations in files that go on to say something."""
        known = opened.tombstones(connection, self._waiting)
        return [
            item
            for item in self._waiting
            if not known.refuses(item) and not any(True for _ in self.naming(item, opened))
        ]


class _States:
    """What themes hold, or held when an operation was made; read only for operations that quote."""

    def __init__(self, connection: Connection, opened: Gate, waiting: Sequence[MemoryOperation]) -> None:
        self._connection = connection
        self._opened = opened
        self._waiting = waiting
        self._known: dict[tuple[str, Target], tuple[list[MemoryOperation], State]] = {}

    def meant(self, item: ReplaceMemory | RemoveMemory) -> Entry | None:
        """The entry that an operation means, of those that are there; None when it means none of them."""
        told = self._opened.renamed(item)
        operations, entries = self._of(told.theme, told.target)
        earlier = fold(each for each in operations if each.when.order_us < item.when.order_us)
        return select(earlier, told) or select(entries, told)

    def _of(self, theme: str, target: Target) -> tuple[list[MemoryOperation], State]:
        if (theme, target) not in self._known:
            stored = [each.operation for each in memories.history(self._connection, theme, target)]
            places = {each.when.order_us for each in stored}
            renamed = map(self._opened.renamed, self._waiting)
            beside = [each for each in renamed if (each.theme, each.target) == (theme, target)]
            new = [each for each in beside if each.when.order_us not in places]
            operations = sorted([*stored, *new], key=lambda each: each.when.order_us)
            self._known[theme, target] = operations, memories.entries(self._connection, theme, target)
        return self._known[theme, target]


def _exact(item: ReplaceMemory | RemoveMemory, meant: Entry | None) -> MemoryOperation | None:
    """An operation that quotes nothing but the entry it means; what means none only adds, or does nothing."""
    if meant is None:
        return added(item) if isinstance(item, ReplaceMemory) else None
    previous = item.previous if item.previous == meant.content else None
    old_text = item.old_text if item.old_text.strip() in meant.content else ""
    is_same = (previous, old_text) == (item.previous, item.old_text)
    return item if is_same else replace(item, previous=previous, old_text=old_text)


class CleanFiles:
    """Cleans this process's files when it is asked to, and when something was forgotten from another home."""

    def __init__(self, folder: Path, pool: Pool, journal: Journal, masker: Masker) -> None:
        self.sealed_below: float = 0
        """The files of this process's journal below this number no longer change."""
        self.receipt = cleaned(folder)
        """The newest receipt that this process's files were cleaned for."""
        self._folder = folder
        self._pool = pool
        self._journal = journal
        self._masker = masker
        self._looked_at = float("-inf")
        self._looked_upto = -1
        self._left_for: float | None = None
        """How long to wait before looking at files once more that somebody held; None when there were none."""

    def run(self) -> float:
        """Look whether there is something to clean."""
        now = time.monotonic()
        is_asked = asked(self._folder) > self.receipt
        is_due = now - self._looked_at >= RECHECK_SECONDS and self._journal.end != self._looked_upto
        is_left = self._left_for is not None and now - self._looked_at >= self._left_for
        if not is_asked and not is_due and not is_left:
            return LOOK_SECONDS
        with self._pool.connection(Deadline.after(DATABASE_SECONDS)) as connection:
            newest = receipts.newest(connection)
        self._looked_at, self._looked_upto = now, self._journal.end
        if newest > self.receipt or is_left:
            if self._clean():
                # The journal of an ended process is locked while somebody sends what it holds.
                self._left_for = min(RECHECK_SECONDS, 2 * (self._left_for or LOOK_SECONDS / 2))
            else:
                self._left_for = None
                note_cleaned(self._folder, newest)
        self.receipt = max(newest, asked(self._folder))
        return 0.0

    def _clean(self) -> bool:
        """Take out what is forgotten; whether some of it is in files that another process holds."""
        self.sealed_below = self._journal.seal(Deadline.after(SEAL_SECONDS))
        judge = Judge(self._pool, waiting=items_of_folder(self._journal.directory), masker=self._masker)
        sealed = {self._journal.writer: self.sealed_below}
        done = redact_folder(self._journal.directory, judge, judge.blank, sealed_below=sealed)
        if done.items:
            logger.info("%d forgotten items were taken out of this home's files", done.items)
        return bool(done.left)
