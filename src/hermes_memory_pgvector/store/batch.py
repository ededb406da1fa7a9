"""A batch of write items on its way into Postgres, within the caller's transaction.

The turns of a batch are stored together; an undo, and the same words once more, come after the turns before them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import memories, turns, vectors
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.undone import UndoneTurns
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    DistrustMemories,
    Kind,
    RemoveMemory,
    ReplaceMemory,
    UndoTurns,
    WriteItem,
)


class Batch:
    """Collects items, then stores them."""

    def __init__(
        self,
        connection: Connection,
        *,
        undone: UndoneTurns,
        retry_window: float,
        wants_vector: Callable[[AddTurn], bool],
        memories_want_vectors: bool,
    ) -> None:
        self._connection = connection
        self._undone = undone
        self._retry_window = retry_window
        self._wants_vector = wants_vector
        self._memories_want_vectors = memories_want_vectors
        self._turns: list[AddTurn] = []
        self._keys: set[tuple[str, str, str]] = set()
        self._memories: list[Placed] = []
        self._distrusted: list[DistrustMemories] = []

    def add(self, item: WriteItem, writer: str, seq: int, part: int) -> None:
        """Take an item; the rest says where it comes from."""
        match item:
            case AddTurn():
                if turns.key_of(item) in self._keys:
                    self._store_turns()
                self._keys.add(turns.key_of(item))
                self._turns.append(item)
            case AddMemory() | ReplaceMemory() | RemoveMemory():
                self._memories.append(Placed(item, writer, seq, part))
            case UndoTurns():
                self._store_turns()
                self._undone.take_back(self._connection, item)
            case DistrustMemories():
                self._distrusted.append(item)
            case _:
                assert_never(item)

    def store(self) -> None:
        """Store the items."""
        self._store_turns()
        changed = memories.store(self._connection, self._memories)
        if self._memories_want_vectors:
            vectors.enqueue(self._connection, [(theme, Kind.MEMORY.value, row_id) for theme, row_id in changed])
        self._memories = []
        # They come after what they are about.
        for item in self._distrusted:
            memories.distrust(self._connection, item)
        self._distrusted = []

    def _store_turns(self) -> None:
        """Store the turns so far, between two looks at what was taken back: of those before them, and of them."""
        told = self._undone.read(self._connection, ((turn.theme, turn.session_id) for turn in self._turns))
        stored = turns.insert(
            self._connection, self._turns, retry_window=self._retry_window, wants_vector=self._wants_vector
        )
        self._undone.hide_new(self._connection, told, stored)
        self._turns, self._keys = [], set()
