"""An installation moves from the embedded server to a Postgres of the operator's own, and back, while agents run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import Held, SchemaError
from hermes_memory_pgvector.ops.carry import promote
from hermes_memory_pgvector.ops.carry.ends import alone
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.schema import migrate, moving
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.schema.moving import Side, open_side
from hermes_memory_pgvector.server.server import ConnectionInfo, EmbeddedPostgres
from hermes_memory_pgvector.store import gate, schema
from testing.cases import some_of
from testing.command import Commands, with_password
from testing.live_agent import LiveAgent
from testing.postgres import FAST, Database, new_database
from testing.stored import Stored
from testing.unchanged import nothing_changes

OWNERS = "the-password-of-an-owner"
LOCAL = NewModel("wordllama-l2-supercat-256", 256)
SEED = (
    "INSERT INTO memory_entries (agent_identity, target, content, metadata) SELECT 'theme ' || n %% 5, 'memory',"
    " 'memory ' || n || ' – “ünïcode” 🌱', jsonb_build_object('n', n, 'text', E'a\\tb')"
    " FROM generate_series(1, 60) AS n",
    "INSERT INTO conversations (agent_identity, session_id, role, content, ts, digest, ordinal)"
    " SELECT 'theme ' || n %% 5, 's' || n %% 9, 'user', 'turn ' || n || repeat(' long', n %% 50),"
    " now() - n * interval '1 s', hermes_turn_digest('user', 'turn ' || n || repeat(' long', n %% 50)), 1"
    " FROM generate_series(1, {turns}) AS n",
    "UPDATE conversations SET hidden_by = 1 WHERE id = 7",
    "UPDATE memory_entries SET homes = '{{\"home\": {{\"o\": \"tool\", \"s\": 1}}}}'",
    "INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at)"
    " SELECT agent_identity, target, id, 'w', id, 0, 'add', content, now() FROM memory_entries",
    "INSERT INTO memory_files (home_id, target, digests) VALUES ('home', 'memory', ARRAY['\\x01'::bytea])",
    "INSERT INTO theme_aliases (old, new) VALUES ('former', 'theme 1')",
    "INSERT INTO recall_log (agent_identity, at, caller, kind, scope, milliseconds)"
    " VALUES ('theme 1', now(), 'tool', 'turn', 'current', 1.25)",
    "INSERT INTO processes (id, home_id, host, pid, command, version, started_at, seen_at, expected_at, status)"
    " VALUES ('p', 'home', 'h', 1, 'c', '2', now(), now() - interval '1 year', now(), '{{}}')",
    "INSERT INTO audit_log (actor, action) VALUES ('somebody', 'test')",
    "INSERT INTO receipts (forgotten_at, actor, named) VALUES (now(), 'somebody', '{{theme}}')",
    "INSERT INTO forgotten (mark, until, receipt) SELECT '\\x02', now(), id FROM receipts",
    "INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', 1, '\\x00ff', 'because')",
    "INSERT INTO journal_writers (writer, position, home_id, updated_at)"
    " VALUES ('w', 60, 'home', now() - interval '1 year')",
    "INSERT INTO hidden (rule, actor, reason) VALUES ('muted', 'somebody', 'wrong')",
    "INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding) SELECT agent_identity, id, ts,"
    " hermes_content_hash(content), (SELECT array_agg(sin(id * n)::real) FROM generate_series(1, 256) AS n)::halfvec"
    " FROM conversations WHERE id %% 3 > 0",
    "INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding) SELECT agent_identity, id, updated_at,"
    " target, array_fill(cos(id)::real, ARRAY[256])::halfvec FROM memory_entries",
    "INSERT INTO pending_vectors (agent_identity, kind, id) SELECT agent_identity, 'turn', id FROM conversations"
    " WHERE id %% 3 = 0 AND hidden_by IS NULL",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Installation:
    """A root home and a profile on an embedded server with a few rows in every table, and a database to move to."""

    commands: Commands
    target: Database
    admin: str
    """A superuser's login to the target, without its password."""
    password: str

    @property
    def root(self) -> Path:
        return self.commands.home

    @property
    def profile(self) -> Path:
        return self.root / "profiles" / "sales"

    @property
    def server(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.root / "pgvector", extra_settings=FAST)

    def start(self) -> ConnectionInfo:
        return self.server.ensure_running(Deadline.after(120))

    @property
    def variables(self) -> dict[str, str]:
        return {"PGPASSWORD": self.password}

    def promote(self, *arguments: str) -> Any:
        """What `promote --json` says; its password comes from the environment."""
        done = self.commands.call("promote", *arguments, "--json", variables=self.variables)
        assert done.code in (0, 1, 3), done.everything
        return done.json if done.out else done.err

    def to_own(self, *arguments: str) -> Any:
        return self.promote("--to", self.admin, *arguments)

    def back(self, *arguments: str) -> Any:
        return self.promote("--to", "embedded", "--admin-dsn", self.admin, *arguments)

    def dsn_of(self, home: Path) -> str:
        document = yaml.safe_load((home / "config.yaml").read_text(encoding="utf-8"))
        return str(document["memory"].get("pgvector", {}).get("dsn", ""))

    def said(self, theme: str) -> list[str]:
        """The turns of a theme in the target."""
        return [content for _, _, content in Stored(self.target.owner_dsn).turns(theme)]


