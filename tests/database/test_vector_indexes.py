"""The approximate index over all themes that an administrator may make: while agents write, whole or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from database.searching import Said, Store, store_of, unit
from psycopg import sql

from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.statements import admin_statement
from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes
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


@pytest.fixture
def indexes(database: Database, store: Store) -> Iterator[VectorIndexes]:
    with VectorIndexes.open(database.owner_dsn) as opened:
        yield opened


@contextmanager
def writing(database: Database) -> Iterator[None]:
    """A writer in the middle of its transaction: an index being made has to wait for it."""
    with psycopg.connect(database.owner_dsn) as connection:
        connection.execute("UPDATE turn_vectors_1 SET ts = ts WHERE agent_identity = 'small'")
        yield
        connection.rollback()


def test_there_is_one_of_turns_and_one_of_memories_of_the_shared_themes(indexes: VectorIndexes) -> None:
    assert (indexes.survey().shared_vectors, indexes.survey().indexes) == (65, ())
    assert [(done.name, done.is_new) for done in indexes.create()] == [(name, True) for name in BOTH]
    assert [(index.name, index.is_valid) for index in indexes.survey().indexes] == [(name, True) for name in BOTH]
    assert [done.is_new for done in indexes.create()] == [False, False]
    assert [done.name for done in indexes.drop()] == BOTH
    assert indexes.drop() == []


def test_an_index_of_somebody_elses_is_left_alone(indexes: VectorIndexes, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("CREATE INDEX other ON turn_vectors_1 USING hnsw (embedding halfvec_cosine_ops)")
    indexes.create()
    assert [done.name for done in indexes.drop()] == BOTH
    assert Stored(database.owner_dsn).rows("SELECT 1 FROM pg_class WHERE relname = 'other'") == [(1,)]


def test_what_an_interrupted_build_has_left_is_replaced(indexes: VectorIndexes, database: Database) -> None:
    statement = admin_statement("indexes/create").format(
        name=sql.Identifier("turn_vectors_1_all"), table=sql.Identifier("turn_vectors_1")
    )
    with writing(database), psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            owner.execute(sql.Composed([statement]))
    assert [(index.name, index.is_valid) for index in indexes.survey().indexes] == [("turn_vectors_1_all", False)]
    assert [done.is_new for done in indexes.create()] == [True, True]
    assert [index.is_valid for index in indexes.survey().indexes] == [True, True]


def test_writes_go_on_while_an_index_is_made(indexes: VectorIndexes, database: Database, store: Store) -> None:
    building = threading.Thread(target=indexes.create)
    with writing(database):
        building.start()
        with VectorIndexes.open(database.owner_dsn) as second:
            assert wait_until(lambda: any(index.is_building for index in second.survey().indexes))
            store.connection.execute("SET lock_timeout = '2s'")
            store.say(Said("written meanwhile", "large", vector=unit(random.Random(8), store.model.dim)))
            with pytest.raises(DatabaseUnavailable, match="another `hermes-pgvector migrate --index`"):
                second.create()
    building.join(30)
    with psycopg.connect(database.owner_dsn) as owner:
        count = owner.execute("SELECT reltuples FROM pg_class WHERE relname = 'turn_vectors_1_all'").fetchone()
    assert count == (66,)


def test_the_runtime_role_may_look_and_nothing_else(database: Database, store: Store) -> None:
    with VectorIndexes.open(database.runtime_dsn) as indexes:
        assert indexes.survey().indexes == ()
    create: Callable[[VectorIndexes], object] = VectorIndexes.create
    with pytest.raises(DatabaseDenied) as refused, VectorIndexes.open(database.runtime_dsn) as indexes:
        create(indexes)
    assert refused.value.sqlstate == "42501"


def test_without_vectors_there_is_nothing_to_index(indexes: VectorIndexes, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("DROP TABLE memory_vectors_1, turn_vectors_1 CASCADE; DELETE FROM embedding_models")
    with pytest.raises(SchemaError, match="hermes-pgvector migrate"), VectorIndexes.open(database.owner_dsn):
        pass


def test_a_login_that_limits_its_statements_can_build(database: Database, store: Store) -> None:
    dsn = psycopg.conninfo.make_conninfo(database.owner_dsn, options="-c statement_timeout=250ms")
    holding, made = threading.Event(), threading.Event()

    def hold() -> None:
        with writing(database):
            holding.set()
            made.wait(0.6)

    writer = threading.Thread(target=hold)
    with VectorIndexes.open(dsn) as indexes:
        writer.start()
        holding.wait(10)
        assert indexes.create()[0].is_new
    writer.join(10)
