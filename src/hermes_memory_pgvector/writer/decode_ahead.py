"""Works out the words of the next batch in the time Postgres needs to store the current one.

No thread of its own: two threads would take turns at the interpreter, and each answer of the server would wait for it.
"""

from __future__ import annotations

from hermes_memory_pgvector.journal import Record, codec
from hermes_memory_pgvector.text import lexemes
from hermes_memory_pgvector.values import AddTurn, WriteItem


class DecodeAhead:
    """What the writer does while it would otherwise wait; only a backlog gives it something to do."""

    def __init__(self) -> None:
        self._next: tuple[str, int, list[Record]] = ("", 0, [])
        self._items: dict[tuple[str, int], list[WriteItem]] = {}
        self._is_prepared = True
        self._has_prepared = False

    def expect(self, writer: str, after: int, records: list[Record]) -> None:
        """These records of a journal come after that number."""
        self._next = (writer, after, records)
        self._is_prepared = False

    def take(self, writer: str, after: int) -> list[Record]:
        """The records expected after that number of a journal, if they were."""
        known, number, records = self._next
        self._next = ("", 0, [])
        if (known, number) == (writer, after):
            return records
        self._items = {}
        return []

    def items_of(self, record: Record) -> list[WriteItem]:
        """A record's items; ValueError when it is none of ours."""
        known = self._items.pop((record.writer, record.seq), None)
        return codec.decode(record.payload) if known is None else known

    def __call__(self) -> None:
        """Prepare what comes next, once."""
        if self._is_prepared:
            return
        self._is_prepared = True
        self._items = {}
        for record in self._next[2]:
            try:
                items = self._items[record.writer, record.seq] = codec.decode(record.payload)
            except ValueError:
                # The writer meets it in its turn and knows what to do.
                continue
            for item in items:
                if isinstance(item, AddTurn):
                    self._has_prepared = True
                    lexemes.prepare(item.content)

    def clear(self) -> None:
        """The backlog is gone: give the memory back."""
        self._next = ("", 0, [])
        self._items = {}
        if self._has_prepared:
            self._has_prepared = False
            lexemes.clear_prepared()
