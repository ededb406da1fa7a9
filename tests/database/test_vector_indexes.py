"""The approximate indexes an administrator may make: where they pay, while agents write, whole or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from database.searching import Said, Store, store_of, unit
from psycopg import sql

from hermes_memory_pgvector.errors import ConfigError, DatabaseDenied, DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.schema import index_progress, vector_indexes
from hermes_memory_pgvector.schema.statements import admin_statement
from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes, theme_index_name
from hermes_memory_pgvector.store import schema
from testing.postgres import Database
from testing.stored import Stored
from testing.waiting import wait_until

LARGE = 50
ODD = 'o\'brien \\ "x" %s {y} 斑马'


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with store_of(database) as opened:
        generator = random.Random(3)
        for theme, rows in (("large", 60), ("small", 5), ("dm-1", 55), (ODD, 52)):
            opened.say(*(Said(f"{theme} {n}", theme, vector=unit(generator, opened.model.dim)) for n in range(rows)))
        yield opened


@pytest.fixture
def indexes(database: Database, store: Store) -> Iterator[VectorIndexes]:
    with VectorIndexes.open(database.owner_dsn) as opened:
        yield opened


def listed(database: Database) -> list[tuple[Any, ...]]:
    return Stored(database.owner_dsn).rows("SELECT agent_identity, model_id, index_name FROM theme_indexes ORDER BY 1")


def test_large_themes_are_shown_the_largest_first(indexes: VectorIndexes) -> None:
    survey = indexes.survey(large=LARGE)
    assert [(one.theme, one.vectors, one.index) for one in survey.themes] == [
        ("large", 60, None), ("dm-1", 55, None), (ODD, 52, None),
    ]  # fmt: skip
    assert survey.shared == ()
    assert survey.public_vectors == 60 + 5 + 52


def test_an_older_pgvector_builds_with_one_worker(indexes: VectorIndexes, monkeypatch: pytest.MonkeyPatch) -> None:
    def workers() -> Any:
        return indexes._connection.execute("SHOW max_parallel_maintenance_workers").fetchone()

    assert workers() != ("0",)
    monkeypatch.setattr(schema, "pgvector_version", lambda _: "0.8.1")
    assert indexes.create_theme("large", large=LARGE).is_new
    assert workers() == ("0",)


@pytest.mark.parametrize("theme", ["large", "dm-1", ODD])
def test_a_large_theme_gets_an_index_of_its_own(indexes: VectorIndexes, database: Database, theme: str) -> None:
    name = theme_index_name(indexes.model.id, theme)
    done = indexes.create_theme(theme, large=LARGE)
    assert (done.name, done.is_new, done.replaced) == (name, True, 0)
    assert done.size_bytes > 0
    assert listed(database) == [(theme, indexes.model.id, name)]
    (one,) = [one for one in indexes.survey(large=LARGE).themes if one.index is not None]
    assert one.theme == theme
    assert one.index is not None
    assert one.index.is_valid
    with psycopg.connect(database.owner_dsn) as owner:
        # The planner agrees that it is the index of this theme and of no other.
        for asked in ("large", "dm-1", ODD):
            owner.execute("SET enable_seqscan = off; SET enable_sort = off")
            query = sql.SQL(
                "EXPLAIN (FORMAT JSON) SELECT id FROM turn_vectors_1 AS v WHERE agent_identity = {}"
                " ORDER BY code <~> (SELECT code FROM turn_vectors_1 LIMIT 1) LIMIT 10"
            ).format(sql.Literal(asked))
            row: Any = owner.execute(query).fetchone()
            assert (name in str(row[0])) is (asked == theme)
    again = indexes.create_theme(theme, large=LARGE)
    assert (again.name, again.is_new) == (name, False)
    assert indexes.drop_theme(theme).name == name
    assert listed(database) == []
    assert all(one.index is None for one in indexes.survey(large=LARGE).themes)


def test_names_are_the_same_each_time_and_differ_between_themes_and_models() -> None:
    assert theme_index_name(3, "large") == "turn_vectors_3_theme_d35c416a85b807e9"
    names = {theme_index_name(model, f"theme{n}") for model in (1, 2) for n in range(500)}
    assert len(names) == 1000
    assert max(map(len, names)) < 63


def test_a_small_theme_is_refused_unless_forced(indexes: VectorIndexes, database: Database) -> None:
    with pytest.raises(ConfigError, match=r"'small' has 5 vectors; below 150,000 .*--force"):
        indexes.create_theme("small")
    assert listed(database) == []
    assert indexes.create_theme("small", force=True).is_new


def test_an_unknown_theme_is_refused(indexes: VectorIndexes) -> None:
    with pytest.raises(ConfigError, match="no theme 'nobody' has vectors of test-model"):
        indexes.create_theme("nobody", force=True)
    with pytest.raises(ConfigError, match="'nobody' has no index"):
        indexes.drop_theme("nobody")


def test_more_than_a_few_are_refused_but_one_of_them_may_be_made_again(indexes: VectorIndexes) -> None:
    indexes.create_theme("large", large=LARGE, most=1)
    indexes.create_theme("large", large=LARGE, most=1)
    with pytest.raises(ConfigError, match="1 themes have an index"):
        indexes.create_theme("dm-1", large=LARGE, force=True, most=1)


def test_an_index_dropped_by_hand_is_forgotten(indexes: VectorIndexes, database: Database) -> None:
    name = indexes.create_theme("large", large=LARGE).name
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    assert indexes.drop_theme("large").size_bytes == 0
    assert listed(database) == []


def test_the_list_goes_with_its_model(indexes: VectorIndexes, database: Database) -> None:
    indexes.create_theme("large", large=LARGE)
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("DROP TABLE memory_vectors_1, turn_vectors_1 CASCADE; DELETE FROM embedding_models")
    assert listed(database) == []
    with pytest.raises(SchemaError, match="hermes-pgvector migrate"), VectorIndexes.open(database.owner_dsn):
        pass


def test_all_themes_get_one_index_of_turns_and_one_of_memories(indexes: VectorIndexes) -> None:
    assert [(done.name, done.is_new) for done in indexes.create_all()] == [
        ("turn_vectors_1_all", True), ("memory_vectors_1_all", True),
    ]  # fmt: skip
    assert [index.is_valid for index in indexes.survey().shared] == [True, True]
    assert [done.is_new for done in indexes.create_all()] == [False, False]
    assert len(indexes.drop_all()) == 2
    assert indexes.drop_all() == []
    assert indexes.survey().shared == ()


def test_what_was_made_by_hand_over_all_themes_counts(indexes: VectorIndexes, database: Database) -> None:
    """And what only looks like it does not."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(b"CREATE INDEX other ON turn_vectors_1 USING hnsw (code bit_hamming_ops)")
        for table in ("turn_vectors_1", "memory_vectors_1"):
            owner.execute(
                f"CREATE INDEX ON {table} USING hnsw (code bit_hamming_ops)"
                " WHERE NOT hermes_is_private(agent_identity)".encode()
            )
    names = [index.name for index in indexes.survey().shared]
    assert names == ["turn_vectors_1_code_idx", "memory_vectors_1_code_idx"]
    assert [(done.name, done.is_new) for done in indexes.create_all()] == [(name, False) for name in names]
    assert [done.name for done in indexes.drop_all()] == names
    assert Stored(database.owner_dsn).rows("SELECT 1 FROM pg_class WHERE relname = 'other'") == [(1,)]


