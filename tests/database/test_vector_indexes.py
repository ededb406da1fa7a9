"""The approximate index over all themes that an administrator may make: while agents write, whole or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from database.searching import Said, Store, store_of, unit
from psycopg import sql

from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.statements import admin_statement
from hermes_memory_pgvector.schema import vector_indexes
from testing.postgres import Database
from testing.stored import Stored
from testing.waiting import wait_until

BOTH = ["turn_vectors_1_all", "memory_vectors_1_all"]


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with store_of(database) as opened:
        generator = random.Random(3)
        for theme, rows in (("large", 60), ("small", 5), ("dm-1", 55)):
            opened.say(*(Said(f"{theme} {n}", theme, vector=unit(generator, opened.model.dim)) for n in range(rows)))
        yield opened


@contextmanager
def writing(database: Database) -> Iterator[None]:
    """A writer in the middle of its transaction: an index being made has to wait for it."""
    with psycopg.connect(database.owner_dsn) as connection:
        connection.execute("UPDATE turn_vectors_1 SET ts = ts WHERE agent_identity = 'small'")
        yield
        connection.rollback()


def valid(dsn: str) -> list[tuple[str, bool]]:
    """The indexes there are, and whether each is read."""
    found = "SELECT c.relname, i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    return Stored(dsn).rows(f"{found} WHERE c.relname LIKE '%%vectors\\_1\\_all' ORDER BY c.relname DESC")


def test_there_is_one_of_turns_and_one_of_memories_of_the_shared_themes(database: Database, store: Store) -> None:
    dsn = database.owner_dsn
    assert valid(dsn) == []
    made = vector_indexes.create(dsn)
    assert valid(dsn) == [(name, True) for name in BOTH]
    assert vector_indexes.create(dsn) == made
    rows = Stored(dsn).rows("SELECT reltuples FROM pg_class WHERE relname = 'turn_vectors_1_all'")
    assert rows == [(65,)]
    assert [index.name for index in vector_indexes.drop(dsn)] == BOTH
    assert vector_indexes.drop(dsn) == []


def test_each_bucket_has_its_own(four_buckets: Database) -> None:
    assert [index.name for index in vector_indexes.create(four_buckets.owner_dsn)] == BOTH * 4
    rows = Stored(four_buckets.owner_dsn).rows(
        "SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'turn_vectors_1_all' ORDER BY 1"
    )
    assert rows == [(f"hermes_{bucket:02}",) for bucket in range(4)]
    assert len(vector_indexes.drop(four_buckets.owner_dsn)) == 8
    assert valid(four_buckets.owner_dsn) == []


def test_an_index_of_somebody_elses_is_left_alone(database: Database, store: Store) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("CREATE INDEX other ON turn_vectors_1 USING hnsw (embedding halfvec_cosine_ops)")
    vector_indexes.create(database.owner_dsn)
    assert [index.name for index in vector_indexes.drop(database.owner_dsn)] == BOTH
    assert Stored(database.owner_dsn).rows("SELECT 1 FROM pg_class WHERE relname = 'other'") == [(1,)]


def test_what_an_interrupted_build_has_left_is_replaced(database: Database, store: Store) -> None:
    statement = admin_statement("indexes/create").format(
        name=sql.Identifier("turn_vectors_1_all"), table=sql.Identifier("turn_vectors_1")
    )
    with writing(database), psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            owner.execute(sql.Composed([statement]))
    assert valid(database.owner_dsn) == [("turn_vectors_1_all", False)]
    vector_indexes.create(database.owner_dsn)
    assert valid(database.owner_dsn) == [(name, True) for name in BOTH]


def test_writes_go_on_while_an_index_is_made(database: Database, store: Store) -> None:
    building = threading.Thread(target=vector_indexes.create, args=(database.owner_dsn,))
    with writing(database):
        building.start()
        assert wait_until(lambda: valid(database.owner_dsn))
        store.connection.execute("SET lock_timeout = '2s'")
        store.say(Said("written meanwhile", "large", vector=unit(random.Random(8), store.model.dim)))
        with pytest.raises(DatabaseUnavailable, match="another `hermes-pgvector migrate --index`"):
            vector_indexes.create(database.owner_dsn)
    building.join(30)
    with psycopg.connect(database.owner_dsn) as owner:
        count = owner.execute("SELECT reltuples FROM pg_class WHERE relname = 'turn_vectors_1_all'").fetchone()
    assert count == (66,)


def test_the_runtime_role_may_look_and_nothing_else(database: Database, store: Store) -> None:
    assert valid(database.runtime_dsn) == []
    with pytest.raises(DatabaseDenied) as refused:
        vector_indexes.create(database.runtime_dsn)
    assert refused.value.sqlstate == "42501"


def test_without_vectors_there_is_nothing_to_index(database: Database, store: Store) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("DROP TABLE memory_vectors_1, turn_vectors_1 CASCADE; DELETE FROM embedding_models")
    with pytest.raises(SchemaError, match="hermes-pgvector migrate"):
        vector_indexes.create(database.owner_dsn)


def test_a_login_that_limits_its_statements_can_build(database: Database, store: Store) -> None:
    dsn = psycopg.conninfo.make_conninfo(database.owner_dsn, options="-c statement_timeout=250ms")
    holding, made = threading.Event(), threading.Event()

    def hold() -> None:
        with writing(database):
            holding.set()
            made.wait(0.6)

    writer = threading.Thread(target=hold)
    writer.start()
    holding.wait(10)
    vector_indexes.create(dsn)
    writer.join(10)
    assert valid(dsn) == [(name, True) for name in BOTH]
