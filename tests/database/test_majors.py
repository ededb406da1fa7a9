"""Every major version of Postgres: a dump restores into a server of its own, and memories move there and back.

`make test-majors` runs it; PGINSTALLS names the folders of more installations, each with bin and pgvector.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from database.test_promote import KILLER, KILLS, LOCAL, OWNERS, SEED, Installation, make_installation, sums
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.binaries import Binaries
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from testing.live_agent import LiveAgent
from testing.postgres import installs, new_database, running_postgres
from testing.stored import Stored

pytestmark = [pytest.mark.large, pytest.mark.timeout(1200)]
INSTALLS = installs()
FROM_OWN = ("one home there", "agents gone", "all homes there")
"""What happens only on the way from the embedded server."""
BACK = (
    *(kill for name, kill in KILLS.items() if name not in FROM_OWN),
    ("ops.new_settings", "unset_dsn", "1", "after"),
)


@dataclass(frozen=True, slots=True)
class Major:
    """A server that runs, and its programs."""

    binaries: Binaries
    info: ConnectionInfo


@pytest.fixture(scope="module", params=INSTALLS)
def major(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Major]:
    binaries = INSTALLS[request.param]
    with running_postgres(tmp_path_factory.mktemp("major"), binaries) as info:
        yield Major(binaries, info)


def test_a_dump_restores_with_an_empty_search_path(major: Major, tmp_path: Path) -> None:
    # The programs of an older version do not know all that a newer library does.
    info = replace(major.info, owner_dsn=without(major.info.owner_dsn, "require_auth"))
    with new_database(info) as source, new_database(info) as target:
        migrate.apply(source.owner_dsn, runtime_role=RUNTIME_ROLE, model=LOCAL)
        with psycopg.connect(source.owner_dsn) as connection:
            for statement in SEED:
                connection.execute(statement.format(turns=1500).replace("%%", "%").encode())
        dump = tmp_path / "whole.dump"
        for program, *words in (
            ("pg_dump", "--format=custom", f"--file={dump}", f"--dbname={source.owner_dsn}"),
            ("pg_restore", "--exit-on-error", f"--dbname={target.owner_dsn}", str(dump)),
        ):
            subprocess.run([major.binaries.program(program), *words], check=True, timeout=120)
        assert sums(source.owner_dsn) == sums(target.owner_dsn)
        lexemes = "SELECT count(*), md5(string_agg(lexemes::text, '' ORDER BY id)) FROM conversations"
        assert Stored(source.owner_dsn).rows(lexemes) == Stored(target.owner_dsn).rows(lexemes)
        assert migrate.apply(target.owner_dsn, runtime_role=RUNTIME_ROLE, model=LOCAL).applied == []


def test_a_move_there_and_back_is_killed_at_every_step_beside_an_agent(major: Major, tmp_path: Path) -> None:
    """As an owner who is no superuser, into a schema of its own; an agent talks in each home all the time."""
    with new_database(major.info) as target:
        with psycopg.connect(major.info.owner_dsn, autocommit=True) as admin:
            admin.execute(f"CREATE ROLE owner_of_promote LOGIN CREATEROLE PASSWORD '{OWNERS}'".encode())
            admin.execute(f'GRANT CONNECT ON DATABASE "{target.name}" TO owner_of_promote WITH GRANT OPTION'.encode())
        with psycopg.connect(target.owner_dsn, autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
            admin.execute("CREATE SCHEMA fleet AUTHORIZATION owner_of_promote")
        made = make_installation(tmp_path, major.info, target)
        login = make_conninfo(made.admin, user="owner_of_promote", options="-csearch_path=fleet,public")
        humble = replace(made, admin=login, password=OWNERS)
        try:
            move_and_return(humble)
        finally:
            humble.server.stop(Deadline.after(60), mode="immediate")


def move_and_return(made: Installation) -> None:
    environment = made.commands.environment
    there, back = ("--to", made.admin), ("--to", "embedded", "--admin-dsn", made.admin)
    with (
        LiveAgent.start(made.root, theme="desk", writes=50, recalls=5, environment=environment) as first,
        LiveAgent.start(made.profile, theme="lamp", writes=20, recalls=5, environment=environment) as second,
    ):
        for arguments, kills in ((there, tuple(KILLS.values())), (back, BACK)):
            for kill in kills:
                is_killed(made, {**environment, **made.variables}, kill, *arguments)
            done = made.promote(*arguments, "--execute")
            assert done.get("left") == [], done
    stored = Stored(made.start().owner_dsn)
    for agent in (first, second):
        assert agent.report.said
        assert sorted(content for _, _, content in stored.turns(agent.theme)) == sorted(agent.report.said)
        assert agent.report.is_well, agent.report.failures
    assert len(stored.turns("theme 1")) == 300


def without(dsn: str, parameter: str) -> str:
    return make_conninfo("", **{k: v for k, v in conninfo_to_dict(dsn).items() if k != parameter})


def is_killed(made: Installation, environment: Mapping[str, str], kill: tuple[str, ...], *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLER, *kill, "promote", *arguments, "--execute", "--json"],
        env=dict(environment), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, (kill, done)
