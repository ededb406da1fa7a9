"""Whatever happens to config.yaml and .env, nothing is stored in a database that nobody meant."""

from __future__ import annotations

import functools
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime import processes
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.folder import DATA_NAME
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.agent import PLAIN
from testing.cases import some_of
from testing.command import Commands, with_password
from testing.faulty import FaultyServer, new_database
from testing.postgres import DIM, MODEL, Database
from testing.stored import Stored
from testing.waiting import wait_until

CHILD = """
import sys
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
home, *said = sys.argv[1:]
for theme, text in zip(said[::2], said[1::2]):
    agent = PgvectorMemoryProvider()
    agent.initialize("s2", hermes_home=home, platform="api_server", agent_context="primary", gateway_session_key=theme,
                     agent_identity="default", agent_workspace="hermes")
    agent.sync_turn(text, "", session_id="s2")
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class ConfiguredHome:
    """A home whose settings are where an operator has them: in its files."""

    commands: Commands
    database: Database

    @property
    def path(self) -> Path:
        return self.commands.home

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def stored(self) -> Stored:
        return Stored(self.database.owner_dsn)

    @property
    def has_embedded(self) -> bool:
        return (self.path / "pgvector" / DATA_NAME).exists()

    def configure(self, **settings: Any) -> None:
        given = {**PLAIN, "allowed_themes": ["marketing", "trading"], **settings}
        document = {"model": "any", "memory": {"provider": "pgvector", "pgvector": given}, "zone": "UTC"}
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    def provider(self, theme: str = "marketing", session: str = "s1") -> PgvectorMemoryProvider:
        made = PgvectorMemoryProvider()
        made.initialize(
            session, hermes_home=str(self.path), platform="api_server", agent_context="primary",
            gateway_session_key=theme, agent_identity="default", agent_workspace="hermes",
        )  # fmt: skip
        return made

    def say(self, text: str, theme: str = "marketing") -> None:
        self.provider(theme).sync_turn(text, "", session_id="s1")

    def say_elsewhere(self, *said: str, until: Callable[[], object]) -> None:
        """Another process says so to its themes, lives on until something is so, and ends."""
        command = [sys.executable, "-c", CHILD, str(self.path), *said]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
            wait_until(until, seconds=60)
            assert child.stdin is not None
            child.stdin.close()
            assert child.wait(60) == 0

    def is_holding(self) -> bool:
        """Whether a process at work has told that it does not store anything."""
        told = processes.read_all(self.path / "pgvector" / "journal")
        return any(each.name == "database writes" for process in told for each in process.open_breakers)

    def knows(self, text: str, theme: str = "marketing") -> bool:
        return any(content == text for _, _, content in self.stored.turns(theme))

    def arrive(self, text: str, theme: str = "marketing", seconds: float = 60.0) -> None:
        wait_until(lambda: self.knows(text, theme), seconds=seconds)

    def has_all(self, theme: str, containing: str, wanted: set[str]) -> bool:
        return {content for _, _, content in self.stored.turns(theme, containing)} >= wanted

    def waiting(self) -> int:
        """How many records the journals of this home hold."""
        return int(self.commands.call("status", "--json").json["journal"]["waiting"])


@pytest.fixture
def home(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConfiguredHome]:
    """A home that has reached its database once, and has ended all its processes."""
    made = ConfiguredHome(Commands(tmp_path), database)
    made.path.mkdir(parents=True)
    monkeypatch.setenv("HERMES_HOME", str(made.path))
    made.configure(dsn=database.runtime_dsn)
    yield made
    close_all(Deadline.after(5))


def once(home: ConfiguredHome) -> None:
    """A first process, that ends well."""
    words = "The first words of this home are stored where they belong."
    home.say_elsewhere("marketing", words, until=lambda: home.knows(words))


def half(path: Path) -> None:
    data = path.read_bytes()
    cut = data.index(b"allowed_themes") + 20
    path.write_bytes(data[:cut])


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "invalid": lambda path: path.write_text("memory: [unclosed\n", encoding="utf-8"),
    "half-written": half,
    "Latin-1": lambda path: path.write_bytes(path.read_bytes() + "# größer\n".encode("latin-1")),
    "a list": lambda path: path.write_text("- a\n- b\n", encoding="utf-8"),
    "a folder": as_folder,
    "a pipe": as_pipe,
}
LOST: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
}


def put_back(path: Path, data: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", some_of(UNREADABLE, "invalid", "a pipe"))
def test_a_new_process_that_cannot_read_the_settings_keeps_everything_in_its_journal(
    home: ConfiguredHome, damage: Callable[[Path], object]
) -> None:
    once(home)
    good = home.config.read_bytes()
    damage(home.config)
    home.say_elsewhere("trading", "Said after the file was damaged, to the same people.", until=home.is_holding)
    assert not home.has_embedded
    doctor = home.commands.call("doctor", "--json")
    assert any(each["level"] == "problem" and str(home.config) in each["text"] for each in doctor.json["checks"])
    put_back(home.config, good)
    home.say("Said when it is back.")
    home.arrive("Said after the file was damaged, to the same people.", "trading")


@pytest.mark.parametrize("damage", some_of({**UNREADABLE, **LOST}, "empty", "gone", "a folder"))
def test_a_running_process_keeps_the_settings_in_force(
    home: ConfiguredHome, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    home.say("Before anything happened to the file.")
    home.arrive("Before anything happened to the file.")
    good = home.config.read_bytes()
    caplog.set_level(logging.WARNING, "hermes_memory_pgvector")
    damage(home.config)
    for number in range(3):
        home.say(f"Said while the file is damaged, number {number}.", "trading")
    for number in range(3):
        home.arrive(f"Said while the file is damaged, number {number}.", "trading")
    wait_until(lambda: "the settings in force stay" in caplog.text)
    home.say("A stranger speaks while nobody can read the list.", "stranger")
    home.arrive("A stranger speaks while nobody can read the list.", "default")
    assert not home.has_embedded
    put_back(home.config, good)
    wait_until(lambda: "can be read again" in caplog.text)
    assert caplog.text.count("the settings in force stay") == 1


def with_secret(home: ConfiguredHome) -> str:
    dsn, password = with_password(home.database.runtime_dsn)
    home.configure(dsn=dsn)
    return password


def test_a_password_in_the_file_is_kept_nowhere_else(home: ConfiguredHome) -> None:
    password = with_secret(home)
    once(home)
    for file in (home.path / "pgvector").rglob("*"):
        if file.is_file():
            assert password.encode() not in file.read_bytes(), file
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


@pytest.mark.parametrize("how", ["gone", "empty", "unset"])
def test_a_password_whose_variable_is_lost_holds_everything(home: ConfiguredHome, how: str) -> None:
    parts = conninfo_to_dict(with_password(home.database.runtime_dsn)[0])
    password = str(parts["password"])
    home.configure(dsn=make_conninfo("", **{**parts, "password": "${MEMORY_WORD}"}))
    env = home.path / ".env"
    env.write_text(f"OTHER=1\nMEMORY_WORD={password}\n", encoding="utf-8")
    once(home)
    if how == "gone":
        env.unlink()
    else:
        env.write_text("" if how == "empty" else "OTHER=1\n", encoding="utf-8")
    home.say_elsewhere("marketing", "Said while the variable is lost.", until=home.is_holding)
    assert not home.has_embedded
    assert not home.knows("Said while the variable is lost.")
    doctor = home.commands.call("doctor", "--json")
    assert any(each["level"] == "problem" and "MEMORY_WORD" in each["text"] for each in doctor.json["checks"])
    env.write_text(f"OTHER=1\nMEMORY_WORD={password}\n", encoding="utf-8")
    home.say("Said when it is back.")
    home.arrive("Said while the variable is lost.")


def test_the_variables_are_read_as_the_host_reads_them(home: ConfiguredHome) -> None:
    parts = conninfo_to_dict(with_password(home.database.runtime_dsn)[0])
    home.configure(dsn=make_conninfo("", **{**parts, "password": "${MEMORY_WORD}"}))
    lines = f"# gr\xf6\xdfer\nexport MEMORY_WORD='{parts['password']}' # as given\nGREETING=gr\xfc\xdf\n"
    (home.path / ".env").write_bytes(lines.encode("latin-1"))
    home.say("Said with a file in the wrong encoding.")
    home.arrive("Said with a file in the wrong encoding.")
    assert settings_file.secret(home.path, "GREETING") == "grüß"
    assert not home.has_embedded


def test_the_dsn_of_the_dashboard_is_missed_when_its_file_is_gone(home: ConfiguredHome) -> None:
    home.configure()
    env = home.path / ".env"
    env.write_text(f"HERMES_PGVECTOR_DSN={with_password(home.database.runtime_dsn)[0]}\n", encoding="utf-8")
    once(home)
    env.unlink()
    home.say_elsewhere("marketing", "Said while the dashboard's file is gone.", until=home.is_holding)
    assert not home.has_embedded
    assert home.waiting() >= 1


def test_a_file_that_cannot_be_read_from_the_start_starts_nothing(home: ConfiguredHome) -> None:
    good = home.config.read_bytes()
    home.config.write_text("memory: [unclosed\n", encoding="utf-8")
    home.say("Said before the settings were ever known.")
    wait_until(lambda: engine_for(home.path)[0].writer.breaker.is_open)
    assert not home.has_embedded
    assert home.commands.run("up").code == 1
    assert not home.has_embedded
    home.config.write_bytes(good)
    home.arrive("Said before the settings were ever known.")


def test_a_new_home_without_any_file_has_the_defaults(tmp_path: Path) -> None:
    parsed = settings_file.load(tmp_path)
    assert not parsed.settings.hold
    assert not parsed.troubles
    assert parsed.settings.dsn == ""


def test_a_dsn_that_is_taken_out_holds_and_coming_back_delivers(home: ConfiguredHome) -> None:
    once(home)
    home.configure()
    home.say("Said after somebody took the dsn out.")
    wait_until(lambda: engine_for(home.path)[0].writer.breaker.is_open)
    assert "hermes-pgvector up" in engine_for(home.path)[0].writer.last_error
    assert not home.has_embedded
    home.configure(dsn=home.database.runtime_dsn)
    home.arrive("Said after somebody took the dsn out.")


@pytest.fixture
def other(server: FaultyServer, template: Database) -> Iterator[Database]:
    with new_database(server, template.name) as made:
        yield made


def test_another_database_gets_nothing_until_the_operator_says_so(home: ConfiguredHome, other: Database) -> None:
    once(home)
    home.configure(dsn=other.runtime_dsn)
    home.say("Said after an editor changed the dsn.")
    wait_until(lambda: engine_for(home.path)[0].writer.breaker.is_open)
    reason = engine_for(home.path)[0].writer.last_error
    assert home.database.name in reason
    assert other.name in reason
    assert Stored(other.owner_dsn).count("conversations") == 0
    assert home.provider().prefetch("after an editor changed") == ""
    doctor = home.commands.call("doctor", "--json")
    assert any(each["level"] == "problem" and other.name in each["text"] for each in doctor.json["checks"])
    status = home.commands.call("status")
    assert other.name in status.out
    assert status.code == 1
    assert home.commands.run("up", variables={"HERMES_PGVECTOR_ADMIN_DSN": other.owner_dsn}).code != 1
    wait_until(lambda: Stored(other.owner_dsn).turns("marketing"), seconds=60)


def test_config_set_dsn_says_so_and_running_processes_follow(home: ConfiguredHome, other: Database) -> None:
    home.say("Said to the first database.")
    home.arrive("Said to the first database.")
    agent = home.provider()
    dsn, password = with_password(other.runtime_dsn)
    home.commands.secrets.append(password)
    assert home.commands.run("config", "set", "dsn", dsn).code == 0
    wait_until(lambda: engine_for(home.path)[0].settings.dsn == dsn)
    agent.sync_turn("Said to the second database, by a session that began before.", "", session_id="s1")
    wait_until(lambda: Stored(other.owner_dsn).turns("marketing"), seconds=60)
    assert home.stored.count("conversations") == 1


def test_the_variable_of_the_dashboard_says_so(home: ConfiguredHome, other: Database) -> None:
    once(home)
    dsn = with_password(other.runtime_dsn)[0]
    (home.path / ".env").write_text(f"HERMES_PGVECTOR_DSN={dsn}\n", encoding="utf-8")
    home.say("Said after the form was saved.")
    wait_until(lambda: Stored(other.owner_dsn).turns("marketing"), seconds=60)


def test_a_database_made_anew_in_the_same_place_gets_nothing(home: ConfiguredHome, server: FaultyServer) -> None:
    once(home)
    server.admin(f"DROP DATABASE {home.database.name} WITH (FORCE)")
    server.admin(f"CREATE DATABASE {home.database.name} TEMPLATE template0")
    migrate.apply(home.database.owner_dsn, runtime_role=RUNTIME_ROLE, model=NewModel(MODEL, DIM))
    home.say("Said to an impostor.")
    wait_until(lambda: engine_for(home.path)[0].writer.breaker.is_open)
    assert home.stored.count("conversations") == 0
    assert home.commands.run("up", variables={"HERMES_PGVECTOR_ADMIN_DSN": home.database.owner_dsn}).code != 1
    home.arrive("Said to an impostor.")


def test_a_restored_copy_in_the_same_place_goes_on(home: ConfiguredHome, server: FaultyServer) -> None:
    once(home)
    name = home.database.name
    server.admin(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    server.admin(f"DROP DATABASE {name} WITH (FORCE)")
    server.admin(f"ALTER DATABASE {name}_copy RENAME TO {name}")
    server.admin(f"GRANT CONNECT ON DATABASE {name} TO {RUNTIME_ROLE}")
    home.say("Said after yesterday's state was put back.")
    home.arrive("Said after yesterday's state was put back.")


def test_a_copy_beside_the_original_gets_nothing(home: ConfiguredHome, server: FaultyServer) -> None:
    once(home)
    copy = f"{home.database.name}_copy"
    server.admin(f"CREATE DATABASE {copy} TEMPLATE {home.database.name}")
    try:
        server.admin(f"GRANT CONNECT ON DATABASE {copy} TO {RUNTIME_ROLE}")
        home.configure(dsn=make_conninfo(home.database.runtime_dsn, dbname=copy))
        home.say("Said while the settings lead to a copy.")
        wait_until(lambda: engine_for(home.path)[0].writer.breaker.is_open)
        with psycopg.connect(make_conninfo(home.database.owner_dsn, dbname=copy)) as owner:
            assert owner.execute("SELECT count(*) FROM conversations").fetchone() == (1,)
    finally:
        close_all(Deadline.after(5))
        server.admin(f"DROP DATABASE {copy} WITH (FORCE)")


def test_a_server_that_hides_its_identifier_is_known_by_the_installation(
    home: ConfiguredHome, other: Database, server: FaultyServer
) -> None:
    for database in (home.database, other):
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            owner.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    once(home)
    with psycopg.connect(other.owner_dsn, autocommit=True) as owner:
        owner.execute("UPDATE hermes_pgvector_installation SET id = gen_random_uuid()")
    home.configure(dsn=other.runtime_dsn)
    home.say("Said to a server that does not say who it is.")
    wait_until(lambda: engine_for(home.path)[0].writer.breaker.is_open)
    assert Stored(other.owner_dsn).count("conversations") == 0


def carelessly(path: Path, text: str, way: int) -> None:
    """Rewrite a file as programs do that do not think of readers."""
    data = text.encode()
    match way % 4:
        case 0:
            with path.open("wb", buffering=0) as file:
                for start in range(0, len(data), 40):
                    file.write(data[start : start + 40])
                    time.sleep(0.001)
        case 1:
            path.unlink()
            time.sleep(0.01)
            path.write_bytes(data)
        case 2:
            path.write_bytes(b"")
            time.sleep(0.02)
            path.write_bytes(data)
        case _:
            new = path.with_suffix(".new")
            new.write_bytes(data)
            new.replace(path)


def test_rewriting_the_file_under_load_loses_doubles_and_misplaces_nothing(home: ConfiguredHome) -> None:
    home.say("The first of many.")
    good = yaml.safe_load(home.config.read_text(encoding="utf-8"))
    is_over = threading.Event()
    rewritten = 0

    def rewrite() -> None:
        nonlocal rewritten
        while not is_over.is_set():
            good["memory"]["pgvector"]["prefetch_limit"] = 1 + rewritten // 4 % 9
            carelessly(home.config, yaml.safe_dump(good, sort_keys=False), rewritten)
            rewritten += 1
            time.sleep(0.01)

    program = threading.Thread(target=rewrite)
    program.start()
    try:
        kept = home.provider("trading", "long")
        for number in range(300):
            agent = home.provider("marketing", f"s{number}")
            agent.sync_turn(f"Turn {number} of a busy day, said once.", "", session_id=f"s{number}")
            kept.sync_turn(f"Turn {number} of a long session, said once.", "", session_id="long")
            time.sleep(0.01)
    finally:
        is_over.set()
        program.join()
    assert rewritten > 40
    for theme, what in (("marketing", "a busy day"), ("trading", "a long session")):
        wanted = {f"Turn {number} of {what}, said once." for number in range(300)}
        wait_until(functools.partial(home.has_all, theme, what, wanted), seconds=60)
        assert len(home.stored.turns(theme, what)) == 300
    assert not home.has_embedded
    assert len(engine_for(home.path)[0].journal.writers()) == 1


def test_a_hook_that_began_before_a_change_is_stored_after_it(home: ConfiguredHome) -> None:
    agent = home.provider()
    engine = engine_for(home.path)[0]
    home.configure(dsn=home.database.runtime_dsn, prefetch_limit=9)
    wait_until(lambda: engine.settings.prefetch_limit == 9)
    from hermes_memory_pgvector.journal import Urgency
    from hermes_memory_pgvector.values import AddTurn

    turn = AddTurn(
        "marketing", "s1", "user", "Written by a hook that began before the change.", 1, engine.clock.now(), True
    )
    engine.record([turn], Urgency.TURN)
    home.arrive("Written by a hook that began before the change.")
    agent.sync_turn("And the same session goes on.", "", session_id="s1")
    home.arrive("And the same session goes on.")


def test_what_another_program_writes_meanwhile_is_kept(home: ConfiguredHome, monkeypatch: pytest.MonkeyPatch) -> None:
    change = settings_file._changed
    keys = iter(["first", "second"])

    def changed_meanwhile(*arguments: Any) -> bytes:
        """Ours, worked out from what was read; before it is written, the other program writes its own."""
        text = change(*arguments)
        if (key := next(keys, None)) is not None:
            document = yaml.safe_load(home.config.read_text(encoding="utf-8"))
            new = home.config.with_suffix(".theirs")
            new.write_text(yaml.safe_dump({**document, key: True}, sort_keys=False), encoding="utf-8")
            new.replace(home.config)
        return text

    monkeypatch.setattr(settings_file, "_changed", changed_meanwhile)
    assert settings_file.save(home.path, {"prefetch_limit": 7}) == ["prefetch_limit"]
    document = yaml.safe_load(home.config.read_text(encoding="utf-8"))
    assert document["first"] is True
    assert document["second"] is True
    assert document["memory"]["pgvector"]["prefetch_limit"] == 7


def test_a_link_stays_a_link_and_is_followed(home: ConfiguredHome, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "hermes.yaml"
    real.parent.mkdir()
    home.config.replace(real)
    home.config.symlink_to(real)
    assert settings_file.save(home.path, {"prefetch_limit": 8}) == ["prefetch_limit"]
    assert home.config.is_symlink()
    assert settings_file.load(home.path).settings.prefetch_limit == 8
    assert yaml.safe_load(real.read_text(encoding="utf-8"))["memory"]["pgvector"]["prefetch_limit"] == 8
