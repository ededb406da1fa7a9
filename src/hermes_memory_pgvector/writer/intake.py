"""What happens to records within a transaction of the writer.

Most become rows. One that Postgres rejects is taken apart, and the items at fault are kept as a dead letter. One of a
newer version of this package stops its journal.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import DatabaseRejected
from hermes_memory_pgvector.journal import Journal, Record, codec
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import dead_letters
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    WriteItem,
)
from hermes_memory_pgvector.writer.chunks import wants_vector
from hermes_memory_pgvector.writer.masking import without_secrets

BATCH_ITEMS = 2000
"""A record may hold many items, so a transaction is bounded by items, too."""


@dataclass(slots=True)
class Outcome:
    """What a transaction does besides storing rows; it counts once that is committed."""

    burials: list[tuple[str, str]] = field(default_factory=list)
    """The records that are kept as dead letters, and why."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many rows of each kind."""
    is_stopped: bool = False
    """Whether the next record of the journal is of a newer version."""


class Intake:
    """Takes records into the transaction under way; used by the writer's thread."""

    def __init__(
        self,
        journal: Journal,
        pool: Pool,
        settings: Settings,
    ) -> None:
        self._journal = journal
        self._pool = pool
        self._settings = settings
        self._masker = masker_for(settings)
        self.themes: set[str] = set()
        """The themes that were written to, by the names in the records."""
        self.outcome = Outcome()

    def begin(self) -> None:
        """A transaction begins: of what was not committed, nothing counts."""
        self.outcome = Outcome()

    def decode(self, payload: bytes) -> list[WriteItem]:
        """A record's items as they are stored; ValueError when it cannot be decoded."""
        return [without_secrets(item, self._masker) for item in codec.decode(payload)]

    def new_batch(self, connection: Connection) -> Batch:
        """An empty batch."""
        return Batch(
            connection,
            retry_window=self._settings.turn_retry_window,
            wants_vector=functools.partial(wants_vector, self._settings),
            memories_want_vectors=self._settings.embed_on_write,
        )

    def take(self, connection: Connection, batch: Batch, records: Sequence[Record]) -> list[Record]:
        """Add records to a batch until one is of a newer version or the batch is full; return those added."""
        taken: list[Record] = []
        for record in records:
            if batch.size >= BATCH_ITEMS and taken:
                break
            try:
                self._add(batch, record, self.decode(record.payload))
            except ValueError as error:
                if self._is_for_newer(record, error):
                    break
                self._bury(connection, record, record.payload, str(error))
            taken.append(record)
        return taken

    def _add(self, batch: Batch, record: Record, items: list[WriteItem]) -> None:
        """Add a record to a batch."""
        batch.add(record.writer, record.start, items)
        self.themes.update(item.theme for item in items)
        self.outcome.kinds.update(map(_kind, items))

    def store_rejected(self, connection: Connection, record: Record) -> bool:
        """Store a rejected record item by item, and bury what is at fault; False when it is left to a newer version."""
        try:
            items = self.decode(record.payload)
        except ValueError as error:
            if self._is_for_newer(record, error):
                return False
            self._bury(connection, record, record.payload, str(error))
            return True
        self._store_each(connection, record, items)
        return True

    def _store_each(self, connection: Connection, record: Record, items: Sequence[WriteItem]) -> None:
        """Store the items of a record that was rejected as a whole one by one; those at fault are kept as a letter."""
        self.themes.update(item.theme for item in items)
        refused: list[WriteItem] = []
        reason = ""
        for part, item in enumerate(items):
            try:
                with connection.transaction(), self._pool.translating():
                    batch = self.new_batch(connection)
                    batch.add(record.writer, record.start, [item], first_part=part)
                    batch.store()
                self.outcome.kinds[_kind(item)] += 1
            except DatabaseRejected as error:
                refused.append(item)
                reason = str(error)
        if refused:
            self._bury(connection, record, codec.encode(refused), reason)

    def store_told(self, connection: Connection, writer: str, items: Sequence[WriteItem]) -> None:
        """Store items that come from no journal."""
        batch = self.new_batch(connection)
        batch.add(writer, 0, [without_secrets(item, self._masker) for item in items])
        batch.store()
        self.themes.update(item.theme for item in items)

    def _bury(self, connection: Connection, record: Record, payload: bytes, reason: str) -> None:
        """Keep what cannot be stored as a dead letter."""
        dead_letters.insert(connection, record.writer, record.start, payload, reason)
        self.outcome.burials.append((f"{record.writer}/{record.start}", reason))

    def _is_for_newer(self, record: Record, error: ValueError) -> bool:
        """Whether the record is for a newer version of this package, so that we stop here.

        Our own journal holds only records of this version: there, an unknown record is damage.
        """
        if not isinstance(error, codec.NewerRecord) or record.writer == self._journal.writer:
            return False
        self.outcome.is_stopped = True
        return True


def _kind(item: WriteItem) -> str:
    """What an item is, as operators count it."""
    match item:
        case AddTurn():
            return "turn"
        case AddMemory() | ReplaceMemory() | RemoveMemory():
            return "memory"
        case RecordDelegation():
            return "delegation"
        case _:
            return "correction"
