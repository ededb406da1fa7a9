"""Where the tables of a theme lie: in the schema there is, or in a bucket, which is one schema of several.

A theme belongs to the bucket that its name is dealt to, unless the database says that it was renamed or merged into
another. No statement names two buckets: whoever needs all of them asks one after the other. With one bucket nothing is
sent to the server that would not be without this module.
"""

from __future__ import annotations

import hashlib
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import psycopg

from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseError, DatabaseRejected
from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.errors import OF_ONE_BUCKET
from hermes_memory_pgvector.postgres.statements import statement

if TYPE_CHECKING:
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.postgres.pool import Pool

Connection = psycopg.Connection[tuple[Any, ...]]
Answer = TypeVar("Answer")
Thing = TypeVar("Thing")
MOST_TOGETHER: Final = 4
"""On how many connections the buckets are asked at once."""
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
            reason = f"this role may not use its schema {self.schemas[bucket]}"
            raise DatabaseDenied(f"bucket {bucket} is away: {reason}", kind=OF_ONE_BUCKET)
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
    for name in ("connection/has_layout", "connection/is_dealt"):
        row: Any = connection.execute(statement(name)).fetchone()
        if not row or not row[0]:
            return ONE
    with connection.transaction():
        # Names are words, too, and the connection may not be in a transaction that keeps to our conventions.
        conventions.keep_to(connection)
        row = connection.execute(statement("connection/layout")).fetchone()
    schemas, usable, path, places = row
    return Layout(tuple(schemas), tuple(usable), path, places or {}, time.monotonic())


def places(connection: Connection) -> dict[str, int]:
    """The themes that lie elsewhere than their names say, as it is at this moment."""
    rows: list[Any] = connection.execute(statement("connection/places")).fetchall()
    return dict(rows)


def present(connection: Connection) -> Layout:
    """The layout, with where themes lie at this moment: for whoever writes to the buckets it names."""
    found = layout(connection)
    return replace(found, places=places(connection)) if found.schemas else found


def enter(connection: Connection, bucket: int) -> None:
    """Let names mean the tables of a bucket until the transaction ends, or another one is entered."""
    path = layout(connection).path_to(bucket)
    if path is not None:
        connection.execute(statement("connection/enter"), {"path": path})


def within(connection: Connection) -> Iterator[int]:
    """Each bucket in turn, in one transaction; an error in one is an error in all."""
    with _returning(connection) as found:
        for bucket in range(found.count):
            enter(connection, bucket)
            yield bucket


def reached(connection: Connection, ask: Callable[[Connection], Answer]) -> dict[int, Answer]:
    """What the buckets answer that can be reached, in one transaction: nobody waits for the others."""
    found: dict[int, Answer] = {}
    with _returning(connection) as now:
        if not now.schemas:
            return {0: ask(connection)}
        for bucket in range(now.count):
            with suppress(DatabaseError, psycopg.Error), connection.transaction():
                enter(connection, bucket)
                found[bucket] = ask(connection)
    return found


def silent(connection: Connection) -> str:
    """Which buckets do not answer, in a sentence; empty where all do."""
    now = layout(connection)
    if not now.schemas:
        return ""
    heard = reached(connection, lambda each: each.execute("SELECT FROM journal_writers LIMIT 1").rowcount)
    names = ", ".join(f"{bucket} ({now.schemas[bucket]})" for bucket in range(now.count) if bucket not in heard)
    return f"of {now.count} buckets, these do not answer: {names}; what is for their themes waits" if names else ""


def apart(connection: Connection, things: Iterable[Thing], theme_of: Callable[[Thing], str]) -> Iterator[list[Thing]]:
    """Things by the bucket that their themes lie in, in one transaction: names mean its tables meanwhile."""
    with _returning(connection) as found:
        if not found.schemas:
            yield list(things)
            return
        now = places(connection)
        dealt: dict[int, list[Thing]] = {}
        for thing in things:
            theme = theme_of(thing)
            dealt.setdefault(now.get(theme, bucket_of(theme, found.count)), []).append(thing)
        for bucket, part in dealt.items():
            enter(connection, bucket)
            yield part


@contextmanager
def _returning(connection: Connection) -> Iterator[Layout]:
    """After the block, names mean what they did before it."""
    found = layout(connection)
    former: Any = connection.execute(statement("connection/path")).fetchone() if found.schemas else None
    yield found
    if former is not None:
        connection.execute(statement("connection/enter"), {"path": former[0]})


@dataclass(frozen=True, slots=True)
class Answers(Generic[Answer]):
    """What the buckets answered, and why others did not."""

    found: Mapping[int, Answer]
    missing: Mapping[int, str]

    @property
    def shortfall(self) -> str:
        """A sentence about those that did not; empty when all have."""
        if not self.missing:
            return ""
        names = ", ".join(map(str, self.missing))
        total = len(self.found) + len(self.missing)
        return f"{len(self.missing)} of {total} buckets did not answer: {names} ({next(iter(self.missing.values()))})"


def each(
    pool: Pool,
    deadline: Deadline,
    ask: Callable[[Connection], Answer],
) -> Answers[Answer]:
    """Ask every bucket in a transaction of its own. Raises where none answers, and where there is only one."""
    return _one_by_one(pool.buckets(deadline), {}, lambda bucket: pool.transaction(deadline, bucket=bucket), ask)


def together(pool: Pool, deadline: Deadline, send: Callable[[Connection], Callable[[], Answer]]) -> Answers[Answer]:
    """As `each`, but all at once, on the connections that are to be had: `send` asks, and what it returns receives."""
    count = pool.buckets(deadline)
    found: dict[int, Answer] = {}
    # What goes wrong in one bucket takes along those asked after it on its connection: they are asked again.
    with suppress(DatabaseError), ExitStack() as stack:
        lines = [stack.enter_context(pool.reading(deadline))]
        with suppress(DatabaseError):
            while len(lines) < min(count, MOST_TOGETHER):
                lines.append(stack.enter_context(pool.reading(deadline, patience=0.0)))
        pending: dict[int, Callable[[], Answer]] = {}
        for bucket in range(count):
            with suppress(DatabaseError, psycopg.Error):
                enter(lines[bucket % len(lines)], bucket)
                pending[bucket] = send(lines[bucket % len(lines)])
        for bucket, receive in pending.items():
            with suppress(DatabaseError, psycopg.Error):
                found[bucket] = receive()

    def ask(connection: Connection) -> Answer:
        return send(connection)()

    return _one_by_one(count, found, lambda bucket: pool.reading(deadline, bucket=bucket), ask)


def any_of(pool: Pool, deadline: Deadline, ask: Callable[[Connection], Answer]) -> Answer:
    """Ask for what every bucket has, until one answers."""
    count = pool.buckets(deadline)
    for bucket in range(count):
        try:
            with pool.transaction(deadline, bucket=bucket) if count > 1 else pool.connection(deadline) as connection:
                return ask(connection)
        except DatabaseError:
            if bucket == count - 1:
                raise
    raise AssertionError("there is a last bucket")


def _one_by_one(
    count: int,
    found: dict[int, Answer],
    opened: Callable[[int], AbstractContextManager[Connection]],
    ask: Callable[[Connection], Answer],
) -> Answers[Answer]:
    missing: dict[int, DatabaseError] = {}
    for bucket in sorted({*range(count)} - found.keys()):
        try:
            with opened(bucket) as connection:
                found[bucket] = ask(connection)
        except DatabaseRejected:
            raise
        except DatabaseError as error:
            missing[bucket] = error
    if not found:
        raise next(iter(missing.values()))
    return Answers(found, {bucket: str(error) for bucket, error in missing.items()})
