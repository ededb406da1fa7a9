"""What one transaction of the writer stores, counted for operators once it is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hermes_memory_pgvector.meters import BATCHES, DEAD_LETTERS, RECORDS, ROWS, Meters
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    WriteItem,
)


class Tally:
    """For one thread: begun with each transaction, and added to the meters when that has arrived."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self.begin()

    def begin(self) -> None:
        """A transaction begins: what was not committed does not count."""
        self._rows: Counter[str] = Counter()

    def add(self, items: Iterable[WriteItem]) -> None:
        """These are stored."""
        self._rows.update(map(_kind, items))

    def count(self, records: int, dead: int) -> None:
        """Add it to the meters: so many records, of which so many were rejected."""
        if dead:
            self._meters.count(DEAD_LETTERS, dead)
        if records:
            self._meters.count(BATCHES)
            self._meters.count(RECORDS, records)
            for kind, number in self._rows.items():
                self._meters.count(ROWS, number, kind)


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
