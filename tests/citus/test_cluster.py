"""A database on a coordinator and two workers: the same answers as on one server, made again, checked, and refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from citus.rows import QUESTIONS, START, THEMES, ask, fill, insert, opened, said, soon

from hermes_memory_pgvector.admin import citus, logins, migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.errors import ConfigError, MemoryPluginError, SchemaError
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.setup.checks.cluster import check
from hermes_memory_pgvector.store import browse, cluster, recall_log
from hermes_memory_pgvector.store.reach import NOTHING, OVERVIEW, UPKEEP, within
from hermes_memory_pgvector.store.search import Thresholds, search
from hermes_memory_pgvector.values import Kind, Question, Scope
from testing.postgres import DIM, MODEL, Database, cluster_of, new_database


@pytest.fixture(scope="module")
def plain(postgres_server: ConnectionInfo) -> Iterator[Database]:
    """The same rows in one place."""
    with new_database(postgres_server) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
        with opened(database) as pool:
            fill(pool)
        yield database


@pytest.fixture(scope="module")
def spread(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """Rows on two workers."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        with opened(database) as pool:
            fill(pool)
        yield database


@pytest.mark.parametrize("has_vector", [True, False])
@pytest.mark.parametrize("kind", list(Kind))
def test_answers_are_those_of_one_server(plain: Database, spread: Database, kind: Kind, has_vector: bool) -> None:
    found = 0
    with opened(plain) as one, opened(spread) as many:
        for theme in THEMES:
            for text in QUESTIONS:
                for more in ({}, {"since": START + timedelta(minutes=90)}, {"by_session": True}):
                    wanted = ask(one, text, theme=theme, kind=kind, has_vector=has_vector, **more)
                    assert ask(many, text, theme=theme, kind=kind, has_vector=has_vector, **more) == wanted
                    found += len(wanted)
    assert found > 5


def test_scope_all_asks_every_shard(plain: Database, spread: Database) -> None:
    with opened(plain) as one, opened(spread) as many:
        for text in QUESTIONS:
            wanted = {hit.id for hit in ask(one, text, scope=Scope.ALL, limit=200)}
            found = ask(many, text, scope=Scope.ALL, limit=200)
            assert wanted <= {hit.id for hit in found}
            assert [hit.rank for hit in found] == sorted((hit.rank for hit in found), reverse=True)
            assert "dm-ann" not in {hit.theme for hit in found}
        assert len({hit.theme for hit in ask(many, "copper bridge delta engine", scope=Scope.ALL, limit=200)}) > 3


def test_themes_lie_on_both_workers_and_are_counted(spread: Database) -> None:
    with opened(spread) as pool, pool.transaction(soon(), reach=OVERVIEW) as connection:
        nodes = cluster.nodes(connection)
        assert [node.shards > 0 for node in nodes] == [False, True, True]
        assert all(node.answers for node in nodes)
        assert cluster.strangers(connection) == []
        assert cluster.scattered(connection) == []
        there, known = cluster.shards(connection)
        assert there == known == 8
        counted: Any = connection.execute("SELECT agent_identity, count(*) FROM conversations GROUP BY 1").fetchall()
        told: Any = connection.execute("SELECT agent_identity, sum(turns) FROM theme_growth GROUP BY 1").fetchall()
        assert {theme: int(count) for theme, count in counted} == {theme: int(count) for theme, count in told}


def test_agents_may_add_rows_of_several_themes_at_once(spread: Database) -> None:
    """What is copied to workers row-level security refuses, to everybody but the owner."""
    logged = [
        recall_log.LoggedAnswer(theme, START, "s1", "tool", Kind.TURN, "current", "copper", None, (), 1.0)
        for theme in THEMES
    ]
    total = b"SELECT sum(turns) FROM theme_growth"
    with opened(spread) as pool, pool.transaction(soon(), reach=UPKEEP) as connection:
        recall_log.insert(connection, logged)
        before = connection.execute(total).fetchone()
        assert browse.fold_growth(connection, START.date()) > 0
        assert connection.execute(total).fetchone() == before
    with psycopg.connect(spread.owner_dsn) as owner:
        assert owner.execute("SELECT count(*) FROM recall_log").fetchone() == (len(THEMES),)