def make_installation(tmp_path: Path, server: ConnectionInfo, target: Database, *, turns: int = 1500) -> Installation:
    commands = Commands(tmp_path)
    dsn, password = with_password(target.owner_dsn)
    bare = make_conninfo("", **{k: v for k, v in psycopg.conninfo.conninfo_to_dict(dsn).items() if k != "password"})
    made = Installation(commands, target, bare, password)
    commands.secrets.append(password)
    for home in (made.root, made.profile):
        home.mkdir(parents=True)
        (home / "config.yaml").write_text("memory:\n  provider: pgvector\n", encoding="utf-8")
        home_id(home)
    info = made.start()
    migrate.apply(info.owner_dsn, runtime_role="hermes", model=LOCAL)
    with psycopg.connect(info.owner_dsn) as connection:
        for statement in SEED:
            connection.execute(statement.format(turns=turns).replace("%%", "%").encode())
    return made


@pytest.fixture
def humble_installation(tmp_path: Path, postgres_without_contrib: ConnectionInfo) -> Iterator[Installation]:
    """One that moves to a schema on an older server, as an owner who is no superuser."""
    with new_database(postgres_without_contrib) as target:
        with psycopg.connect(target.owner_dsn, autocommit=True) as admin:
            admin.execute(f"CREATE ROLE owner_of_promote LOGIN CREATEROLE PASSWORD '{OWNERS}'".encode())
            admin.execute(f'GRANT CONNECT ON DATABASE "{target.name}" TO owner_of_promote WITH GRANT OPTION'.encode())
            admin.execute("CREATE EXTENSION vector")
            admin.execute("CREATE SCHEMA fleet AUTHORIZATION owner_of_promote")
        made = make_installation(tmp_path, postgres_without_contrib, target)
        admin_dsn = make_conninfo(made.admin, user="owner_of_promote", options="-csearch_path=fleet,public")
        humble = replace(made, admin=admin_dsn, password=OWNERS)
        try:
            yield humble
        finally:
            humble.server.stop(Deadline.after(60), mode="immediate")
    with psycopg.connect(postgres_without_contrib.owner_dsn, autocommit=True) as admin:
        for role in (f"hermes_{home_id(made.root)[:8]}", "owner_of_promote"):
            admin.execute(f'DROP ROLE IF EXISTS "{role}"'.encode())


@pytest.fixture
def installation(tmp_path: Path, postgres_server: ConnectionInfo) -> Iterator[Installation]:
    with new_database(postgres_server) as target:
        made = make_installation(tmp_path, postgres_server, target)
        try:
            yield made
        finally:
            made.server.stop(Deadline.after(60), mode="immediate")
    with psycopg.connect(postgres_server.owner_dsn, autocommit=True) as admin:
        for role in (f"hermes_{home_id(made.root)[:8]}", "agents_of_promote"):
            admin.execute(f'DROP ROLE IF EXISTS "{role}"'.encode())


def sums(dsn: str) -> dict[str, Any]:
    """What every table of a database holds, in numbers."""
    with open_side(dsn) as side:
        return {name: each for name, each in side.sums().items() if name != "audit_log"}


