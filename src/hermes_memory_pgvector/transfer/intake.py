"""Turns on their way into Postgres in portions, one transaction each, beside a memory that is in use.

A process that is killed between two portions loses nothing: whoever starts again finds what is stored and goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import gate, turns
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.transfer.tally import FORGOTTEN, Tally
from hermes_memory_pgvector.values import AddTurn, RecordDelegation
from hermes_memory_pgvector.writer.chunks import wants_vector
from hermes_memory_pgvector.writer.masking import mask_turn

PORTION_TURNS = 500
PORTION_CHARS = 1_000_000
STORE_SECONDS = 300.0
DRY_SECONDS = 3600.0
PAUSE_SECONDS = 0.002
"""Between two portions, so that a process that waits for its turn gets it."""


Transaction = Callable[[], AbstractContextManager[Connection]]
"""Opens the transaction of one portion."""


@contextmanager
def storing(pool: Pool, *, is_dry: bool) -> Iterator[Transaction]:
    """Transactions for portions; those of a dry run are one, which is taken back, so it counts what a run would."""
    if not is_dry:
        yield lambda: pool.transaction(Deadline.after(STORE_SECONDS))
        return
    with (
        pool.transaction(Deadline.after(DRY_SECONDS)) as connection,
        connection.transaction(force_rollback=True),
    ):
        yield lambda: nullcontext(connection)


class TurnIntake:
    """Collects turns and stores them portion by portion."""

    def __init__(self, transaction: Transaction, settings: Settings, tally: Tally) -> None:
        self._transaction = transaction
        self._settings = settings
        self._masker = masker_for(settings)
        self._tally = tally
        self._turns: list[AddTurn] = []
        self._edges: list[RecordDelegation] = []
        self._chars = 0
        self.after_portion: Callable[[], None] = lambda: None
        self.aliases: Mapping[str, str] = {}
        """Themes that have another name by now."""

    def add(self, turn: AddTurn) -> None:
        """Take a turn that is not stored yet; its secrets stay behind."""
        turn = mask_turn(turn, self._masker)
        self._turns.append(turn)
        self._chars += len(turn.content)
        if len(self._turns) >= PORTION_TURNS or self._chars >= PORTION_CHARS:
            self.flush()

    def add_edge(self, edge: RecordDelegation) -> None:
        """Take an edge between sessions; it is stored once, however often it comes."""
        self._edges.append(edge)

    def flush(self) -> None:
        """Store what has been collected."""
        if not self._turns and not self._edges:
            return
        portion, edges = self._turns, self._edges
        self._turns, self._edges, self._chars = [], [], 0
        with self._transaction() as connection:
            # Under the names they were said under; they are stored under those that their themes have now.
            opened = gate.enter(connection)
            refused = opened.tombstones(connection, portion)
            wanted = [turn for turn in portion if not refused.refuses(turn)]
            self._tally.left_out[FORGOTTEN] += len(portion) - len(wanted)
            portion = wanted
            stored = turns.insert(
                connection,
                portion,
                retry_window=self._settings.turn_retry_window,
                wants_vector=partial(wants_vector, self._settings),
            )
            for edge in edges:
                turns.delegate(connection, edge)
        for turn in portion:
            self._tally.themes[opened.renamed(turn).theme].known += 1
        for theme, _ in stored:
            # Whoever stored the others did so after we had looked.
            self._tally.themes[theme].known -= 1
            self._tally.themes[theme].new += 1
        self.after_portion()
        time.sleep(PAUSE_SECONDS)
