"""Stores the records that have waited in the database for a node of the cluster, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseRejected
from hermes_memory_pgvector.journal import Record, codec
from hermes_memory_pgvector.store import dead_letters
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.store.reach import WRITER
from hermes_memory_pgvector.writer.absent_nodes import AbsentNodes, Divider
from hermes_memory_pgvector.writer.intake import Intake

TOGETHER = 200
"""How many records are stored in one transaction."""


def deliver_waiting(
    pool: Pool,
    absent: AbsentNodes,
    intake: Intake,
    *,
    seconds: float,
    max_bytes: int,
    on_stored: Callable[[int], None],
    is_stopping: Callable[[], bool],
) -> None:
    """Store what can be stored now, each transaction within so many seconds; `on_stored` hears of each."""
    absent.look()
    behind: set[str] = set()
    after, most = 0, TOGETHER
    while absent.waiting and not is_stopping():
        intake.begin()
        try:
            with pool.transaction(Deadline.after(seconds), reach=WRITER) as connection:
                letters = dead_letters.take_waiting(connection, after, most, max_bytes)
                if letters is None:
                    return
                stored = _store(connection, absent, intake, letters, behind, apart=most == 1)
        except DatabaseRejected:
            if most == 1:
                # Not for what it says: that would be a dead letter now.
                raise
            most //= 2
            continue
        on_stored(stored)
        absent.delivered(stored)
        if not letters:
            break
        after, most = letters[-1].id, TOGETHER
    if not (absent.names or behind or is_stopping()):
        absent.all_delivered()


def _store(
    connection: Connection,
    absent: AbsentNodes,
    intake: Intake,
    letters: Sequence[dead_letters.Waiting],
    behind: set[str],
    *,
    apart: bool,
) -> int:
    """Store letters except those of themes that still have to wait, which are added to `behind`."""
    divider = Divider(absent, connection, behind)
    batch = intake.new_batch(connection)
    done: list[int] = []
    for letter in letters:
        record = Record(letter.writer, letter.seq, letter.payload)
        try:
            items = intake.decode(letter.payload)
        except codec.NewerRecord:
            divider.behind |= letter.themes
            continue
        except ValueError as error:
            dead_letters.drop_waiting(connection, [letter.id])
            intake.bury(connection, record, letter.payload, str(error))
            continue
        if divider.keeps_back(items):
            continue
        done.append(letter.id)
        if apart:
            # It is kept as a dead letter now if it is refused again, under the same number.
            dead_letters.drop_waiting(connection, done)
            intake.store_each(connection, record, items)
        else:
            intake.add(batch, record, items)
    batch.store()
    dead_letters.drop_waiting(connection, done)
    behind |= divider.behind
    return len(done)
