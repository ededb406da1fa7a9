"""What was forgotten goes from the files of a home, too: journals, and the notes of refused writes.

A running process cleans its own files when a command asks it to, by a small file that names the receipt, and when it
starts: another home that shares the database may have been asked.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.capture.refused_writes import Refusals
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.journal.redaction import redact_folder
from hermes_memory_pgvector.store import receipts
from hermes_memory_pgvector.store.erasure import Selection
from hermes_memory_pgvector.store.gate import keys_of
from hermes_memory_pgvector.store.memory_erasure import added, removed
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.tombstones import Tombstones
from hermes_memory_pgvector.values import RemoveMemory, ReplaceMemory, WriteItem

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
        self, pool: Pool, selections: Sequence[Selection] = (), until_us: int = 0, texts: Collection[str] = ()
    ) -> None:
        self._pool = pool
        self._selections = selections
        self._until_us = until_us
        self._texts = frozenset(text for text in texts if text.strip())
        self._told = "\0".join(self._texts)

    def is_named(self, item: WriteItem) -> bool:
        """Whether the operator means this item."""
        return any(True for _ in self.naming(item))

    def naming(self, item: WriteItem) -> Iterator[Selection]:
        """What the operator said that means this item."""
        if item.when.wall_us > self._until_us:
            return
        for selection in self._selections:
            if selection.before is not None and item.when.wall_us >= selection.before.timestamp() * 1e6:
                continue
            if selection.covers(item):
                yield selection

    def __call__(self, items: Sequence[WriteItem]) -> list[WriteItem | None]:
        """What becomes of each item."""
        if not items:
            return []
        with self._pool.connection(Deadline.after(DATABASE_SECONDS)) as connection:
            keys = keys_of(connection)
            known = Tombstones.concerning(connection, keys, items)
        return [self._judged(item, known) for item in items]

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

    def _judged(self, item: WriteItem, known: Tombstones) -> WriteItem | None:
        is_forgotten = known.refuses(item) or self.is_named(item)
        if not isinstance(item, ReplaceMemory | RemoveMemory):
            return None if is_forgotten else item
        is_quoting = self._quotes(item.old_text) or self._quotes(item.previous or "")
        if known.refuses_scope(item) or (is_forgotten and is_quoting):
            # What it took away is forgotten, too; or what it says and takes away is.
            is_kept = isinstance(item, ReplaceMemory) and not self._is_told(item.content) and not known.refuses(item)
            return added(item) if is_kept and isinstance(item, ReplaceMemory) else None
        if isinstance(item, RemoveMemory):
            return None if is_forgotten or is_quoting else item
        if is_forgotten:
            return removed(item, item.previous, item.old_text)
        return added(item) if is_quoting else item

    def _quotes(self, text: str) -> bool:
        return bool(text.strip()) and (text.strip() in self._told or self._is_told(text))

    def _is_told(self, text: str) -> bool:
        return text in self._texts or any(selection.tells(text) for selection in self._selections)


class CleanFiles:
    """Cleans this process's files when it is asked to, and when something was forgotten from another home."""

    def __init__(self, folder: Path, pool: Pool, journal: Journal, refusals: Refusals) -> None:
        self.sealed_below: float = 0
        """The files of this process's journal below this number no longer change."""
        self.receipt = cleaned(folder)
        """The newest receipt that this process's files were cleaned for."""
        self._folder = folder
        self._pool = pool
        self._journal = journal
        self._refusals = refusals
        self._looked_at = float("-inf")
        self._looked_upto = 0

    def run(self) -> float:
        """Look whether there is something to clean."""
        now = time.monotonic()
        is_asked = asked(self._folder) > self.receipt
        is_due = now - self._looked_at >= RECHECK_SECONDS and self._journal.last_seq != self._looked_upto
        if not is_asked and not is_due:
            return LOOK_SECONDS
        with self._pool.connection(Deadline.after(DATABASE_SECONDS)) as connection:
            newest = receipts.newest(connection)
        self._looked_at, self._looked_upto = now, self._journal.last_seq
        if newest > self.receipt:
            self._clean()
            note_cleaned(self._folder, newest)
        self.receipt = max(newest, asked(self._folder))
        return 0.0

    def _clean(self) -> None:
        judge = Judge(self._pool)
        self.sealed_below = self._journal.seal(Deadline.after(SEAL_SECONDS))
        sealed = {self._journal.writer: self.sealed_below}
        done = redact_folder(self._journal.directory, judge, judge.blank, sealed_below=sealed)
        taken, _ = self._refusals.redact(judge)
        if done.items or taken:
            logger.info("%d forgotten items were taken out of this home's files", done.items + taken)
