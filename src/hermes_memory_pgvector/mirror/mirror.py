"""Keeps the rows that came from this home equal to its MEMORY.md and USER.md, whoever changed the files.

Hooks report writes of the memory tool, but not background review, approvals, `hermes memory reset` or an editor. So
the files are compared with this home's rows: by their stamps whenever something may have happened, in full when a stamp
has changed. A hook that reports an entry after a comparison has already found it wins: a
tool's word beats a file's (`memories/held_elsewhere`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.mirror import memory_file
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES, Change, Stamp
from hermes_memory_pgvector.mirror.news import FileNews
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import gate, memories, mirror_files, vectors
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.mirror_files import ComparedFile
from hermes_memory_pgvector.text.secrets import NOTHING, Masker
from hermes_memory_pgvector.values import (
    AddMemory,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
)

logger = logging.getLogger(__name__)

QUIET_SECONDS = 1.5
"""How long a file must be unchanged: a hook may be about to report a change made just now."""
MIRROR_SECONDS = 30.0


class Mirror:
    """Compares one home's files with its rows; `run` is used by one thread."""

    def __init__(
        self,
        home: Path,
        home_id: str,
        pool: Pool,
        clock: Clock,
        *,
        max_chars: int,
        masker: Masker = NOTHING,
        wants_vectors: bool,
        inherits: Sequence[str] = (),
    ) -> None:
        self._folder = home / "memories"
        self._home_id = home_id
        self._pool = pool
        self._clock = clock
        self._max_chars = max_chars
        self._masker = masker
        self._wants_vectors = wants_vectors
        self._inherits = tuple(inherits)
        self.news = FileNews(self._folder, max_chars, masker)
        self._seen: dict[Target, Stamp | None] = {}
        self._requested = 0
        self._completed = 0
        self._entries: tuple[tuple[Stamp | None, ...], frozenset[str]] | None = None
        self.changes_made = 0

    def is_due(self) -> bool:
        """Whether a file, or what should equal it, has changed since it was last compared."""
        return self._requested != self._completed or any(
            self._stamp(target) != self._seen.get(target, _NEVER) for target in FILE_NAMES
        )

    def look_again(self) -> None:
        """Rows have changed without their file: what a dead process had left in its journal has arrived."""
        self._requested += 1

    def file_entries(self) -> frozenset[str]:
        """The entries of both files as they are now; read again only when a stamp has changed."""
        stamps = tuple(self._stamp(target) for target in FILE_NAMES)
        known = self._entries
        if known is None or known[0] != stamps:
            found = [
                memory_file.read(self._folder / name, self._max_chars, self._masker) or []
                for name in FILE_NAMES.values()
            ]
            known = self._entries = (stamps, frozenset(entry for entries in found for entry in entries))
        return known[1]

    def run(self, own_theme: str, has_drained: Callable[[], bool]) -> float:
        """Compare what has changed; return the seconds until the next look, 0 when everything was compared."""
        pause = 0.0
        requested = self._requested
        for target in FILE_NAMES:
            stamp = self._stamp(target)
            if stamp == self._seen.get(target, _NEVER) and requested == self._completed:
                continue
            age = time.time() - self._changed_at(target, stamp)
            if 0 <= age < QUIET_SECONDS:
                pause = max(pause, QUIET_SECONDS - age)
                continue
            if not has_drained():
                # What hooks have reported must be stored before the file can be compared with it.
                pause = max(pause, 0.5)
                continue
            entries = memory_file.read(self._folder / FILE_NAMES[target], self._max_chars, self._masker)
            if entries is None and self._folder.exists():
                logger.warning("%s cannot be read; its entries stay as they are", FILE_NAMES[target])
            elif entries is not None:
                written_us = int(self._changed_at(target, stamp) * 1_000_000)
                self._make_equal(target, entries, written_us, own_theme)
                self.news.seen(target, entries)
            self._seen[target] = stamp
        if not pause:
            self._completed = requested
        return pause

    def _make_equal(self, target: Target, entries: list[str], written_us: int, own_theme: str) -> None:
        with self._pool.transaction(Deadline.after(MIRROR_SECONDS)) as connection:
            # First of all: whoever erases holds the gate while waiting for the file.
            opened = gate.enter(connection)
            mirror_files.lock_home(connection, self._home_id)
            known = mirror_files.last_comparison(connection, self._home_id, target)
            seen = [] if known is None else known.digests
            for former in self._inherits if not seen else ():
                hand_over(connection, self._clock.now(), former, self._home_id, target, lambda each: each in entries)
            digests = [mirror_files.digest_of(entry) for entry in entries]
            is_news = known is None or known.digests != digests
            if known is not None and is_news and written_us < known.written_us:
                # The file of an earlier time, as in a copy of the home: it does not know what was written since.
                logger.warning("%s is older than it was; entries that are not in it stay stored", FILE_NAMES[target])
                before_it = mirror_files.digest_of(f"{self._home_id} {known.written_us}").hex()[:16]
                hand_over(
                    connection, self._clock.now(), self._home_id, before_it, target, lambda each: each not in entries
                )
            before, held, unwritten = self._held(connection, target, seen, entries, written_us)
            # An old file that was put back has the time at which it was written; how old the entries of a file are that
            # is compared for the first time nobody knows.
            said = Moment(0, 0) if known is None else Moment(written_us, written_us)
            before += self._forgotten(connection, opened, said, target, entries, {*held, *before}, own_theme)
            changes = memory_file.compare(before, entries, held, own_theme)
            changes = [change for change in changes if change.old is None or change.old not in unwritten]
            if changes:
                self._apply(connection, target, changes)
            if is_news:
                file = ComparedFile(digests, written_us)
                mirror_files.write_file(connection, self._home_id, target, file, datetime.now(UTC))
        if changes:
            self.changes_made += len(changes)
            logger.info("%s: %d stored entries were changed to match the file", FILE_NAMES[target], len(changes))

    def _forgotten(
        self,
        connection: Connection,
        opened: gate.Gate,
        said: Moment,
        target: Target,
        entries: list[str],
        known: Collection[str],
        own_theme: str,
    ) -> list[str]:
        """Entries which are no news, because they were forgotten after they had been written."""
        new = [AddMemory(own_theme, target, entry, said, self._home_id) for entry in entries if entry not in known]
        refused = opened.refused(connection, new)
        return [each.content for each, is_refused in zip(new, refused, strict=True) if is_refused]

    def _apply(self, connection: Connection, target: Target, changes: list[Change]) -> None:
        when = self._clock.now()
        placed = [
            Placed(self._operation(target, change, when), f"mirror:{self._home_id}", when.order_us, part)
            for part, change in enumerate(changes)
        ]
        for part in buckets.apart(connection, placed, lambda each: each.operation.theme):
            changed = memories.store(connection, part)
            if self._wants_vectors:
                vectors.enqueue(connection, [(theme, "memory", row_id) for theme, row_id in changed])

    def _operation(self, target: Target, change: Change, when: Moment) -> MemoryOperation:
        # By the exact entry, never by a part of it: the file shows precisely what is gone.
        common: dict[str, Any] = {"when": when, "home_id": self._home_id, "origin": Origin.FILE}
        common["written_by"] = RowOrigin.FILE
        if change.old is None:
            assert change.new is not None
            return AddMemory(change.theme, target, change.new, **common)
        if change.new is None:
            return RemoveMemory(change.theme, target, "", previous=change.old, **common)
        return ReplaceMemory(change.theme, target, change.new, "", previous=change.old, **common)

    def _held(
        self, connection: Connection, target: Target, known: Sequence[bytes], entries: Sequence[str], written_us: int
    ) -> tuple[list[str], dict[str, list[str]], set[str]]:
        """The file as last compared, the themes of each entry this home holds, and which are not in the file yet.

        Of an entry that is neither held nor in the file only its place is known, and nobody asks for more. If a hook
        reported an entry after the file was last written, and no comparison has seen it there, then it was not deleted:
        the host has yet to write it.
        """
        found = mirror_files.held_entries(connection, self._home_id, target)
        texts = {mirror_files.digest_of(text): text for text in (*entries, *(entry.content for entry in found))}
        before = [texts.get(digest, f"\0{digest.hex()}") for digest in known]
        seen = set(before)
        held: dict[str, list[str]] = {}
        unwritten = set()
        for entry in found:
            held.setdefault(entry.content, []).append(entry.theme)
            if entry.content not in seen and entry.since_us >= written_us:
                unwritten.add(entry.content)
        return before, held, unwritten

    def _changed_at(self, target: Target, stamp: Stamp | None) -> float:
        """When the file was last written; a missing file was deleted no later than its folder last changed.

        A program that saves a file by moving the old one away first leaves nothing there for a moment.
        """
        if stamp is not None:
            return stamp.modified_ns / 1e9
        return memory_file.emptied_at(self._folder / FILE_NAMES[target]) or 0.0

    def _stamp(self, target: Target) -> Stamp | None:
        return memory_file.stamp(self._folder / FILE_NAMES[target])


def hand_over(
    connection: Connection, when: Moment, giver: str, taker: str, target: Target, is_meant: Callable[[str], bool]
) -> None:
    """Make a home the holder of entries that another one holds.

    A copy takes those that stand in its file: it may have an older file, and would delete what was written since. These
    are operations like any other, so that one which arrives late does not bring the former holder back.
    """
    mirror_files.lock_home(connection, giver)
    common: dict[str, Any] = {"when": when, "origin": Origin.FILE, "written_by": RowOrigin.FILE}
    made: list[MemoryOperation] = []
    for entry in mirror_files.held_entries(connection, giver, target):
        if is_meant(entry.content):
            made += [
                AddMemory(entry.theme, target, entry.content, home_id=taker, **common),
                RemoveMemory(entry.theme, target, "", home_id=giver, previous=entry.content, **common),
            ]
    placed = [Placed(each, f"heir:{taker}", when.order_us, part) for part, each in enumerate(made)]
    for each in buckets.apart(connection, placed, lambda each: each.operation.theme):
        memories.store(connection, each)


_NEVER = Stamp(-1, -1, -1)