@contextmanager
def writing(database: Database) -> Iterator[None]:
    """A writer in the middle of its transaction: an index being made has to wait for it."""
    with psycopg.connect(database.owner_dsn) as connection:
        connection.execute("UPDATE turn_vectors_1 SET ts = ts WHERE agent_identity = 'small'")
        yield
        connection.rollback()


def interrupt(database: Database, statement: sql.Composable) -> None:
    """Begin to make an index and give up while it waits for a writer."""
    with writing(database), psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            owner.execute(sql.Composed([statement]))


def test_what_an_interrupted_build_has_left_is_replaced(indexes: VectorIndexes, database: Database) -> None:
    name = theme_index_name(indexes.model.id, "large")
    everywhere = sql.SQL(vector_indexes.PUBLIC_ROWS)
    for made, rows in ((name, sql.SQL("agent_identity = 'large'")), ("turn_vectors_1_all", everywhere)):
        parts = {"name": sql.Identifier(made), "table": sql.Identifier("turn_vectors_1"), "rows": rows}
        interrupt(database, admin_statement("indexes/create").format(**parts))
    survey = indexes.survey(large=LARGE)
    assert [(index.name, index.is_valid, index.is_building) for index in survey.shared] == [
        ("turn_vectors_1_all", False, False)
    ]
    (one,) = [one for one in survey.themes if one.index is not None]
    assert one.index is not None
    assert not one.index.is_valid
    assert listed(database) == []
    done = indexes.create_theme("large", large=LARGE)
    assert (done.name, done.is_new, done.replaced) == (name, True, 1)
    assert [(done.is_new, done.replaced) for done in indexes.create_all()] == [(True, 1), (True, 0)]
    survey = indexes.survey(large=LARGE)
    assert all(index.is_valid for index in survey.shared)
    assert [one.index.is_valid for one in survey.themes if one.index is not None] == [True]


