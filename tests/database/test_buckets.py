"""Themes dealt to several buckets: each a schema with the same tables, all on one server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseDenied
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.postgres import Database

COUNT = 4


@pytest.fixture
def pool(four_buckets: Database) -> Iterator[Pool]:
    opened = Pool(lambda _: four_buckets.runtime_dsn, maximum=2, connect_seconds=5)
    yield opened
    opened.close()


def test_where_a_theme_lies_never_changes() -> None:
    """Rows are stored by it, in databases that last longer than any version of this package."""
    assert [bucket_of(theme, 16) for theme in ("hermes", "dm-0123456789abcdef", "größe")] == [15, 11, 7]
    assert bucket_of("hermes", 4) == 3
    assert {bucket_of(f"theme-{number}", 16) for number in range(200)} == set(range(16))


def test_one_bucket_is_the_schema_that_is_there(database: Database) -> None:
    pool = Pool(lambda _: database.runtime_dsn, maximum=1, connect_seconds=5)
    deadline = Deadline.after(30)
    assert pool.buckets(deadline) == 1
    with pool.transaction(deadline, theme="hermes") as connection:
        before = connection.execute("SHOW search_path").fetchone()
    with pool.transaction(deadline) as connection:
        assert connection.execute("SHOW search_path").fetchone() == before
        assert list(buckets.within(connection)) == [0]
    pool.close()


def test_each_bucket_has_the_tables_of_themes_and_ids_of_its_own(pool: Pool) -> None:
    deadline = Deadline.after(30)
    numbers: list[int] = []
    for bucket in range(pool.buckets(deadline)):
        with pool.transaction(deadline, bucket=bucket) as connection:
            for _ in range(3):
                row: Any = connection.execute(
                    "INSERT INTO conversations (agent_identity, session_id, role, content)"
                    " VALUES (%s, 's', 'user', 'words') RETURNING id, tableoid::regclass::text",
                    (f"theme-{bucket}",),
                ).fetchone()
                numbers.append(int(row[0]))
                assert row[0] % COUNT == (bucket + 1) % COUNT
    assert len(set(numbers)) == 3 * COUNT
    with pool.transaction(deadline) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT id) FROM conversations").fetchone() == (12, 12)
        assert connection.execute(
            "SELECT value FROM hermes_metrics WHERE name = 'hermes_pgvector_turns'"
        ).fetchone() == (12.0,)


def test_a_theme_leads_to_its_bucket(pool: Pool) -> None:
    deadline = Deadline.after(30)
    for theme in ("hermes", "coder", "writer"):
        with pool.transaction(deadline, theme=theme) as connection:
            row = connection.execute("SELECT current_schema()").fetchone()
            assert row == (f"hermes_{bucket_of(theme, COUNT):02}",)


def test_a_bucket_that_is_away_is_named(four_buckets: Database, pool: Pool) -> None:
    with psycopg.connect(four_buckets.owner_dsn, autocommit=True) as owner:
        owner.execute(f"REVOKE USAGE ON SCHEMA hermes_03 FROM {RUNTIME_ROLE}")
    deadline = Deadline.after(30)
    found = buckets.each(
        pool, deadline, lambda connection: connection.execute("SELECT count(*) FROM hidden").fetchone()
    )
    assert found.found == {0: (0,), 1: (0,), 2: (0,)}
    assert "bucket 3 did not answer" in found.shortfall
    with pytest.raises(DatabaseDenied, match="bucket 3 is away"), pool.transaction(deadline, theme="hermes"):
        pass


def test_migrate_again_keeps_the_buckets(four_buckets: Database) -> None:
    outcome = migrate.apply(four_buckets.owner_dsn, runtime_role=RUNTIME_ROLE)
    assert outcome.applied == []
    with psycopg.connect(four_buckets.runtime_dsn) as connection:
        assert connection.execute("SELECT count(*) FROM hermes_rows").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM conversations_embedded").fetchone() == (0,)
