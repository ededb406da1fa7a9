"""Keeps the rows that came from this home equal to its MEMORY.md and USER.md, whoever changed the files.

The host tells us of the memory tool's writes but not of background review, approvals, `hermes memory reset` or an
editor. So the files are compared with the rows of this home: cheaply by stamp whenever something may have happened, and
in full when a stamp has changed. What a hook announces later than a comparison has found it wins: see
`memory_guessed_elsewhere`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.mirror import memory_file
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES, Change, Stamp
from hermes_memory_pgvector.store import memories, vectors
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.values import (
    AddMemory,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    Target,
)

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 1.5
"""A file that changed just now may belong to a hook that is about to announce it."""
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
        wants_vectors: bool,
        inherits: Sequence[str] = (),
    ) -> None:
        self._folder = home / "memories"
        self._home_id = home_id
        self._pool = pool
        self._clock = clock
        self._max_chars = max_chars
        self._wants_vectors = wants_vectors
        self._inherits = tuple(inherits)
        self._seen: dict[Target, Stamp | None] = {}
        self._asked = 0
        self._answered = 0
        self._entries: tuple[tuple[Stamp | None, ...], frozenset[str]] | None = None
        self.changes_made = 0

    def is_due(self) -> bool:
        """Whether a file, or what should equal it, has changed since it was last compared."""
        return self._asked != self._answered or any(
            self._stamp(target) != self._seen.get(target, _NEVER) for target in FILE_NAMES
        )

    def look_again(self) -> None:
        """Rows have changed without their file: what a process left in its journal when it died has arrived late."""
        self._asked += 1

    def file_entries(self) -> frozenset[str]:
        """The entries of both files as they are now; read again only when a stamp has changed."""
        stamps = tuple(self._stamp(target) for target in FILE_NAMES)
        known = self._entries
        if known is None or known[0] != stamps:
            found = [memory_file.read(self._folder / name, self._max_chars) or [] for name in FILE_NAMES.values()]
            known = self._entries = (stamps, frozenset(entry for entries in found for entry in entries))
        return known[1]

    def run(self, own_theme: str, has_drained: Callable[[], bool], model_id: int | None) -> float:
        """Compare what has changed; return the seconds until it is worth looking again."""
        pause = 0.0
        asked = self._asked
        for target in FILE_NAMES:
            stamp = self._stamp(target)
            if stamp == self._seen.get(target, _NEVER) and asked == self._answered:
                continue
            age = time.time() - stamp.modified_ns / 1e9 if stamp is not None else SETTLE_SECONDS
            if 0 <= age < SETTLE_SECONDS:
                pause = max(pause, SETTLE_SECONDS - age)
                continue
            if not has_drained():
                # What hooks have announced must be there before the file can be compared with it.
                pause = max(pause, 0.5)
                continue
            entries = memory_file.read(self._folder / FILE_NAMES[target], self._max_chars)
            if entries is None and self._folder.exists():
                logger.warning("%s cannot be read; its entries stay as they are", FILE_NAMES[target])
            elif entries is not None:
                self._make_equal(target, entries, self._written(target, stamp), own_theme, model_id)
            self._seen[target] = stamp
        if not pause:
            self._answered = asked
        return pause

    def _make_equal(
        self, target: Target, entries: list[str], written: datetime, own_theme: str, model_id: int | None
    ) -> None:
        with self._pool.transaction(Deadline.after(MIRROR_SECONDS)) as connection:
            key = {"home_id": self._home_id, "target": target}
            connection.execute(statement("mirror_file_create"), key)
            row: Any = connection.execute(statement("mirror_file_lock"), key).fetchone()
            connection.execute(statement("mirror_home_lock"), key)
            before = row[0]
            for former in self._inherits if not row[0] else ():
                inherited = self._inherit(connection, target, former, model_id)
                before = before or inherited
            held, unwritten = self._held(connection, target, before, written)
            changes = memory_file.compare(before, entries, held, own_theme)
            changes = [change for change in changes if change.old is None or change.old not in unwritten]
            if changes:
                self._apply(connection, target, changes, model_id)
            if changes or row[0] != entries:
                connection.execute(statement("mirror_file_set"), {**key, "entries": json.dumps(entries)})
        if changes:
            self.changes_made += len(changes)
            logger.info("%s: %d entries were brought in line with the file", FILE_NAMES[target], len(changes))

    def _inherit(self, connection: Connection, target: Target, former: str, model_id: int | None) -> list[str]:
        """Take over what a home holds that this one is the copy of; the answer is its file as last compared."""
        row: Any = connection.execute(statement("mirror_file_lock"), {"home_id": former, "target": target}).fetchone()
        take_over(connection, self._clock.now(), former, self._home_id, target, model_id)
        return row[0] if row is not None else []

    def _apply(self, connection: Connection, target: Target, changes: list[Change], model_id: int | None) -> None:
        when = self._clock.now()
        placed = [
            Placed(self._operation(target, change, when), f"mirror:{self._home_id}", when.order_us, part)
            for part, change in enumerate(changes)
        ]
        changed = memories.store(connection, placed, model_id)
        if self._wants_vectors:
            vectors.ask(connection, [(theme, "memory", row_id) for theme, row_id in changed])

    def _operation(self, target: Target, change: Change, when: Moment) -> MemoryOperation:
        # Always by the exact entry, never by a part of it: the file says precisely what is gone.
        common: dict[str, Any] = {"when": when, "home_id": self._home_id, "origin": Origin.FILE}
        if change.old is None:
            assert change.new is not None
            return AddMemory(change.theme, target, change.new, **common)
        if change.new is None:
            return RemoveMemory(change.theme, target, "", previous=change.old, **common)
        return ReplaceMemory(change.theme, target, change.new, "", previous=change.old, **common)

    def _held(
        self, connection: Connection, target: Target, before: list[str], written: datetime
    ) -> tuple[dict[str, list[str]], set[str]]:
        """This home's rows with their themes, and those of them that the file cannot speak for.

        An entry that a hook announced after the file was last written, and that no comparison has seen in it, is not
        missing from the file: it has not got there yet.
        """
        rows: list[Any] = connection.execute(
            statement("mirror_held"), {"home_id": self._home_id, "target": target}
        ).fetchall()
        seen = set(before)
        held: dict[str, list[str]] = {}
        unwritten = set()
        for theme, content, since in rows:
            held.setdefault(content, []).append(theme)
            if content not in seen and since >= written:
                unwritten.add(content)
        return held, unwritten

    def _written(self, target: Target, stamp: Stamp | None) -> datetime:
        """When the file became what it is; a file that is gone was deleted when its folder last changed, or before."""
        if stamp is not None:
            return datetime.fromtimestamp(stamp.modified_ns / 1e9, UTC)
        emptied = memory_file.emptied_at(self._folder / FILE_NAMES[target])
        return _LONG_AGO if emptied is None else datetime.fromtimestamp(emptied, UTC)

    def _stamp(self, target: Target) -> Stamp | None:
        return memory_file.stamp(self._folder / FILE_NAMES[target])


def take_over(
    connection: Connection, when: Moment, former: str, heir: str, target: Target, model_id: int | None
) -> int:
    """Make one home the holder of all that another holds, entry by entry; how many there were.

    As operations like any other, so that one which arrives late does not bring the former holder back.
    """
    connection.execute(statement("mirror_home_lock"), {"home_id": former})
    rows: list[Any] = connection.execute(statement("mirror_held"), {"home_id": former, "target": target}).fetchall()
    placed = []
    for number, (theme, content, _) in enumerate(rows):
        operations: tuple[MemoryOperation, ...] = (
            AddMemory(theme, target, content, when=when, home_id=heir, origin=Origin.FILE),
            RemoveMemory(theme, target, "", previous=content, when=when, home_id=former, origin=Origin.FILE),
        )
        placed += [
            Placed(operation, f"heir:{heir}", when.order_us, number * len(operations) + part)
            for part, operation in enumerate(operations)
        ]
    memories.store(connection, placed, model_id)
    return len(rows)


_NEVER = Stamp(-1, -1, -1)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