def test_writes_go_on_while_an_index_is_made_and_its_progress_is_told(
    indexes: VectorIndexes, database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_progress, "LOOK_SECONDS", 0.01)
    told: list[index_progress.Progress] = []
    made: list[Any] = []
    building = threading.Thread(
        target=lambda: made.append(indexes.create_theme("large", large=LARGE, watch=told.append))
    )
    with writing(database):
        building.start()
        assert wait_until(lambda: any("waiting for writers" in progress.phase for progress in told))
        store.connection.execute("SET lock_timeout = '2s'")
        store.say(Said("written meanwhile", "large", vector=unit(random.Random(8), store.model.dim)))
        # A second command is told to wait, and so is one that would touch what is being built by others.
        with VectorIndexes.open(database.owner_dsn) as second:
            assert [one.index.is_building for one in second.survey().themes if one.index is not None] == [True]
            with pytest.raises(DatabaseUnavailable, match="another `hermes-pgvector index`"):
                second.create_theme("large", large=LARGE)
        assert listed(database) == []
    building.join(30)
    assert [done.is_new for done in made] == [True]
    assert told[0].name == made[0].name
    with psycopg.connect(database.owner_dsn) as owner:
        row: Any = owner.execute(
            "SELECT reltuples FROM pg_class WHERE relname = %s", (theme_index_name(1, "large"),)
        ).fetchone()
    assert row[0] == 61


def test_an_index_that_someone_else_is_making_is_left_alone(indexes: VectorIndexes, database: Database) -> None:
    name = theme_index_name(indexes.model.id, "large")
    statement = admin_statement("indexes/create").format(
        name=sql.Identifier(name),
        table=sql.Identifier("turn_vectors_1"),
        rows=sql.SQL("agent_identity = 'large'"),
    )

    def build() -> None:
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            owner.execute(sql.Composed([statement]))

    building = threading.Thread(target=build)
    with writing(database):
        building.start()
        assert wait_until(lambda: any(one.index is not None for one in indexes.survey(large=LARGE).themes))
        with pytest.raises(DatabaseUnavailable, match="another process is building index"):
            indexes.create_theme("large", large=LARGE)
        with pytest.raises(DatabaseUnavailable, match="another process is building index"):
            indexes.drop_theme("large")
    building.join(30)
    assert not indexes.create_theme("large", large=LARGE).is_new


NO_ROOM = """
CREATE FUNCTION no_room() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('max_parallel_maintenance_workers') <> '0' THEN
        RAISE EXCEPTION 'could not resize shared memory segment' USING ERRCODE = '53100';
    END IF;
END $$;
CREATE EVENT TRIGGER no_room ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION no_room()"""


