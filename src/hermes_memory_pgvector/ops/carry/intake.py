"""Turns and memories from elsewhere on their way into Postgres, in portions, beside a memory that is in use.

Each portion is a transaction of its own: whoever is killed starts again, and nothing is stored twice. The portions of a
dry run are one transaction, which is taken back, so that it counts what a run would.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import gate, hidden, memories, turns, vectors
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import AddMemory, AddTurn, Kind
from hermes_memory_pgvector.writer.chunks import wants_vector
from hermes_memory_pgvector.writer.masking import without_secrets

PORTION_ROWS = 500
PORTION_CHARS = 1_000_000
STORE_SECONDS = 300.0
DRY_SECONDS = 3600.0
PAUSE_SECONDS = 0.002
"""Between two portions, so that a process that waits for its turn gets it."""
WRITER = "import"
"""Where the operations come from that stand for memories without a history."""
FORGOTTEN = "that were forgotten here"


@dataclass(frozen=True, slots=True)
class Found:
    """A row of another place."""

    item: AddTurn | AddMemory
    hidden_since: datetime | None = None
    """Since when it was hidden there; None when it was not."""


@dataclass(slots=True)
class Tally:
    """Counts of one import: rows by theme, and by reason what was not for storing."""

    new: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    """What was there already."""
    left_out: Counter[str] = field(default_factory=Counter)


class RowIntake:
    """Stores rows portion by portion."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[Connection]],
        settings: Settings,
        advance: Callable[[int], None],
    ) -> None:
        self.transaction = transaction
        self.settings = settings
        self.tally = Tally()
        self.advance = advance
        """Learns how much has been read."""
        self._masker = masker_for(settings)
        self._portion: list[Found] = []
        self._chars = 0

    def add(self, found: Found) -> None:
        """Take a row; its secrets stay behind."""
        item = without_secrets(found.item, self._masker)
        assert isinstance(item, AddTurn | AddMemory)
        self._portion.append(Found(item, found.hidden_since))
        self._chars += len(item.content)
        if len(self._portion) >= PORTION_ROWS or self._chars >= PORTION_CHARS:
            self.flush()

    def flush(self) -> None:
        """Store what has been collected."""
        portion, self._portion, self._chars = self._portion, [], 0
        if not portion:
            return
        with self.transaction() as connection:
            opened = gate.enter(connection)
            admitted = opened.admitted(connection, [each.item for each in portion])
            self.tally.left_out[FORGOTTEN] += len(portion) - len(admitted)
            stored = self._store_turns(connection, [item for item in admitted if isinstance(item, AddTurn)])
            stored += self._store_memories(connection, [item for item in admitted if isinstance(item, AddMemory)])
            hiding = [(opened.renamed(each.item), each.hidden_since) for each in portion if each.hidden_since]
            _hide(connection, hiding, set(stored))
        new = Counter(theme for theme, _ in stored)
        self.tally.new += new
        self.tally.known += Counter(item.theme for item in admitted) - new
        time.sleep(PAUSE_SECONDS)

    def _store_turns(self, connection: Connection, items: list[AddTurn]) -> list[tuple[str, int]]:
        return turns.insert(
            connection,
            _missing(connection, items),
            retry_window=self.settings.turn_retry_window,
            wants_vector=partial(wants_vector, self.settings),
        )

    def _store_memories(self, connection: Connection, items: list[AddMemory]) -> list[tuple[str, int]]:
        known = _held_memories(connection, items)
        # The number says which words these are: the same entry of the same time is brought once.
        placed = [
            Placed(item, WRITER, int(turn_digest(item.theme, f"{item.target}:{item.content}")[:15], 16), 0)
            for place, item in enumerate(items)
            if place not in known
        ]
        changed = memories.store(connection, placed)
        if self.settings.embed_on_write:
            vectors.enqueue(connection, [(theme, Kind.MEMORY.value, row_id) for theme, row_id in changed])
        return changed


@contextmanager
def taking_in(
    pool: Pool, settings: Settings, *, is_dry: bool, advance: Callable[[int], None] = lambda _: None
) -> Iterator[RowIntake]:
    """Takes rows in for the length of the block; what comes before a line that says nothing is stored."""
    with ExitStack() as stack:
        transaction: Callable[[], AbstractContextManager[Connection]]
        if is_dry:
            only = stack.enter_context(pool.transaction(Deadline.after(DRY_SECONDS)))
            stack.enter_context(only.transaction(force_rollback=True))
            transaction = lambda: nullcontext(only)  # noqa: E731
        else:
            transaction = lambda: pool.transaction(Deadline.after(STORE_SECONDS))  # noqa: E731
        intake = RowIntake(transaction, settings, advance)
        try:
            yield intake
        except ConfigError:
            intake.flush()
            raise
        intake.flush()


def _missing(connection: Connection, items: Sequence[AddTurn]) -> list[AddTurn]:
    """The turns that are not stored, with ordinals that are free.

    An item's ordinal says for the how many-th time its session says these words. Live traffic may have numbered them
    otherwise, as it has not always seen the whole session: so they are counted.
    """
    keys = list(dict.fromkeys(map(turns.key_of, items)))
    values = dict(zip(("themes", "session_ids", "digests"), map(list, zip(*keys, strict=True)), strict=False))
    rows: list[Any] = connection.execute(statement("carry/occurrences"), values).fetchall() if keys else []
    held = {keys[int(place) - 1]: (int(count), int(last)) for place, count, last in rows}
    found = []
    for item in items:
        count, last = held.get(turns.key_of(item), (0, 0))
        if item.ordinal > count:
            found.append(replace(item, ordinal=last + item.ordinal - count))
    return found


def _held_memories(connection: Connection, items: Sequence[AddMemory]) -> dict[int, int]:
    """The ids of those memories that are stored, by their places in the list."""
    columns = {"themes": "theme", "targets": "target", "contents": "content"}
    values = {name: [getattr(item, each) for item in items] for name, each in columns.items()}
    rows: list[Any] = connection.execute(statement("carry/held_memories"), values).fetchall() if items else []
    return {int(place) - 1: int(row_id) for place, row_id in rows}


def _held_turns(connection: Connection, items: Sequence[AddTurn]) -> dict[int, int]:
    """The ids of those turns that are stored, by their places in the list."""
    values = {
        "themes": [item.theme for item in items],
        "session_ids": [item.session_id for item in items],
        "digests": [item.digest or turn_digest(item.role, item.content) for item in items],
        "ordinals": [item.ordinal for item in items],
    }
    rows: list[Any] = connection.execute(statement("carry/held_turns"), values).fetchall() if items else []
    return {int(place) - 1: int(row_id) for place, row_id in rows}


def _hide(
    connection: Connection, brought: Sequence[tuple[AddTurn | AddMemory, datetime]], new: set[tuple[str, int]]
) -> None:
    """Hide rows that were hidden where they come from, each since its time; what was here already stays as it is."""
    said = [(item, at) for item, at in brought if isinstance(item, AddTurn)]
    noted = [(item, at) for item, at in brought if isinstance(item, AddMemory)]
    turn_ids = _held_turns(connection, [item for item, _ in said])
    memory_ids = _held_memories(connection, [item for item, _ in noted])
    keys = [(hidden.Key(Kind.TURN, said[place][0].theme, row_id), said[place][1]) for place, row_id in turn_ids.items()]
    keys += [
        (hidden.Key(Kind.MEMORY, noted[place][0].theme, row_id), noted[place][1])
        for place, row_id in memory_ids.items()
    ]
    wanted = [(key, at) for key, at in keys if (key.theme, key.id) in new]
    if wanted:
        hidden.bring(connection, wanted)
