"""From nothing to a working memory with one command, on the embedded server and on one's own."""

from __future__ import annotations

import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from testing.command import Commands, with_password
from testing.host_state import fill
from testing.postgres import Database
from testing.stored import Stored

DISABLED = "agent:\n  disabled_toolsets: [memory]\n"
OWN_FILE = "# mine\nmodel:\n  default: some-model  # kept\n"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """A home that `up` has set up on its embedded server."""
    commands = Commands(tmp_path_factory.mktemp("embedded"))
    commands.home.mkdir()
    (commands.home / "config.yaml").write_text(OWN_FILE, encoding="utf-8")
    try:
        done = commands.run("up")
        assert done.code == 0, done
        (commands.folder / "first.out").write_text(done.out, encoding="utf-8")
        yield commands
    finally:
        EmbeddedPostgres(commands.home / "pgvector").stop(Deadline.after(60), mode="immediate")


def test_the_first_up_shows_a_recall_and_the_next_command(embedded: Commands) -> None:
    out = (embedded.folder / "first.out").read_text(encoding="utf-8")
    assert "created and started" in out
    assert "recalled   The dentist" in out
    assert "checks passed" in out
    assert "hermes-pgvector status" in out
    assert "hermes-pgvector list" in out


def test_up_writes_the_provider_and_nothing_else(embedded: Commands) -> None:
    assert (embedded.home / "config.yaml").read_text(encoding="utf-8").startswith(OWN_FILE)
    assert embedded.config["memory"] == {"provider": "pgvector"}
    assert (embedded.home / "plugins" / "pgvector" / "plugin.yaml").exists()
    assert not (embedded.home / ".env").exists()


def test_the_demonstration_leaves_nothing_behind(embedded: Commands) -> None:
    info = EmbeddedPostgres(embedded.home / "pgvector").ensure_running(Deadline.after(60))
    stored = Stored(info.owner_dsn)
    for table in ("conversations", "memory_entries", "memory_operations", "turn_vectors_1", "pending_vectors"):
        assert stored.count(table) == 0, table


def test_up_again_changes_nothing(embedded: Commands) -> None:
    before = (embedded.home / "config.yaml").read_bytes()
    done = embedded.run("up", "--json")
    assert done.code == 0, done
    assert done.json["changed"] == []
    assert done.json["exit_code"] == 0
    assert {check["level"] for check in done.json["checks"]} == {"ok"}
    assert "dentist" in done.json["recalled"]
    assert (embedded.home / "config.yaml").read_bytes() == before


def test_up_names_the_chats_that_hermes_has_kept(embedded: Commands) -> None:
    """Where nobody can answer, it says how to import them and imports nothing."""
    messages = fill(embedded.home, sessions=2, exchanges=3)
    try:
        done = embedded.run("up")
    finally:
        (embedded.home / "state.db").unlink()
    assert done.code == 0, done
    assert f"{messages} messages of 2 sessions found in" in " ".join(done.out.split())
    assert "to import them: hermes-pgvector import " in " ".join(done.out.split())


def test_two_at_once_both_succeed(embedded: Commands) -> None:
    finished = [embedded.finish(process) for process in [embedded.start("up", "--json") for _ in range(2)]]
    assert [(done.code, bool(done.json["recalled"])) for done in finished] == [(0, True), (0, True)]


def test_the_demonstration_works_without_vectors_too(embedded: Commands) -> None:
    done = embedded.run("up", "--json", variables={"HERMES_PGVECTOR_EMBED_ON_WRITE": "false"})
    assert "dentist" in done.json["recalled"]


def test_doctor_is_content(embedded: Commands) -> None:
    done = embedded.run("doctor")
    assert done.code == 0, done
    assert "checks passed" in done.out
    assert done.out.count("\n") == 1
    assert 8 < embedded.run("doctor", "--all").out.count("✓") <= 12
    assert embedded.run("doctor", "--check").everything == ""


def test_doctor_notices_what_is_missing(embedded: Commands) -> None:
    folder = embedded.home / "plugins" / "pgvector"
    folder.rename(embedded.folder / "elsewhere")
    try:
        done = embedded.run("doctor", "--json", variables={"HERMES_PGVECTOR_PREFETCH_LIMIT": "none"})
    finally:
        (embedded.folder / "elsewhere").rename(folder)
    assert done.code == 1
    found = {check["name"]: check for check in done.json["checks"] if check["level"] == "problem"}
    assert set(found) == {"settings", "plugin folder"}
    assert "prefetch_limit" in found["settings"]["text"]
    assert found["plugin folder"]["hint"] == "hermes-pgvector up"


def test_doctor_and_status_say_what_keeps_the_memory_out_of_chats(embedded: Commands) -> None:
    file = embedded.home / "config.yaml"
    before = file.read_text(encoding="utf-8")
    try:
        file.write_text(before.replace("provider: pgvector", "provider: ''") + DISABLED, encoding="utf-8")
        checks = embedded.run("doctor", "--json")
        told = embedded.run("status")
    finally:
        file.write_text(before, encoding="utf-8")
    found = [(each["level"], each["text"]) for each in checks.json["checks"] if each["name"] == "provider"]
    assert (checks.code, [level for level, _ in found]) == (1, ["problem", "warning"])
    shown = " ".join(told.everything.split())
    for _, text in found:
        assert text in shown
    assert "hermes config set memory.memory_enabled false" in shown