def test_a_transaction_sees_the_rows_it_is_about(postgres_server: ConnectionInfo, spread: Database) -> None:
    """Row-level security on the workers: what a transaction did not name is not there, with a predicate or without."""
    count = "SELECT count(*), count(DISTINCT agent_identity) FROM conversations"
    with opened(spread) as pool:
        for reach, rows, themes in ((OVERVIEW, 240, 6), (within("fleet", "orders"), 80, 2), (NOTHING, 0, 0)):
            with pool.transaction(soon(), reach=reach) as connection:
                assert connection.execute(count.encode()).fetchone() == (rows, themes)
        with pool.transaction(soon(), reach=within("orders")) as connection:
            hits: Any = connection.execute(
                "SELECT count(*) FROM conversations WHERE agent_identity = 'fleet'"
            ).fetchone()
            assert hits == (0,)
        assert ask(pool, "copper bridge", theme="fleet")
        with pool.transaction(soon(), reach=within("orders")) as connection:
            question = Question("copper bridge", Kind.TURN, "fleet", limit=10)
            assert search(connection, question, None, read_wording(question), Thresholds(0.2, 0.2)) == []
    with psycopg.connect(spread.runtime_dsn) as connection:
        assert connection.execute(count.encode()).fetchone() == (0, 0)
    with psycopg.connect(spread.owner_dsn, autocommit=True) as owner:
        owner.execute("CREATE ROLE hermes_stranger LOGIN")
        try:
            owner.execute("GRANT SELECT ON conversations TO hermes_stranger")
            for node in cluster_of(postgres_server).nodes:
                with psycopg.connect(node.dsn(spread.name), autocommit=True) as each:
                    each.execute(f"GRANT CONNECT ON DATABASE {spread.name} TO hermes_stranger".encode())
            stranger = psycopg.conninfo.make_conninfo(spread.runtime_dsn, user="hermes_stranger")
            with psycopg.connect(stranger) as connection:
                connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
                connection.execute("SET LOCAL hermes.purpose = 'operator'")
                assert connection.execute(count.encode()).fetchone() == (0, 0)
        finally:
            for node in cluster_of(postgres_server).nodes:
                with psycopg.connect(node.dsn(spread.name), autocommit=True) as each:
                    each.execute("SET citus.enable_ddl_propagation = off")
                    each.execute("DROP OWNED BY hermes_stranger")
                    each.execute("DROP ROLE hermes_stranger")


def test_migrate_may_be_run_again(spread: Database) -> None:
    with opened(spread) as pool:
        before = [ask(pool, text) for text in QUESTIONS]
        for distributes in (False, True):
            done = migrate.apply(
                spread.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM), distributes=distributes
            )
            assert (done.applied, done.shards) == ([], 8)
            assert [ask(pool, text) for text in QUESTIONS] == before


def test_what_a_cluster_cannot_keep_is_refused(spread: Database, plain: Database) -> None:
    with pytest.raises(ConfigError, match="cannot keep a login to its themes"):
        logins.grant(spread.owner_dsn, logins.Wanted("minion", ("fleet",)), password="x", actor="test", home_id="h")
    logins.grant(plain.owner_dsn, logins.Wanted("minion_7", ("fleet",)), password="x", actor="test", home_id="h")
    with pytest.raises(SchemaError, match="revoke them first"):
        migrate.apply(plain.owner_dsn, runtime_role=RUNTIME_ROLE, distributes=True)
    logins.revoke(plain.owner_dsn, "minion_7", actor="test", home_id="h")


def test_rows_that_are_there_are_spread(postgres_server: ConnectionInfo) -> None:
    with new_database(postgres_server) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
        with opened(database) as pool:
            fill(pool)
            before = [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES]
        done = migrate.apply(
            database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM), distributes=True
        )
        assert done.shards == 8
        with opened(database) as pool:
            assert [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES] == before
            with pool.transaction(soon(), reach=OVERVIEW) as connection:
                told: Any = connection.execute("SELECT sum(turns), sum(memories) FROM theme_growth").fetchone()
                assert tuple(map(int, told)) == (240, 6)


