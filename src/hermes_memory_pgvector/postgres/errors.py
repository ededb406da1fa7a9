"""Where psycopg's errors become ours: retry, reject or hold, decided by SQLSTATE in one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from hermes_memory_pgvector.errors import (
    DatabaseDenied,
    DatabaseError,
    DatabaseRejected,
    DatabaseUnavailable,
    DeadlineExceeded,
    MemoryPluginError,
)
from hermes_memory_pgvector.postgres.connect_failure import explain

# Classes of SQLSTATE by what helps: waiting, another statement, or an operator. A class that is not listed waits: an
# operator can notice and end a wait, but cannot bring back a write that was given up.
REJECTED_CLASSES = frozenset({"21", "22", "23", "44", "54", "P0", "38", "39", "2F"})
DENIED_CLASSES = frozenset({"42", "28", "3D", "3F", "0A", "0L", "0P", "2B"})
SCHEMA_STATES = frozenset({"42P01", "42703", "42883", "42704", "3F000", "42P10"})
MOVED_STATES = SCHEMA_STATES | {"42501", "55000"}
"""What is said where the tables were: there are views now, which take no rows."""
SHARED_STATES = SCHEMA_STATES | {"42501"}
SHARED_CLASSES = frozenset({"28", "3D", "3F"})
REMOTE_CLASS = "08"
PROTOCOL_VIOLATION = "08P01"
STATEMENT_MODE = (
    "the connection pooler refuses transactions: it runs in statement mode, and transaction mode is needed"
    " (in pgbouncer.ini: pool_mode = transaction)"
)
SERVER_AWAY = "the connection pooler or the coordinator cannot reach its server"
PLAIN_STATES = {
    "53100": "the disk of the database server is full; free some space there",
    "25006": "this server takes no writes: it is a standby or set to read-only; name the primary in dsn",
}
"""What an operator can mend, in words."""
OF_ONE_BUCKET = "bucket"
"""What kind of error concerns the themes of a bucket alone, as far as anybody can tell."""
MIGRATE_COMMAND = "hermes-pgvector migrate"


def translate(error: BaseException) -> DatabaseError:
    """Our error for a psycopg error, without the driver's own text."""
    state = getattr(error, "sqlstate", None)
    name = type(error).__name__
    if state is not None:
        where = f"{name}, SQLSTATE {state}"
        if state == PROTOCOL_VIOLATION:
            # Only a pooler that takes each statement for itself objects to a transaction in this way.
            return DatabaseUnavailable(f"{STATEMENT_MODE} ({where})", sqlstate=state)
        if state[:2] == REMOTE_CLASS:
            # A broken connection of our own has no state: the server speaks of one that it tried to make.
            return DatabaseUnavailable(f"{SERVER_AWAY} ({where})", sqlstate=state)
        if state in SCHEMA_STATES:
            return DatabaseDenied(f"the schema is missing or older ({where}); run: {MIGRATE_COMMAND}", sqlstate=state)
        if state[:2] in DENIED_CLASSES:
            return DatabaseDenied(f"Postgres refuses the role or the statement ({where})", sqlstate=state)
        if state[:2] in REJECTED_CLASSES:
            return DatabaseRejected(f"Postgres refuses the data ({where})", sqlstate=state)
        said = PLAIN_STATES.get(state, "Postgres is unavailable or busy")
        return DatabaseUnavailable(f"{said} ({where})", sqlstate=state)
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError | UnicodeError):
        return DatabaseRejected(f"the data cannot be sent to Postgres ({name})")
    if isinstance(error, psycopg.ProgrammingError | psycopg.NotSupportedError):
        return DatabaseDenied(f"the statement or the connection string is not valid ({name})")
    failure = explain(str(error)) if isinstance(error, psycopg.OperationalError) else None
    if failure is not None:
        return DatabaseUnavailable(failure.sentence, kind=failure.kind)
    return DatabaseUnavailable(f"Postgres cannot be reached ({name})")


def concerns_everyone(error: MemoryPluginError) -> bool:
    """Whether an error is about the server, the schema or the login, which all callers share.

    One caller's statement may be refused, or take longer than its deadline, and others may still be served.
    """
    if isinstance(error, DatabaseError) and error.kind == OF_ONE_BUCKET:
        return False
    if isinstance(error, DatabaseDenied):
        # Without a state, the connection string itself is at fault.
        return error.sqlstate is None or error.sqlstate in SHARED_STATES or error.sqlstate[:2] in SHARED_CLASSES
    return not isinstance(error, DatabaseRejected | DeadlineExceeded)


@contextmanager
def translated() -> Iterator[None]:
    """Run a block; psycopg's errors leave it as ours."""
    try:
        yield
    except (psycopg.Error, UnicodeError) as error:
        # The original text may hold content or a host name, so the chain ends here.
        raise translate(error) from None