def test_doctor_names_profiles_that_are_set_to_use_the_memory_and_cannot(embedded: Commands) -> None:
    # This is what `hermes profile create NAME --clone` leaves.
    profile = embedded.home / "profiles" / "fresh"
    profile.mkdir(parents=True)
    try:
        (profile / "config.yaml").write_text("memory: {provider: pgvector}\n", encoding="utf-8")
        done = embedded.run("doctor", "--json")
    finally:
        shutil.rmtree(profile.parent)
    (found,) = [check for check in done.json["checks"] if check["name"] == "profiles"]
    assert (done.code, found["level"], found["hint"]) == (0, "warning", "hermes-pgvector up --all-profiles")
    assert found["text"].endswith("fresh")


def test_doctor_notices_an_embedder_that_does_not_answer(embedded: Commands) -> None:
    done = embedded.run("doctor", "--json", variables={"HERMES_PGVECTOR_EMBED_URL": "http://127.0.0.1:9/v1"})
    assert done.code == 2
    (found,) = [check for check in done.json["checks"] if check["is_unreachable"]]
    assert found["name"] == "embedder"


def test_doctor_notices_another_model(embedded: Commands) -> None:
    other = {"HERMES_PGVECTOR_EMBED_URL": "http://127.0.0.1:9/v1", "HERMES_PGVECTOR_EMBED_DIM": "32"}
    done = embedded.run("backfill", variables=other)
    assert done.code == 1
    assert "wordllama" in done.err
    assert "nomic-embed-text (32)" in done.err


def test_stop_and_start_by_itself(embedded: Commands) -> None:
    assert embedded.run("up", "--stop", "--json").json == {"stopped": True}
    assert embedded.run("up", "--stop", "--json").json == {"stopped": False}
    assert embedded.run("status", "--json").json["stored"]["memories"] == 0