def test_every_table_moves_or_is_known_to_stay(database: Database) -> None:
    """Whoever adds a table says here what becomes of it when an installation moves."""
    tables = {
        name
        for (name,) in Stored(database.owner_dsn).rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    }
    with open_side(database.owner_dsn) as side:
        assert tables == {*side.tables(), "hermes_pgvector_migrations"}


def test_everything_moves_while_agents_talk_and_comes_back(installation: Installation) -> None:
    """There, back and there again: nothing lost, nothing twice, and the side that is left takes no write."""
    with nothing_changes(Stored(installation.start().owner_dsn)):
        shown = installation.to_own()
    assert shown["executed"] is False
    assert shown["counts"]["turns"] == 1500
    empty = {name for name, each in sums(installation.start().owner_dsn).items() if not each}
    unused = {"theme_places"}
    assert empty == unused, "a table without a row would prove nothing"
    assert not Stored(installation.target.owner_dsn).rows("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")

    with (
        LiveAgent.start(
            installation.root, theme="desk", writes=50, recalls=5, environment=installation.commands.environment
        ) as first,
        LiveAgent.start(
            installation.profile, theme="lamp", writes=20, recalls=5, environment=installation.commands.environment
        ) as second,
    ):
        done = installation.to_own("--execute")
        assert done.get("left") == [], done
        least = {"memories": 60, "turns": 1500, "events": 60, "vectors": 1060}
        assert {name: done["counts"][name] >= number for name, number in least.items()} == dict.fromkeys(least, True)
        assert "the embedded server is stopped" in str(done["notes"])
    for agent in (first, second):
        assert agent.report.said
        assert sorted(installation.said(agent.theme)) == sorted(agent.report.said)
        assert agent.report.is_well, agent.report.failures
    assert installation.password not in str([*installation.root.rglob("*")])
    for home in (installation.root, installation.profile):
        assert "${HERMES_PGVECTOR_PASSWORD}" in installation.dsn_of(home)
        assert (home / ".env").stat().st_mode & 0o077 == 0
        assert installation.password not in (home / ".env").read_text(encoding="utf-8")

    old = installation.start()
    here, there = sums(old.owner_dsn), sums(installation.target.owner_dsn)
    for table in ("memory_entries", "memory_operations", "forgotten", "receipts", "theme_aliases"):
        assert here[table] == there[table]
    _is_closed(old)
    numbers = Stored(installation.target.owner_dsn).rows(
        "SELECT (SELECT last_value FROM conversations_id_seq) >= (SELECT max(id) FROM conversations),"
        " (SELECT last_value FROM memory_operations_id_seq) >= (SELECT max(id) FROM memory_operations)"
    )
    assert numbers == [(True, True)]

    with LiveAgent.start(
        installation.profile, theme="lamp", writes=20, recalls=5, environment=installation.commands.environment
    ) as third:
        back = installation.back("--execute")
        assert back.get("left") == [], back
    assert third.report.is_well, third.report.failures
    assert not installation.dsn_of(installation.root)
    assert not installation.dsn_of(installation.profile)
    in_use = Stored(installation.start().owner_dsn)
    stored = [content for _, _, content in in_use.turns("lamp")]
    assert sorted(set(stored)) == sorted({*second.report.said, *third.report.said})
    assert len(stored) == len(set(stored))

    again = installation.to_own("--execute")
    assert again.get("left") == [], again
    # A home without data would start from what the host's backup has made of it.
    dump = installation.commands.folder / ".hermes-pgvector" / f"{home_id(installation.root)}.dump"
    dump.parent.mkdir(exist_ok=True)
    dump.write_bytes(b"no dump at all")
    shutil.rmtree(installation.root / "pgvector" / "checkpoints" / "postgres.sock")
    anew = installation.back("--execute")
    assert anew.get("left") == [], anew
    in_use = Stored(installation.start().owner_dsn)
    assert sorted(content for _, _, content in in_use.turns("desk")) == sorted(first.report.said)
    assert not dump.exists()
    assert len(list(dump.parent.glob("*.dump-before-*"))) == 1


