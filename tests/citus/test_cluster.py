"""Buckets on a real Citus: a coordinator and two workers from the installation that PGINSTALL names."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from database.test_statements import ARGUMENT, QUERIES, ROWS, _given, name_of
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.ops.setup import checks
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.statements import model_statement
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.agent import AgentHome
from testing.cluster import Cluster, installation
from testing.postgres import DIM, MODEL, Database
from testing.sql_files import Statement
from testing.steady_load import THEMES, SteadyLoad
from testing.stored import Stored
from testing.waiting import wait_until

COUNT = 4
VECTORS = f"ARRAY[array_fill(0.125, ARRAY[{DIM}])::halfvec]"
REFUSED = (psycopg.errors.FeatureNotSupported, psycopg.errors.ProgrammingError, psycopg.errors.InternalError)
"""What an engine says that does not take a statement; what a made-up value violates is something else."""
MAIN = [
    query
    for query in QUERIES
    if re.match(r"(browse|overview|fleet|audit)/", name_of(query)) and "_vectors}" not in query.text
]
"""What operators ask of all buckets at once."""
NEEDS_MORE_NAMES = {"connection/set_conventions"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A coordinator and two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    with Cluster(folder) as running:
        yield running


@pytest.fixture
def database(cluster: Cluster, request: pytest.FixtureRequest) -> Database:
    """A database of the cluster with four buckets and no rows."""
    made = cluster.new_database(f"c_{abs(hash(request.node.name)) % 10**9}")
    outcome = migrate.apply(
        made.owner_dsn, runtime_role=RUNTIME_ROLE, model=NewModel(MODEL, DIM, 0.0, 0.125), buckets=COUNT
    )
    assert (outcome.dealt, outcome.handed_out) == (COUNT, COUNT)
    return made


@pytest.fixture
def home(tmp_path: Path, database: Database) -> Iterator[AgentHome]:
    """A home whose agents write to the cluster."""
    made = AgentHome.create(tmp_path / "home", database)
    yield made
    made.close()


def _text(query: Statement) -> bytes:
    text = query.text
    if "_vectors}" in text:
        text = model_statement(name_of(query), 1).as_string(None)
    given = ARGUMENT.sub(lambda match: VECTORS if match.group(2) == "::halfvec[]" else _given(match), text)
    return given.replace("%%", "%").encode()


def test_every_statement_runs_on_a_bucket(database: Database) -> None:
    refused = []
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        connection.execute("SET search_path = hermes_01, public")
        for rows in ROWS.split(";\n"):
            if rows.strip():
                connection.execute(rows.encode())
        for query in QUERIES:
            if name_of(query) in NEEDS_MORE_NAMES:
                continue
            with connection.transaction(force_rollback=True):
                # What the whole installation is asked names tables of its own.
                connection.execute(
                    f"SET LOCAL search_path = {'public' if query in MAIN else 'hermes_01, public'}".encode()
                )
                try:
                    connection.execute(_text(query))
                except REFUSED as error:
                    refused.append(f"{name_of(query)}: {error}")
                except (psycopg.IntegrityError, psycopg.DataError):
                    pass
    assert refused == []


def test_migrate_runs_again_and_takes_another_model_and_language(database: Database) -> None:
    for options in ({}, {"model": NewModel("other", 96), "switches_model": True}, {"language": "german"}):
        outcome = migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, **options)
        assert (outcome.applied, outcome.handed_out) == ([], 0)
    with psycopg.connect(database.runtime_dsn) as connection:
        kept = connection.execute(
            "SELECT DISTINCT result FROM run_command_on_shards('hermes_02.turn_vectors_5',"
            " 'SELECT attstorage::text || attstattarget FROM pg_attribute"
            " WHERE attrelid = ''%s''::regclass AND attname = ''embedding''')"
        ).fetchall()
    assert kept == [("p0",)]


def test_doctor_says_which_buckets_no_worker_has(cluster: Cluster, database: Database, home: AgentHome) -> None:
    config = f"memory:\n  provider: pgvector\n  pgvector:\n    dsn: {database.runtime_dsn}\n"
    (home.path / "config.yaml").write_text(config, encoding="utf-8")
    assert _finding(home) == ("ok", f"{COUNT}, on 2 workers of Citus")
    cluster.coordinator.rows("SELECT citus_schema_undistribute('hermes_03')", database=database.name)
    assert _finding(home) == ("warning", f"1 of {COUNT} lie on the Citus coordinator and not on its 2 workers")
    migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE)
    assert _finding(home)[0] == "ok"


def test_while_a_worker_is_away_the_others_themes_go_on(cluster: Cluster, database: Database, home: AgentHome) -> None:
    away = cluster.workers[0]
    themes = [f"theme-{number}" for number in range(8)]
    places = {theme: cluster.place_of(f"hermes_{bucket_of(theme, COUNT):02}", database.name) for theme in themes}
    assert set(places.values()) == {worker.port for worker in cluster.workers}
    agents = {theme: home.provider(theme) for theme in themes}
    for theme, agent in agents.items():
        agent.sync_turn(f"{theme} was told before that box 17 is green.", "")
    home.settle()
    away.kill()
    for theme, agent in agents.items():
        agent.sync_turn(f"{theme} was told meanwhile that box 18 is blue.", "")
    for theme in themes:
        if places[theme] != away.port:
            wait_until(partial(_has_one, database, theme, "meanwhile"), seconds=60)
            assert "green" in agents[theme].handle_tool_call("recall_conversation", {"query": "box 17"})
    away.start()
    home.settle(120)
    assert [_count(database, theme, "box") for theme in themes] == [2] * len(themes)


def test_a_bucket_moves_while_agents_write_and_ask(cluster: Cluster, database: Database, home: AgentHome) -> None:
    bucket = f"hermes_{bucket_of(THEMES[0], COUNT):02}"
    here = cluster.place_of(bucket, database.name)
    there = next(worker.port for worker in cluster.workers if worker.port != here)
    with SteadyLoad(home, writes=60, questions=5) as load:
        wait_until(lambda: load.count > 50, seconds=60)
        move = "SELECT citus_schema_move(%s, '127.0.0.1', %s, 'force_logical')"
        cluster.coordinator.rows(move, bucket, there, database=database.name)
        moved = load.count
        wait_until(lambda: load.count > moved + 50, seconds=60)
    home.settle(120)
    assert cluster.place_of(bucket, database.name) == there
    assert (load.lost(), load.doubled(), load.failures) == ([], [], [])


def test_the_way_back_is_undistributing_or_a_dump(cluster: Cluster, database: Database, home: AgentHome) -> None:
    for theme in THEMES:
        home.provider(theme).sync_turn(f"{theme} knows that the gate opens at seven.", "")
    home.settle()
    home.close()
    turns = "SELECT agent_identity, id, content FROM conversations ORDER BY 1, 2"
    stored = home.stored.rows(turns)
    assert len(stored) == len(THEMES)
    bucket = f"hermes_{bucket_of(THEMES[0], COUNT):02}"
    cluster.coordinator.rows("SELECT citus_schema_undistribute(%s)", bucket, database=database.name)
    assert home.stored.rows(turns) == stored
    schemas = [f"--schema={name}" for name in ("public", *(f"hermes_{number:02}" for number in range(COUNT)))]
    dump = _run("pg_dump", "--no-owner", *schemas, database.owner_dsn)
    plain = make_conninfo(database.owner_dsn, dbname=f"{database.name}_plain")
    cluster.coordinator.rows(f"CREATE DATABASE {database.name}_plain", database="postgres")
    _run("psql", "-q", plain, "-c", "CREATE EXTENSION vector")
    _run("psql", "-q", plain, given=dump)
    assert Stored(plain).rows(turns) == stored
    assert Stored(plain).rows("SELECT count(*) FROM hermes_metrics") != [(0,)]


def _count(database: Database, theme: str, words: str) -> int:
    """How many turns of a theme have these words, asked of its bucket alone: others may be away."""
    bucket = f"hermes_{bucket_of(theme, COUNT):02}"
    query = f"SELECT count(*) FROM {bucket}.conversations WHERE agent_identity = %s AND strpos(content, %s) > 0"
    ((count,),) = Stored(database.owner_dsn).rows(query, theme, words)
    return int(count)


def _finding(home: AgentHome) -> tuple[str, str]:
    return next((each.level, each.text) for each in checks.examine(home.path) if each.name == "buckets")


def _has_one(database: Database, theme: str, words: str) -> bool:
    return _count(database, theme, words) == 1


def _run(program: str, *arguments: str, given: str = "") -> str:
    command = [installation().program(program), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=120).stdout