def test_an_interrupted_tour_leaves_nothing(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = commands.start("try", variables={"TMPDIR": str(temporary)})
    assert process.stdout is not None
    for line in process.stdout:
        if "acknowledged" in line:
            break
    process.send_signal(signal.SIGINT)
    assert commands.finish(process).code == 130
    assert list(temporary.iterdir()) == []


def test_the_tour_shows_recall_and_walls_and_leaves_nothing(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    elsewhere = {"HERMES_PGVECTOR_DSN": "postgresql://nobody@127.0.0.1:9/none", "TMPDIR": str(temporary)}
    done = commands.run("try", variables={**elsewhere, "HERMES_PGVECTOR_ALLOWED_THEMES": "none"})
    assert done.code == 0, done
    assert "✗" not in done.out
    said = " ".join(done.out.split())
    assert "budget of 12,000 euros" in said.partition("Before each answer")[2]
    assert "marketing asks for the lathe's part: nothing" in done.out
    assert "workshop asks for the lathe's part: found" in done.out
    assert list(temporary.iterdir()) == []
    assert not commands.home.exists()


@pytest.fixture
def own(empty_database: Database, tmp_path: Path) -> Iterator[tuple[Commands, str]]:
    """A home, and the administrator's login to a Postgres that is not ours."""
    dsn, password = with_password(empty_database.owner_dsn)
    commands = Commands(tmp_path, [password])
    commands.home.mkdir()
    (commands.home / ".env").write_text("OTHER=kept\n", encoding="utf-8")
    yield commands, dsn
    # Roles are the server's, not the database's: take those the test has made out again.
    with psycopg.connect(dsn, autocommit=True) as admin:
        for (role,) in admin.execute("SELECT rolname FROM pg_roles WHERE rolname ~ '^hermes_[0-9a-f]'").fetchall():
            for statement in ("REASSIGN OWNED BY {} TO CURRENT_USER", "DROP OWNED BY {}", "DROP ROLE {}"):
                admin.execute(sql.SQL(statement).format(sql.Identifier(role)))


def test_up_on_ones_own_postgres_makes_a_role_for_the_agents(own: tuple[Commands, str]) -> None:
    commands, dsn = own
    done = commands.run("up", "--dsn", dsn)
    assert done.code == 0, done
    written = commands.config["memory"]["pgvector"]["dsn"]
    assert "password=${HERMES_PGVECTOR_PASSWORD}" in written
    role = conninfo_to_dict(written)["user"]
    # The name `hermes` is in use on this server, with a password this home does not know: it must keep working.
    assert str(role).startswith("hermes_")
    env = commands.home / ".env"
    lines = env.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "OTHER=kept"
    assert lines[1].startswith("HERMES_PGVECTOR_PASSWORD=")
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    commands.secrets.append(lines[1].partition("=")[2])
    checks = {check["name"]: check for check in commands.run("doctor", "--json").json["checks"]}
    assert f"agents connect as {role}" in checks["database"]["text"]


def test_the_new_roles_password_never_reaches_the_servers_log(
    own: tuple[Commands, str], empty_database: Database
) -> None:
    commands, dsn = own
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("ALTER DATABASE {} SET log_statement = 'all'").format(sql.Identifier(empty_database.name))
        )
    done = commands.run("up", "--dsn", dsn)
    assert done.code == 0, done
    password = (commands.home / ".env").read_text(encoding="utf-8").splitlines()[1].partition("=")[2]
    secrets = Path(str(conninfo_to_dict(empty_database.owner_dsn)["passfile"])).parent
    log = (secrets.parent / "postgres.log").read_text(encoding="utf-8")
    assert "PASSWORD 'SCRAM-SHA-256$" in log
    assert password not in log


def test_up_on_ones_own_postgres_again_changes_nothing(own: tuple[Commands, str]) -> None:
    commands, dsn = own
    assert commands.run("up", "--dsn", dsn).code == 0
    before = [(commands.home / name).read_bytes() for name in ("config.yaml", ".env")]
    for arguments in (("up", "--dsn", dsn), ("up",)):
        done = commands.run(*arguments)
        assert done.code == 0, done
        assert [(commands.home / name).read_bytes() for name in ("config.yaml", ".env")] == before


def test_the_role_may_be_named(own: tuple[Commands, str]) -> None:
    commands, dsn = own
    done = commands.run("up", "--dsn", dsn, "--runtime-role", "hermes_0named")
    assert done.code == 0, done
    assert conninfo_to_dict(commands.config["memory"]["pgvector"]["dsn"])["user"] == "hermes_0named"


def test_a_role_that_others_may_use_keeps_its_password_unless_somebody_says_yes(own: tuple[Commands, str]) -> None:
    commands, dsn = own
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("CREATE ROLE hermes_0taken LOGIN PASSWORD 'of-another-home'")
        database = sql.Identifier(str(conninfo_to_dict(dsn)["dbname"]))
        admin.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO hermes_0taken").format(database))
    done = commands.run("up", "--dsn", dsn, "--runtime-role", "hermes_0taken")
    assert done.code == 1, done
    assert 'role "hermes_0taken" exists and keeps its password' in done.err
    assert not (commands.home / "config.yaml").exists()
    psycopg.connect(make_conninfo(dsn, user="hermes_0taken", password="of-another-home", passfile="")).close()
    assert commands.run("up", "--dsn", dsn, "--runtime-role", "hermes_0taken", "--yes").code == 0
    # This home knows the password now, and need not be asked again.
    assert commands.run("up", "--dsn", dsn, "--runtime-role", "hermes_0taken").code == 0


def test_an_administrator_who_may_not_make_roles_becomes_the_login(own: tuple[Commands, str]) -> None:
    commands, dsn = own
    commands.secrets.append("plain-password")
    with psycopg.connect(dsn, autocommit=True) as admin:
        name = conninfo_to_dict(dsn)["dbname"]
        admin.execute("CREATE ROLE hermes_0plain LOGIN PASSWORD 'plain-password'")
        admin.execute("CREATE EXTENSION vector")
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO hermes_0plain").format(sql.Identifier(str(name))))
        admin.execute("GRANT ALL ON SCHEMA public TO hermes_0plain")
    plain = make_conninfo(dsn, user="hermes_0plain", password="plain-password")
    done = commands.run("up", "--dsn", plain)
    assert done.code == 0, done
    assert "agents use the login given with --dsn" in " ".join(done.out.split())
    assert conninfo_to_dict(commands.config["memory"]["pgvector"]["dsn"])["user"] == "hermes_0plain"
    assert "plain-password" not in (commands.home / "config.yaml").read_text(encoding="utf-8")
    assert "owns the tables" in " ".join(commands.run("doctor", "--all").out.split())


@pytest.mark.parametrize(
    ("dsn", "code"), [("not a dsn", 1), ("postgresql://nobody@127.0.0.1:9/none", 2), ("postgresql://h:99999999/x", 2)]
)
def test_a_wrong_dsn_changes_nothing(tmp_path: Path, dsn: str, code: int) -> None:
    commands = Commands(tmp_path)
    done = commands.run("up", "--dsn", dsn)
    assert done.code == code, done
    assert list(commands.home.iterdir()) in ([], [commands.home / "pgvector"])


def test_an_endpoint_that_is_down_leaves_only_the_vectors_waiting(own: tuple[Commands, str]) -> None:
    commands, dsn = own
    done = commands.run("up", "--dsn", dsn, "--embed-url", "http://127.0.0.1:9/v1", "--embed-model", "some-model")
    assert done.code == 2, done
    assert "vectors have to wait" in done.out
    assert commands.config["memory"]["pgvector"]["embed_model"] == "some-model"
    with psycopg.connect(dsn) as admin:
        assert admin.execute("SELECT count(*) FROM hermes_pgvector_migrations").fetchone() != (0,)
