"""A transaction of the tables' owner within the schema of one installation, while nobody else changes tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg

from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.schema.migrate import LOCK_KEY, check_in_use, schema_to_migrate, stay_within

CONNECT_SECONDS = 10


@contextmanager
def connected(dsn: str, name: str) -> Iterator[psycopg.Connection]:
    """A connection in autocommit mode; errors leave the block as ours."""
    with translated():
        connection = psycopg.connect(
            dsn,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name=name,
            prepare_threshold=None,
        )
    with connection, translated():
        conventions.keep_for_good(connection)
        yield connection


@contextmanager
def transaction(connection: psycopg.Connection, *, lock_ms: int) -> Iterator[psycopg.Transaction]:
    """Within the block, names mean this installation's tables, and no lock is waited for longer than this."""
    with connection.transaction() as opened:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
        stay_within(connection, schema_to_migrate(connection))
        check_in_use(connection)
        connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{lock_ms}ms",))
        yield opened


def translating() -> AbstractContextManager[None]:
    """For a block whose errors are to be told apart."""
    return translated()
