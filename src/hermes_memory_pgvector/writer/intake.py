"""What happens to records within a transaction of the writer.

Most become rows. One that Postgres rejects is taken apart, and the items at fault are kept as a dead letter. One of a
newer version of this package stops its journal.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import DatabaseRejected
from hermes_memory_pgvector.journal import Journal, Record, codec
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import dead_letters, gate
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.store.undone import UndoneTurns
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import WriteItem
from hermes_memory_pgvector.writer.chunks import wants_vector
from hermes_memory_pgvector.writer.masking import without_secrets

BATCH_ITEMS = 2000
"""A record may hold many items, so a transaction is bounded by items, too."""


class _Part(NamedTuple):
    """An item, and its place in what it came with."""

    writer: str
    seq: int
    part: int
    item: WriteItem


@dataclass(frozen=True, slots=True)
class Looked:
    """A record that was looked at."""

    record: Record
    items: tuple[WriteItem, ...]
    """As they are stored."""
    problem: str
    """Why it cannot be read; empty when it can."""
    buckets: frozenset[int]
    """Those that it is for, by the names of its themes."""

    def parts(self, bucket: int, count: int) -> Iterator[_Part]:
        """What of it is for a bucket."""
        for part, item in enumerate(self.items):
            if count == 1 or bucket_of(item.theme, count) == bucket:
                yield _Part(self.record.writer, self.record.start, part, item)


class Intake:
    """Takes records into the transaction under way; used by the writer's thread."""

    def __init__(self, journal: Journal, settings: Settings, undone: UndoneTurns) -> None:
        self._journal = journal
        self._settings = settings
        self._undone = undone
        self._masker = masker_for(settings.mask_secrets)
        self.themes: set[str] = set()
        """The themes that were written to, by the names in the records."""
        self.burials: list[tuple[str, str]] = []
        """The records that the transaction keeps as dead letters, and why."""
        self.is_stopped = False
        """Whether the next record of the journal is of a newer version."""
        self.stored = 0
        """How many records the transaction stores something of."""
        self._window: tuple[object, list[Looked], bool] = (None, [], False)
        """The records looked at last, and whether one of a newer version follows."""

    def begin(self) -> None:
        """A transaction begins: of what was not committed, nothing counts."""
        self.burials, self.is_stopped, self.stored = [], False, 0

    def look(self, records: Sequence[Record], count: int) -> list[Looked]:
        """The records up to one of a newer version, dealt to so many buckets."""
        name = [(record.writer, record.start) for record in records], count
        if name != self._window[0]:
            found, is_stopped = [], False
            for record in records:
                items, problem = [], ""
                try:
                    items = [without_secrets(item, self._masker) for item in codec.decode(record.payload)]
                except ValueError as error:
                    # Our own journal holds only records of this version: there, an unknown record is damage.
                    is_stopped = isinstance(error, codec.NewerRecord) and record.writer != self._journal.writer
                    if is_stopped:
                        break
                    problem = str(error)
                self.themes.update(item.theme for item in items)
                # What cannot be read has to be somewhere, too.
                places = frozenset(bucket_of(item.theme, count) for item in items) or frozenset({0})
                found.append(Looked(record, tuple(items), problem, places))
            self._window = name, found, is_stopped
        self.is_stopped = self._window[2]
        return self._window[1]

    def store(self, connection: Connection, records: Sequence[Record], bucket: int = 0) -> list[Record]:
        """Store what is for a bucket, until a record is of a newer version or there are enough; return those taken.

        A record counts for the bucket that its themes' names are dealt to, which never changes: whatever is renamed,
        none is left out or stored twice.
        """
        layout = buckets.layout(connection)
        if layout.schemas:
            # What was renamed is stored where its theme lies now, and nothing is renamed meanwhile.
            gate.enter(connection)
        parts: list[_Part] = []
        taken: list[Record] = []
        for each in self.look(records, layout.count):
            if len(parts) >= BATCH_ITEMS:
                break
            if bucket in each.buckets:
                parts += each.parts(bucket, layout.count)
                self.stored += 1
                if each.problem:
                    self._bury(connection, each.record, each.record.payload, each.problem)
            taken.append(each.record)
        self._put(connection, parts)
        return taken

    def store_rejected(self, connection: Connection, record: Record, bucket: int = 0) -> bool:
        """Store a rejected record item by item, and bury what is at fault; False when it is left to a newer version."""
        refused: list[WriteItem] = []
        reason = ""
        count = buckets.layout(connection).count
        for each in self.look([record], count):
            if each.problem:
                self._bury(connection, record, record.payload, each.problem)
            for part in each.parts(bucket, count):
                try:
                    with connection.transaction(), translated():
                        self._put(connection, [part])
                except DatabaseRejected as error:
                    refused.append(part.item)
                    reason = str(error)
        if refused:
            self._bury(connection, record, codec.encode(refused), reason)
        return not self.is_stopped

    def store_told(self, connection: Connection, writer: str, items: Sequence[WriteItem]) -> None:
        """Store items that come from no journal."""
        masked = [without_secrets(item, self._masker) for item in items]
        self._put(connection, [_Part(writer, 0, part, item) for part, item in enumerate(masked)])
        self.themes.update(item.theme for item in items)

    def _put(self, connection: Connection, parts: Sequence[_Part]) -> None:
        """Store items in the buckets that their themes lie in."""
        if not parts:
            return
        for placed in buckets.apart(connection, parts, lambda each: each.item.theme):
            batch = Batch(
                connection,
                undone=self._undone,
                retry_window=self._settings.turn_retry_window,
                wants_vector=functools.partial(wants_vector, self._settings),
                memories_want_vectors=self._settings.embed_on_write,
            )
            for each in placed:
                batch.add(each.item, each.writer, each.seq, each.part)
            batch.store()

    def _bury(self, connection: Connection, record: Record, payload: bytes, reason: str) -> None:
        """Keep what cannot be stored as a dead letter."""
        dead_letters.insert(connection, record.writer, record.start, payload, reason)
        self.burials.append((f"{record.writer}/{record.start}", reason))