def test_too_little_shared_memory_for_workers_makes_it_alone(indexes: VectorIndexes, database: Database) -> None:
    """As in a container, where Postgres refuses workers with this error."""
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(NO_ROOM)
    assert indexes.create_theme("large", large=LARGE).is_new
    assert len(listed(database)) == 1


def test_the_runtime_role_may_look_and_nothing_else(database: Database, store: Store) -> None:
    with VectorIndexes.open(database.runtime_dsn) as indexes:
        assert [one.theme for one in indexes.survey(large=LARGE).themes] == ["large", "dm-1", ODD]
    changes: list[Callable[[VectorIndexes], object]] = [
        lambda indexes: indexes.create_theme("large", large=LARGE),
        lambda indexes: indexes.create_all(),
        lambda indexes: indexes.drop_theme("large"),
    ]
    for change in changes:
        with pytest.raises(DatabaseDenied) as refused, VectorIndexes.open(database.runtime_dsn) as indexes:
            change(indexes)
        assert refused.value.sqlstate == "42501"
    with psycopg.connect(database.runtime_dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("INSERT INTO theme_indexes (agent_identity, model_id, index_name) VALUES ('x', 1, 'x')")


def test_a_login_that_limits_its_statements_can_build(database: Database, store: Store) -> None:
    dsn = psycopg.conninfo.make_conninfo(database.owner_dsn, options="-c statement_timeout=250ms")
    released = threading.Event()

    def hold() -> None:
        with writing(database):
            holding.set()
            released.wait(0.6)

    holding = threading.Event()
    writer = threading.Thread(target=hold)
    with VectorIndexes.open(dsn) as indexes:
        writer.start()
        holding.wait(10)
        assert indexes.create_theme("large", large=LARGE).is_new
    writer.join(10)


def grow_side_by_side(owner: psycopg.Connection, themes: int, rows: int) -> None:
    owner.execute(
        """
        INSERT INTO conversations (agent_identity, session_id, role, content)
        SELECT 'team-' || n %% %s, 's', 'user', 'saying ' || n FROM generate_series(1, %s) AS n""",
        (themes, rows),
    )
    owner.execute(
        """
        INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
        SELECT agent_identity, id, ts, id, (SELECT embedding FROM turn_vectors_1 LIMIT 1)
        FROM conversations WHERE agent_identity LIKE 'team-%' ORDER BY id"""
    )


def bytes_of(owner: psycopg.Connection, index: str) -> int:
    row: Any = owner.execute("SELECT pg_relation_size(%s)", (index,)).fetchone()
    return int(row[0])


def test_codes_of_themes_that_grow_at_once_are_packed_from_the_start(
    indexes: VectorIndexes, database: Database
) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        grow_side_by_side(owner, 20, 12_000)
        grown = bytes_of(owner, "turn_vectors_1_codes")
        indexes.rebuild_keys()
        assert grown < 1.25 * bytes_of(owner, "turn_vectors_1_codes")


def test_what_deletions_left_is_packed_and_the_rest_of_an_interrupted_rebuild_goes(
    indexes: VectorIndexes, database: Database
) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        grow_side_by_side(owner, 97, 6000)
        owner.execute("DELETE FROM conversations WHERE agent_identity LIKE 'team-%' AND id % 3 > 0")
        owner.execute("VACUUM turn_vectors_1")
        before = bytes_of(owner, "turn_vectors_1_codes")
    interrupt(database, sql.SQL("REINDEX INDEX CONCURRENTLY turn_vectors_1_codes"))
    done = indexes.rebuild_keys()
    assert [(each.name, each.is_new) for each in done] == [
        ("turn_vectors_1_codes", True),
        ("turn_vectors_1_pkey", True),
        ("memory_vectors_1_codes", True),
        ("memory_vectors_1_pkey", True),
    ]
    assert done[0].replaced == 1
    assert done[0].size_bytes < 0.6 * before
    left = Stored(database.owner_dsn).rows(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'turn_vectors_1'::regclass ORDER BY 1"
    )
    assert left == [("turn_vectors_1_codes",), ("turn_vectors_1_pkey",)]
