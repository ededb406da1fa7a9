"""Decodes the next batch and prepares its words while Postgres stores the current one.

It has no thread of its own: two threads would compete for the interpreter, and every answer of the server would wait.
"""

from __future__ import annotations

from collections.abc import Callable

from hermes_memory_pgvector.journal import Record
from hermes_memory_pgvector.text import lexemes
from hermes_memory_pgvector.values import AddTurn, WriteItem


class DecodeAhead:
    """Used by the writer while it waits for the server; there is something to do only in a backlog."""

    def __init__(self, decode: Callable[[bytes], list[WriteItem]]) -> None:
        self._decode = decode
        self._next: tuple[str, int, list[Record]] = ("", 0, [])
        self._items: dict[tuple[str, int], list[WriteItem]] = {}
        self._is_prepared = True
        self._has_prepared = False

    def expect(self, writer: str, after: int, records: list[Record]) -> None:
        """Note the records that follow a number in a journal."""
        self._next = (writer, after, records)
        self._is_prepared = False

    def take(self, writer: str, after: int) -> list[Record]:
        """The records noted for that number of a journal, if there are any."""
        known, number, records = self._next
        self._next = ("", 0, [])
        if (known, number) == (writer, after):
            return records
        self._items = {}
        return []

    def items_of(self, record: Record) -> list[WriteItem]:
        """A record's items; ValueError when it cannot be decoded."""
        known = self._items.pop((record.writer, record.seq), None)
        return self._decode(record.payload) if known is None else known

    def __call__(self) -> None:
        """Prepare the noted records, once."""
        if self._is_prepared:
            return
        self._is_prepared = True
        self._items = {}
        for record in self._next[2]:
            try:
                items = self._items[record.writer, record.seq] = self._decode(record.payload)
            except ValueError:
                # The writer deals with it when it gets there.
                continue
            for item in items:
                if isinstance(item, AddTurn):
                    self._has_prepared = True
                    lexemes.prepare(item.content)

    def clear(self) -> None:
        """Free the memory: there is no backlog any more."""
        self._next = ("", 0, [])
        self._items = {}
        if self._has_prepared:
            self._has_prepared = False
            lexemes.clear_prepared()