def _is_closed(old: ConnectionInfo) -> None:
    """No process stores anything in the old database any more."""
    with translated(), psycopg.connect(old.runtime_dsn) as connection:
        with pytest.raises(Held, match="moved from this database to"):
            schema.verify(connection)
        with pytest.raises(Held, match="moved from this database to"):
            gate.enter(connection)
        with pytest.raises(Held, match="moved from this database to"):
            gate.close(connection)
    with pytest.raises(SchemaError, match="moved"):
        migrate.apply(old.owner_dsn, model=LOCAL)


KILLER = """
import importlib, os, signal, sys
module, name, number, moment, *arguments = sys.argv[1:]
owner = importlib.import_module("hermes_memory_pgvector." + module)
*path, last = name.split(".")
for part in path:
    owner = getattr(owner, part)
original, calls = getattr(owner, last), 0
def killing(*positional, **named):
    global calls
    calls += 1
    if calls == int(number) and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    answer = original(*positional, **named)
    if calls == int(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
setattr(owner, last, killing)
from hermes_memory_pgvector.command_line import main
sys.exit(main(arguments))
"""
KILLS = {
    "before the tables": ("ops.migration", "apply", "1", "before"),
    "tables made": ("ops.migration", "apply", "1", "after"),
    "before it is closed": ("schema.moving", "Side.shut", "1", "before"),
    "closed": ("schema.moving", "Side.shut", "1", "after"),
    "target claimed": ("schema.moving", "_claim", "1", "after"),
    "with models": ("schema.moving", "_make_models", "1", "after"),
    "after a table": ("schema.moving", "_copy", "1", "after"),
    "after the turns": ("schema.moving", "_copy", "2", "after"),
    "compared": ("schema.moving", "_compare", "4", "after"),
    "numbered": ("schema.moving", "Side.set_sequences_of", "1", "after"),
    "new one open": ("schema.buckets", "tidy", "1", "before"),
    "before homes follow": ("ops.carry.promote", "_follow", "1", "before"),
    "journal told": ("store.installation", "accept", "1", "after"),
    "one home there": ("ops.new_settings", "save_dsn", "1", "after"),
    "agents gone": ("ops.carry.promote", "_wait_for_agents", "1", "after"),
    "all homes there": ("ops.carry.promote", "_stop", "1", "before"),
}
EVERYDAY = ("closed", "after the turns", "new one open", "one home there")


