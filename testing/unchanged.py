"""Proof that something changes nothing: a checksum over every row of every table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.runtime.registry import close_all
from testing.stored import Stored

TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' ORDER BY 1"""


def checksums(dsn: str) -> dict[str, tuple[int, str]]:
    """The number of rows and a checksum over all of them, for every table that the login sees."""
    found = {}
    with psycopg.connect(dsn, application_name="test") as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            row = connection.execute(
                "SELECT count(*), coalesce(md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))), '')"
                f" FROM {table} AS t".encode()
            ).fetchone()
            assert row is not None
            found[str(table)] = (int(row[0]), str(row[1]))
    return found


@contextmanager
def nothing_changes(stored: Stored) -> Iterator[None]:
    """Fail when the block leaves any row of any table other than it was. Needs the owner's login.

    Engines of this process are ended first: what they do in the background is not the block's doing.
    """
    close_all(Deadline.after(10))
    before = checksums(stored.dsn)
    assert len(before) >= 15, "the login does not see the tables"
    yield
    after = checksums(stored.dsn)
    assert after == before, sorted(table for table in after if after[table] != before.get(table))
