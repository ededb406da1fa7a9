"""What happens to records within a transaction of the writer.

Most become rows. One that Postgres rejects is taken apart, and the items at fault are kept as a dead letter. One of a
newer version of this package stops its journal.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import DatabaseRejected
from hermes_memory_pgvector.journal import Journal, Record, codec
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import dead_letters, gate
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.store.undone import UndoneTurns
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import WriteItem
from hermes_memory_pgvector.writer.chunks import wants_vector
from hermes_memory_pgvector.writer.masking import without_secrets

BATCH_ITEMS = 2000
"""A record may hold many items, so a transaction is bounded by items, too."""


class Intake:
    """Takes records into the transaction under way; used by the writer's thread."""

    def __init__(self, journal: Journal, pool: Pool, settings: Settings, undone: UndoneTurns) -> None:
        self._journal = journal
        self._pool = pool
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
        self._window: tuple[tuple[tuple[str, int], ...], list[tuple[Record, frozenset[int]]], bool] = ((), [], False)
        """The records looked at last, dealt to buckets, and whether one of a newer version follows."""

    def begin(self) -> None:
        """A transaction begins: of what was not committed, nothing counts."""
        self.burials, self.is_stopped, self.stored = [], False, 0

    def store(self, connection: Connection, records: Sequence[Record], bucket: int = 0) -> list[Record]:
        """Store what is for a bucket, until a record is of a newer version or there are enough; return those taken."""
        if buckets.layout(connection).schemas:
            return self._store_in_places(connection, records, bucket)
        batch = self._new_batch(connection)
        taken: list[Record] = []
        for record in records:
            if batch.size >= BATCH_ITEMS and taken:
                break
            items = self._decode(connection, record)
            if self.is_stopped:
                break
            batch.add(record.writer, record.start, items)
            taken.append(record)
        if taken:
            batch.store()
        self.stored = len(taken)
        return taken

    def _store_in_places(self, connection: Connection, records: Sequence[Record], bucket: int) -> list[Record]:
        """As `store`, with several buckets: what was renamed is stored where its theme lies now.

        A record counts for the bucket that its themes' names are dealt to, which never changes: whatever is renamed,
        none is left out or stored twice.
        """
        gate.enter(connection)
        count = buckets.layout(connection).count
        told: list[tuple[Record, int, WriteItem]] = []
        taken: list[Record] = []
        for record, concerned in self.deal(records, count):
            if len(told) >= BATCH_ITEMS:
                break
            mine = self._mine(connection, record, bucket, count) if bucket in concerned else []
            told += [(record, part, item) for part, item in mine]
            self.stored += bucket in concerned
            taken.append(record)
        for placed in buckets.apart(connection, told, lambda each: each[2].theme):
            batch = self._new_batch(connection)
            for record, part, item in placed:
                batch.add(record.writer, record.start, [item], first_part=part)
            batch.store()
        return taken

    def deal(self, records: Sequence[Record], count: int) -> list[tuple[Record, frozenset[int]]]:
        """The records up to one of a newer version, each with the buckets that it is for."""
        name = tuple((record.writer, record.start) for record in records)
        if name != self._window[0]:
            dealt, is_stopped = [], False
            for record in records:
                try:
                    themes = {item.theme for item in codec.decode(record.payload)}
                except ValueError as error:
                    is_stopped = self._is_for_newer(error, record)
                    if is_stopped:
                        break
                    themes = set()
                # What cannot be decoded has to be somewhere, too.
                dealt.append((record, frozenset(bucket_of(theme, count) for theme in themes) or frozenset({0})))
            self._window = (name, dealt, is_stopped)
        self.is_stopped = self._window[2]
        return self._window[1]

    def _mine(self, connection: Connection, record: Record, bucket: int, count: int) -> list[tuple[int, WriteItem]]:
        """The items of a record that are for a bucket, each with its place among them all."""
        items = enumerate(self._decode(connection, record))
        return [(part, item) for part, item in items if count == 1 or bucket_of(item.theme, count) == bucket]

    def store_rejected(self, connection: Connection, record: Record, bucket: int = 0) -> bool:
        """Store a rejected record item by item, and bury what is at fault; False when it is left to a newer version."""
        refused: list[WriteItem] = []
        reason = ""
        for part, item in self._mine(connection, record, bucket, buckets.layout(connection).count):
            try:
                with connection.transaction(), translated():
                    for placed in buckets.apart(connection, [item], _theme_of):
                        batch = self._new_batch(connection)
                        batch.add(record.writer, record.start, placed, first_part=part)
                        batch.store()
            except DatabaseRejected as error:
                refused.append(item)
                reason = str(error)
        if refused:
            self._bury(connection, record, codec.encode(refused), reason)
        return not self.is_stopped

    def store_told(self, connection: Connection, writer: str, items: Sequence[WriteItem]) -> None:
        """Store items that come from no journal."""
        for placed in buckets.apart(connection, items, _theme_of):
            batch = self._new_batch(connection)
            batch.add(writer, 0, [without_secrets(item, self._masker) for item in placed])
            batch.store()
        self.themes.update(item.theme for item in items)

    def _decode(self, connection: Connection, record: Record) -> list[WriteItem]:
        """A record's items as they are stored; none where it cannot be decoded, and is buried or stops its journal."""
        try:
            items = [without_secrets(item, self._masker) for item in codec.decode(record.payload)]
        except ValueError as error:
            if self._is_for_newer(error, record):
                self.is_stopped = True
            else:
                self._bury(connection, record, record.payload, str(error))
            return []
        self.themes.update(item.theme for item in items)
        return items

    def _is_for_newer(self, error: ValueError, record: Record) -> bool:
        """Our own journal holds only records of this version: there, an unknown record is damage."""
        return isinstance(error, codec.NewerRecord) and record.writer != self._journal.writer

    def _new_batch(self, connection: Connection) -> Batch:
        """An empty batch."""
        return Batch(
            connection,
            undone=self._undone,
            retry_window=self._settings.turn_retry_window,
            wants_vector=functools.partial(wants_vector, self._settings),
            memories_want_vectors=self._settings.embed_on_write,
        )

    def _bury(self, connection: Connection, record: Record, payload: bytes, reason: str) -> None:
        """Keep what cannot be stored as a dead letter."""
        dead_letters.insert(connection, record.writer, record.start, payload, reason)
        self.burials.append((f"{record.writer}/{record.start}", reason))


def _theme_of(item: WriteItem) -> str:
    return item.theme
