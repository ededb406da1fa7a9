"""`journal`: what to do with the records that Postgres has refused; `list rejected` names them, `show` opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.errors import CareError, DatabaseRejected
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import amounts, parse
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan
from hermes_memory_pgvector.terminal.parse import RecordName

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.store.dead_letters import DeadLetter

RETRY_SECONDS: Final = 30.0
COUNTS: Final = {"records": 1}


def journal(memory: Memory, *, what: str, record: RecordName, execute: bool) -> Plan:
    """Try to store a rejected record again, or delete it."""
    letter, payload = _found(memory, record)
    if what == "retry":
        _retry(memory, record, letter, payload)
        return Plan("retry", f"{record} is stored and no longer rejected", COUNTS, executed=True)
    if execute:
        from hermes_memory_pgvector.store import dead_letters

        with memory.changing() as connection:
            if dead_letters.drop(connection, letter.id):
                _note(memory, connection, "drop", record)
    told = Note("note", f"{amounts.size(letter.size)}, rejected because: {letter.reason}")
    return Plan("drop", f"{record} dropped", COUNTS, executed=execute, notes=(told,))


def _retry(memory: Memory, record: RecordName, letter: DeadLetter, payload: bytes) -> None:
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.journal import codec
    from hermes_memory_pgvector.store import dead_letters

    try:
        items = codec.decode(payload)
    except ValueError:
        raise CareError(f"{record} was rejected again: it cannot be read by this version") from None
    try:
        with memory.engine() as engine, engine.pool.transaction(Deadline.after(RETRY_SECONDS)) as connection:
            # Stored and gone in one transaction: however often it is tried, the record is stored once.
            if not dead_letters.drop(connection, letter.id):
                raise CareError(f"{record} was stored or deleted meanwhile")
            engine.writer.store(connection, f"letter:{letter.id}", items)
            _note(memory, connection, "retry", record)
    except DatabaseRejected as error:
        raise CareError(f"{record} was rejected again: {error}") from None


def _found(memory: Memory, record: RecordName) -> tuple[DeadLetter, bytes]:
    from hermes_memory_pgvector.store import dead_letters

    with memory.reading() as connection:
        found = dead_letters.find(connection, record.number)
    if found is None:
        raise CareError(f"there is no rejected record {record}; `list rejected` shows them")
    return found


def _note(memory: Memory, connection: Connection, action: str, record: RecordName) -> None:
    from hermes_memory_pgvector.ops import audit

    audit.record(connection, memory.actor, f"journal {action}", subject=str(record), counts=COUNTS)


JOURNAL: Final = Operation(
    "journal",
    "store a record that Postgres has rejected after all, or drop it",
    (
        Option("what", "retry: try to store it again; drop: delete it", choices=("retry", "drop"), required=True),
        Option("record", "d3, as `list rejected` names it", parse.rejected_name, required=True, metavar="ID"),
    ),
    journal,
    (
        ("journal retry d3", "once its cause is mended"),
        ("journal drop d3 --execute", "for good"),
    ),
    group="run",
    changes=True,
    on_page=False,
)  # fmt: skip
