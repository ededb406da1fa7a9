"""How far each journal has arrived in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from hermes_memory_pgvector.errors import DatabaseUnavailable
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store.schema import wanted_version

ATTEMPTS = 20


def lock(connection: Connection, writers: Sequence[str], home_id: str) -> dict[str, int]:
    """The watermarks of journals, locked until the transaction ends."""
    found: dict[str, int] = {}
    for _ in range(ATTEMPTS):
        # A watermark that somebody just moved to the list of ended journals cannot be locked: create it again.
        new = {"writers": list(writers), "home_id": home_id, "version": wanted_version()}
        connection.execute(statement("journal/create_watermarks"), new)
        rows = connection.execute(statement("journal/lock_watermarks"), {"writers": list(writers)}).fetchall()
        found = {str(writer): int(cast(int, seq)) for writer, seq in rows}
        if len(found) == len(set(writers)):
            return found
    raise DatabaseUnavailable("the marks of this home's journals were moved away each time they were to be locked")


def advance(connection: Connection, marks: Mapping[str, int]) -> None:
    """Move watermarks, in the transaction that stores the records."""
    moved = {"writers": list(marks), "seqs": list(marks.values()), "version": wanted_version()}
    connection.execute(statement("journal/advance_watermarks"), moved)


def end(connection: Connection, writers: Sequence[str]) -> None:
    """Note that these journals have arrived completely and that their files are about to be removed.

    A list of their names, and of where each ended, replaces their watermarks, so that a copy that turns up later is not
    stored again. The files may themselves be copies: a process that still writes the original continues from there.
    """
    connection.execute(statement("journal/end_watermarks"), {"writers": list(writers)})


def read(connection: Connection, writers: Sequence[str]) -> dict[str, int]:
    """The watermarks of those of these journals that have one."""
    rows = connection.execute(statement("journal/read_watermarks"), {"writers": list(writers)}).fetchall()
    return {str(writer): int(cast(int, seq)) for writer, seq in rows}


def of_older_versions(connection: Connection) -> list[tuple[str, datetime]]:
    """The homes that processes have delivered from which do not know what is forgotten, and when each last did."""
    rows: list[Any] = connection.execute(statement("journal/older_writers")).fetchall()
    return [(str(home_id), at) for home_id, at in rows]
