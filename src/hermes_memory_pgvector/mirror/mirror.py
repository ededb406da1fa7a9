"""Keeps the rows that came from this home equal to its MEMORY.md and USER.md, whoever changed the files.

Hooks report writes of the memory tool, but not background review, approvals, `hermes memory reset` or an editor. So
the files are compared with this home's rows: by their stamps whenever something may have happened, in full when a stamp
has changed. A hook that reports an entry after a comparison has already found it wins: see
`memories/guessed_elsewhere`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.mirror import memory_file
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES, Change, Stamp
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import gate, memories, mirror_files, tombstones, vectors
from hermes_memory_pgvector.store.memories import Placed
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

    def run(self, own_theme: str, has_drained: Callable[[], bool], model_id: int | None) -> float:
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
                written = datetime.fromtimestamp(self._changed_at(target, stamp), UTC)
                self._make_equal(target, entries, written, own_theme, model_id)
            self._seen[target] = stamp
        if not pause:
            self._completed = requested
        return pause

    def _make_equal(
        self, target: Target, entries: list[str], written: datetime, own_theme: str, model_id: int | None
    ) -> None:
        with self._pool.transaction(Deadline.after(MIRROR_SECONDS)) as connection:
            # First of all: whoever erases holds the gate while waiting for the file.
            opened = gate.enter(connection)
            known = mirror_files.open_file(connection, self._home_id, target)
            mirror_files.lock_home(connection, self._home_id)
            before = known
            for former in self._inherits if not known else ():
                inherited = self._inherit(connection, target, former, model_id)
                before = before or inherited
            held, unwritten = self._held(connection, target, before, written)
            if opened.keys:
                entries = self._without_forgotten(connection, opened, target, entries, held, own_theme)
            changes = memory_file.compare(before, entries, held, own_theme)
            changes = [change for change in changes if change.old is None or change.old not in unwritten]
            if changes:
                self._apply(connection, target, changes, model_id)
            if changes or known != entries:
                mirror_files.write_file(connection, self._home_id, target, entries)
        if changes:
            self.changes_made += len(changes)
            logger.info("%s: %d stored entries were changed to match the file", FILE_NAMES[target], len(changes))

    def _without_forgotten(
        self,
        connection: Connection,
        opened: gate.Gate,
        target: Target,
        entries: list[str],
        held: Mapping[str, object],
        own_theme: str,
    ) -> list[str]:
        """The entries of a file that may be stored.

        A forgotten entry that has stood in the file ever since is withheld. One that a comparison has seen gone was
        written again by somebody, and one that is held was reported again by the memory tool: both are new.
        """
        known = tombstones.of_files(connection, opened.keys, entries, opened.aliases)
        last = mirror_files.last_comparison(connection, self._home_id, target)
        withheld: dict[str, set[bytes]] = {}
        for entry in entries:
            since = known.forgets_entry(entry, own_theme)
            if since is None or entry in held:
                continue
            own = known.of_entry(entry)
            if last.at is None or last.at <= since or own & last.withheld:
                withheld[entry] = own
        hashes = {each for own in withheld.values() for each in own}
        mirror_files.note_comparison(connection, self._home_id, target, hashes)
        if withheld and hashes != last.withheld:
            logger.warning(
                "%s still holds %d entries that were forgotten: they stay out of the database; to see which: "
                "hermes-pgvector doctor",
                FILE_NAMES[target],
                len(withheld),
            )
        return [entry for entry in entries if entry not in withheld]

    def _inherit(self, connection: Connection, target: Target, former: str, model_id: int | None) -> list[str]:
        """Take over what a home holds that this one is a copy of; return its file as last compared."""
        entries = mirror_files.read_file(connection, former, target)
        take_over(connection, self._clock.now(), former, self._home_id, target, model_id)
        return entries

    def _apply(self, connection: Connection, target: Target, changes: list[Change], model_id: int | None) -> None:
        when = self._clock.now()
        placed = [
            Placed(self._operation(target, change, when), f"mirror:{self._home_id}", when.order_us, part)
            for part, change in enumerate(changes)
        ]
        changed = memories.store(connection, placed, model_id)
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
        self, connection: Connection, target: Target, before: list[str], written: datetime
    ) -> tuple[dict[str, list[str]], set[str]]:
        """The themes of each entry this home holds, and the entries that are not in the file yet.

        If a hook reported an entry after the file was last written, and no comparison has seen it there, then it was
        not deleted: the host has yet to write it.
        """
        seen = set(before)
        held: dict[str, list[str]] = {}
        unwritten = set()
        for entry in mirror_files.held_entries(connection, self._home_id, target):
            held.setdefault(entry.content, []).append(entry.theme)
            if entry.content not in seen and entry.since >= written:
                unwritten.add(entry.content)
        return held, unwritten

    def _changed_at(self, target: Target, stamp: Stamp | None) -> float:
        """When the file was last written; a missing file was deleted no later than its folder last changed.

        A program that saves a file by moving the old one away first leaves nothing there for a moment.
        """
        if stamp is not None:
            return stamp.modified_ns / 1e9
        return memory_file.emptied_at(self._folder / FILE_NAMES[target]) or 0.0

    def _stamp(self, target: Target) -> Stamp | None:
        return memory_file.stamp(self._folder / FILE_NAMES[target])


def take_over(
    connection: Connection, when: Moment, former: str, heir: str, target: Target, model_id: int | None
) -> int:
    """Make one home the holder of every entry another home holds; return how many there are.

    These are operations like any other, so that one which arrives late does not bring the former holder back.
    """
    mirror_files.lock_home(connection, former)
    entries = mirror_files.held_entries(connection, former, target)
    placed = []
    for number, entry in enumerate(entries):
        operations: tuple[MemoryOperation, ...] = (
            AddMemory(
                entry.theme,
                target,
                entry.content,
                when=when,
                home_id=heir,
                origin=Origin.FILE,
                written_by=RowOrigin.FILE,
            ),
            RemoveMemory(
                entry.theme, target, "", previous=entry.content, when=when, home_id=former, origin=Origin.FILE
            ),
        )
        placed += [
            Placed(operation, f"heir:{heir}", when.order_us, number * len(operations) + part)
            for part, operation in enumerate(operations)
        ]
    memories.store(connection, placed, model_id)
    return len(entries)


_NEVER = Stamp(-1, -1, -1)
