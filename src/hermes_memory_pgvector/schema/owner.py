"""The owner's connection: names mean the tables of one installation, and nobody else changes them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.postgres.statements import admin_statement
from hermes_memory_pgvector.store.schema import not_in_use

LOCK_KEY: Final = 0x6865726D65737067
CONNECT_SECONDS: Final = 10
INSTALLATION: Final = "hermes_pgvector_installation"

Query = sql.SQL | sql.Composed


@contextmanager
def connected(dsn: str, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit mode; errors leave the block as ours."""
    with translated():
        connection = psycopg.connect(
            dsn, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name=name, prepare_threshold=None
        )
    with connection, translated():
        conventions.keep_for_good(connection)
        # The login may have a limit that suits agents; what an owner does takes as long as it takes.
        connection.execute("SELECT set_config('statement_timeout', '0', false)")
        yield connection


@contextmanager
def transaction(connection: psycopg.Connection[Any], *, lock_ms: int) -> Iterator[psycopg.Transaction]:
    """Within the block, names mean this installation's tables, and no lock is waited for longer than this."""
    with connection.transaction() as opened:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
        stay_within(connection, schema_to_migrate(connection))
        check_in_use(connection)
        connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{lock_ms}ms",))
        yield opened


def value(connection: psycopg.Connection[Any], query: str | Query, values: Sequence[Any] | None = None) -> Any:
    """The first column of the first row of an answer; None without one."""
    text = admin_statement(query) if isinstance(query, str) else query
    row = connection.execute(text, values).fetchone()
    return None if row is None else row[0]


def has_table(connection: psycopg.Connection[Any], name: str) -> bool:
    """Whether this schema, and not one further along the search_path, has a table of that name."""
    return bool(value(connection, "schema/table_exists", (name,)))


def schema_to_migrate(connection: psycopg.Connection[Any]) -> str:
    """The schema that new tables go to; SchemaError when there is none."""
    found = value(connection, sql.SQL("SELECT current_schema()"))
    if found is None:
        raise SchemaError(
            "the search_path of this login names no schema that exists; create the schema, "
            "then run: hermes-pgvector migrate"
        )
    return str(found)


def stay_within(connection: psycopg.Connection[Any], *schemas: str) -> None:
    """Resolve names in these schemas only: another one on the login's search_path may hold another installation."""
    connection.execute(admin_statement("schema/stay_within"), (list(schemas),))


def buckets(connection: psycopg.Connection[Any]) -> list[str]:
    """The schemas that the tables of themes lie in; that of the other tables where there is one bucket."""
    return list(value(connection, "schema/buckets")) or [schema_to_migrate(connection)]


def within_buckets(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Each bucket's schema in turn, with names that mean its tables, in one transaction."""
    main, schemas = schema_to_migrate(connection), buckets(connection)
    if schemas == [main]:
        yield main
        return
    for schema in schemas:
        stay_within(connection, schema, main)
        yield schema
    stay_within(connection, main)


def check_in_use(connection: psycopg.Connection[Any]) -> None:
    """Keep off a database that is no longer in use: its rights must stay as they are."""
    if has_table(connection, INSTALLATION):
        row = connection.execute(admin_statement("moving/mark")).fetchone()
        if row is not None and row[1] is not None:
            raise SchemaError(not_in_use(row[1]))