def test_a_shard_that_moves_or_is_split_is_searched_all_the_same(
    postgres_server: ConnectionInfo, migrated_template: Database
) -> None:
    with new_database(postgres_server, template=migrated_template.name) as database, opened(database) as pool:
        fill(pool)
        before = [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES]
        node = cluster_of(postgres_server).add_worker(database.name)
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            shards = citus.find_shards(owner)
            places: Any = owner.execute(
                "SELECT nodename, nodeport FROM citus_shards"
                " WHERE table_name = 'conversations'::regclass AND shardid = %s",
                (shards[0].id,),
            ).fetchone()
            owner.execute(
                "SELECT citus_move_shard_placement(%s, %s, %s, '127.0.0.1', %s, 'block_writes')",
                (shards[0].id, *places, node.port),
            )
        assert [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES] == before
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            row: Any = owner.execute(
                "SELECT shardminvalue::integer, shardmaxvalue::integer FROM pg_dist_shard WHERE shardid = %s",
                (shards[1].id,),
            ).fetchone()
            middle = (row[0] + row[1]) // 2
            group: Any = owner.execute(
                "SELECT nodeid FROM pg_dist_node WHERE groupid > 0 ORDER BY 1 LIMIT 1"
            ).fetchone()
            owner.execute(
                "SELECT citus_split_shard_by_split_points(%s, ARRAY[%s], ARRAY[%s, %s]::int[], 'block_writes')",
                (shards[1].id, str(middle), group[0], group[0]),
            )
        with pytest.raises(MemoryPluginError):
            ask(pool, QUESTIONS[0], scope=Scope.ALL)
        done = migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
        assert done.shards == 9
        assert [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES] == before
        assert ask(pool, QUESTIONS[0], scope=Scope.ALL)
        # More arrives, and the statistics of words are each shard's own.
        chance = random.Random(8)
        assert insert(pool, [said(1000 + n, THEMES[n % len(THEMES)], chance) for n in range(60)]) == 60
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            owner.execute("ANALYZE conversations, memory_entries")
            owner.execute("SELECT hermes_refresh_statistics()")
            known: Any = owner.execute("SELECT count(*), count(DISTINCT agent_identity) FROM shard_lexemes").fetchone()
            assert known[0] > 50
            assert known[1] > 2


def test_one_worker_away_is_named_and_stops_its_own_themes_alone(
    postgres_server: ConnectionInfo, migrated_template: Database
) -> None:
    workers = cluster_of(postgres_server).workers
    with new_database(postgres_server, template=migrated_template.name) as database, opened(database) as pool:
        fill(pool)
        with psycopg.connect(database.owner_dsn) as owner:
            rows = owner.execute(
                "SELECT t, (SELECT nodeport FROM citus_shards AS s WHERE s.table_name = 'conversations'::regclass AND"
                " s.shardid = get_shard_id_for_distribution_column('conversations', t)) FROM unnest(%s::text[]) AS t",
                (THEMES,),
            ).fetchall()
        there = [theme for theme, port in rows if port == workers[0].port]
        away = [theme for theme, port in rows if port == workers[1].port]
        assert there
        assert away
        workers[1].stop()
        try:
            chance = random.Random(9)
            assert all(ask(pool, "copper bridge delta engine", theme=theme) for theme in there)
            assert insert(pool, [said(2000 + n, theme, chance) for n, theme in enumerate(there)]) == len(there)
            for scope, theme in ((Scope.CURRENT, away[0]), (Scope.ALL, there[0])):
                with pytest.raises(MemoryPluginError, match="a worker of its Citus cluster"):
                    ask(pool, "copper bridge", theme=theme, scope=scope)
            new = [said(3000 + n, theme, chance) for n, theme in enumerate(THEMES)]
            with pytest.raises(MemoryPluginError, match="a worker of its Citus cluster"):
                insert(pool, new)
            with pool.transaction(soon(), reach=OVERVIEW) as connection:
                found = list(check(connection))
            assert [each.level for each in found] == ["problem"]
            assert f"127.0.0.1:{workers[1].port}" in found[0].text
        finally:
            workers[1].start()
        assert insert(pool, new) == len(THEMES)
        with pool.transaction(soon(), reach=OVERVIEW) as connection:
            assert [each.level for each in check(connection)] == ["ok", "ok", "ok"]
