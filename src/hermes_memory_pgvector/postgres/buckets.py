"""Where the tables of a theme lie: in the schema there is, or in a bucket, which is one schema of several.

A theme belongs to the bucket that its name is dealt to, unless the database says that it was renamed or merged into
another. No statement names two buckets: whoever needs all of them asks one after the other. With one bucket nothing is
sent to the server that would not be without this module.
"""

from __future__ import annotations

import hashlib
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import psycopg

from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseError, DatabaseRejected
from hermes_memory_pgvector.postgres.statements import statement

if TYPE_CHECKING:
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.postgres.pool import Pool

Connection = psycopg.Connection[tuple[Any, ...]]
Answer = TypeVar("Answer")
REMEMBERED_SECONDS: Final = 5.0
"""How long it is remembered where themes lie that lie elsewhere; a writer asks each time."""


def bucket_of(theme: str, count: int) -> int:
    """The bucket that a theme's name is dealt to. Stored rows lie where this says: it never changes."""
    return int.from_bytes(hashlib.sha256(theme.encode("utf-8", "surrogatepass")).digest()[:4], "big") % count


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tables of themes lie in a database."""

    schemas: tuple[str, ...] = ()
    """Of the buckets, in their order; none where the tables lie beside the others."""
    usable: tuple[bool, ...] = ()
    path: str = ""
    """Where names lead otherwise."""
    places: Mapping[str, int] = field(default_factory=dict)
    """Themes that lie elsewhere than their names say."""
    read_at: float = 0.0

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return len(self.schemas) or 1

    def of(self, theme: str) -> int:
        """The bucket that a theme lies in."""
        return self.places.get(theme, bucket_of(theme, self.count)) if self.schemas else 0

    def path_to(self, bucket: int) -> str | None:
        """The search path on which names mean the tables of a bucket; None where they do anyway."""
        if not self.schemas:
            return None
        if not self.usable[bucket]:
            raise DatabaseDenied(f"bucket {bucket} is away: this role may not use its schema {self.schemas[bucket]}")
        name = self.schemas[bucket].replace('"', '""')
        return f'"{name}", {self.path}'


ONE: Final = Layout()
_known: weakref.WeakKeyDictionary[Connection, Layout] = weakref.WeakKeyDictionary()


def layout(connection: Connection, *, may_ask: bool = False) -> Layout:
    """The layout of a connection's database, as it was a moment ago; read anew only where the caller says so.

    `may_ask`: no transaction is open, so the path that the connection has is its own.
    """
    known = _known.get(connection)
    is_old = known is None or (known.schemas and time.monotonic() - known.read_at > REMEMBERED_SECONDS)
    if known is None or (may_ask and is_old):
        _known[connection] = known = read(connection)
    return known


def forget(connection: Connection) -> None:
    """The tables are elsewhere than was thought: ask again."""
    _known.pop(connection, None)


def read(connection: Connection) -> Layout:
    """The layout as the database tells it now."""
    row: Any = connection.execute(statement("connection/has_layout")).fetchone()
    found: Any = connection.execute(statement("connection/layout")).fetchone() if row[0] else None
    if found is None:
        return ONE
    schemas, usable, path, places = found
    return Layout(tuple(schemas), tuple(usable), path, places or {}, time.monotonic()) if schemas else ONE


def places(connection: Connection) -> dict[str, int]:
    """The themes that lie elsewhere than their names say, as it is at this moment."""
    rows: list[Any] = connection.execute(statement("connection/places")).fetchall()
    return dict(rows)


def enter(connection: Connection, bucket: int) -> None:
    """Let names mean the tables of a bucket until the transaction ends, or another one is entered."""
    path = layout(connection).path_to(bucket)
    if path is not None:
        connection.execute(statement("connection/enter"), {"path": path})


def leave(connection: Connection) -> None:
    """Let names mean what they mean outside of any bucket."""
    found = layout(connection)
    if found.schemas:
        connection.execute(statement("connection/enter"), {"path": found.path})


def within(connection: Connection) -> Iterator[int]:
    """Each bucket in turn, in one transaction; an error in one is an error in all."""
    for bucket in range(layout(connection).count):
        enter(connection, bucket)
        yield bucket
    leave(connection)


@dataclass(frozen=True, slots=True)
class Answers(Generic[Answer]):
    """What the buckets answered, and why others did not."""

    found: Mapping[int, Answer]
    missing: Mapping[int, str]

    @property
    def shortfall(self) -> str:
        """A sentence about those that did not; empty when all have."""
        return "; ".join(f"bucket {bucket} did not answer: {reason}" for bucket, reason in self.missing.items())


def each(
    pool: Pool,
    deadline: Deadline,
    ask: Callable[[Connection], Answer],
    transaction: Callable[[int], AbstractContextManager[Connection]] | None = None,
) -> Answers[Answer]:
    """Ask every bucket in a transaction of its own. Raises where none answers, and where there is only one."""
    found: dict[int, Answer] = {}
    missing: dict[int, DatabaseError] = {}
    for bucket in range(pool.buckets(deadline)):
        try:
            with transaction(bucket) if transaction else pool.transaction(deadline, bucket=bucket) as connection:
                found[bucket] = ask(connection)
        except DatabaseRejected:
            raise
        except DatabaseError as error:
            missing[bucket] = error
    if not found:
        raise next(iter(missing.values()))
    return Answers(found, {bucket: str(error) for bucket, error in missing.items()})