@pytest.mark.parametrize("kills", some_of({"some": EVERYDAY, "all": tuple(KILLS)}, "some"))
def test_a_killed_move_goes_on_and_loses_nothing(humble_installation: Installation, kills: tuple[str, ...]) -> None:
    """Killed again and again on the way into a schema of its own, while an agent talks in each home."""
    installation, admin = humble_installation, humble_installation.admin
    environment = installation.commands.environment
    with (
        LiveAgent.start(installation.root, theme="desk", writes=50, recalls=5, environment=environment) as first,
        LiveAgent.start(installation.profile, theme="lamp", writes=20, recalls=5, environment=environment) as second,
    ):
        for kill in kills:
            done = subprocess.run(
                [sys.executable, "-c", KILLER, *KILLS[kill], "promote", "--to", admin, "--execute", "--json"],
                env={**environment, **installation.variables}, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            assert done.returncode == -signal.SIGKILL, (kill, done)
        done = installation.promote("--to", admin, "--execute")
        assert done.get("left") == [], done
    stored = Stored(make_conninfo(installation.target.owner_dsn, options="-csearch_path=fleet,public"))
    for agent in (first, second):
        assert sorted(content for _, _, content in stored.turns(agent.theme)) == sorted(agent.report.said)
        assert agent.report.is_well, agent.report.failures
    assert len(stored.turns("theme 1")) == 300
    here, there = sums(installation.start().owner_dsn), sums(stored.dsn)
    for table in ("memory_entries", "memory_operations", "memory_vectors_1", "forgotten", "receipts"):
        assert here[table] == there[table]
    assert Stored(installation.target.owner_dsn).rows("SELECT to_regclass('public.conversations')") == [(None,)]


def test_what_is_in_the_way_is_said_and_nothing_changes(
    installation: Installation, database: Database, postgres_server: ConnectionInfo
) -> None:
    """Databases that cannot or must not take the memories, logins without rights, and moves that are taken back."""

    def problem(name: str, *arguments: str) -> str:
        done = installation.promote("--to", make_conninfo(installation.admin, dbname=name), *arguments)
        return str(done["error"])

    with psycopg.connect(database.owner_dsn) as other:
        other.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'of another fleet')")
    assert "another installation" in problem(database.name, "--execute")
    assert Stored(database.owner_dsn).memories("default") == [("memory", "of another fleet")]

    with psycopg.connect(installation.target.owner_dsn) as seed:
        seed.execute("CREATE TABLE conversations (id serial, content text)")
    assert "another installation" in problem(installation.target.name, "--execute")
    with psycopg.connect(installation.target.owner_dsn) as seed:
        seed.execute("DROP TABLE conversations")

    with psycopg.connect(postgres_server.owner_dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE ascii_only ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        try:
            assert "encoding is SQL_ASCII" in problem("ascii_only")
        finally:
            admin.execute("DROP DATABASE ascii_only WITH (FORCE)")
        admin.execute("CREATE ROLE agents_of_promote LOGIN PASSWORD 'a-password-for-agents'")
        admin.execute(f'GRANT CONNECT ON DATABASE "{installation.target.name}" TO agents_of_promote'.encode())
    poor = make_conninfo(installation.admin, user="agents_of_promote", dbname=installation.target.name)
    done = installation.commands.call(
        "promote", "--to", poor, "--json", variables={"PGPASSWORD": "a-password-for-agents"}
    )
    assert "may not create tables" in done.json["error"]

    for home in (installation.root, installation.profile):
        assert not installation.dsn_of(home)
    with psycopg.connect(installation.start().runtime_dsn) as agent:
        schema.verify(agent)
        agent.execute("UPDATE journal_writers SET position = position")


def test_a_move_is_taken_back_and_one_that_does_not_compare_changes_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong, exactly one of the two databases takes what is said."""
    runtime = installation.start().runtime_dsn

    def may_store() -> bool:
        with psycopg.connect(runtime, autocommit=True) as agent, agent.transaction():
            try:
                gate.enter(agent)
            except Held:
                return False
            return True

    def executed(*arguments: str) -> Any:
        return installation.commands.call(
            "promote", "--to", installation.admin, "--execute", *arguments, variables=installation.variables
        )

    original = Side.sums_of

    def tampered(side: Side, name: str) -> dict[str, list[Any]]:
        if name == "memory_entries" and side.dsn == installation_dsn:
            side.connection.execute("UPDATE memory_entries SET content = content || '!' WHERE id = 3")
        return original(side, name)

    installation_dsn = make_conninfo(installation.admin, password=installation.password)
    with monkeypatch.context() as patched:
        patched.setattr(Side, "sums_of", tampered)
        done = executed()
    assert done.code == 1
    told = " ".join(done.err.split())
    assert "memory_entries differs after copying in 1 themes; theme 3 has 12 rows here and 12 there" in told
    assert may_store()

    copying = moving.move

    def entered(source: Side, target: Side, *told: Any) -> dict[str, int]:
        with psycopg.connect(installation.target.owner_dsn) as other:
            other.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'of somebody else')")
        return copying(source, target, *told)

    with monkeypatch.context() as patched:
        patched.setattr(moving, "move", entered)
        assert "has come into use meanwhile" in executed().err
    assert Stored(installation.target.owner_dsn).memories("default") == [("memory", "of somebody else")]
    assert may_store()
    with psycopg.connect(installation.target.owner_dsn) as other:
        other.execute("DELETE FROM memory_entries")

    with alone(installation.root / "pgvector"):
        assert "another `promote`" in executed().err

    with monkeypatch.context() as patched:
        patched.setattr(moving, "move", interrupted)
        assert executed().err == "interrupted\n"
    assert not may_store()
    cancel = ("--cancel", "--to", installation.admin)
    assert installation.promote(*cancel)["executed"] is False
    assert not may_store()
    assert installation.promote(*cancel, "--execute")["executed"] is True
    assert may_store()
    assert installation.promote(*cancel, "--execute")["counts"] == {}

    with monkeypatch.context() as patched:
        patched.setattr(promote, "_follow", interrupted)
        assert executed().err == "interrupted\n"
    late = installation.promote(*cancel, "--execute")
    assert "to go back" in late["error"]
    assert installation.to_own()["counts"] == {"homes": 2}
    done = installation.to_own("--execute")
    assert done["left"] == []


def interrupted(*_: Any) -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt
