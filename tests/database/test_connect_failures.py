"""Each way in which a connection fails, at a real server: a sentence, what mends it, and never a password."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.postgres.conninfo import connect_problem
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.binaries import installed_binaries
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from testing.command import PROGRAM, Commands, with_password
from testing.postgres import FAST, Database
from testing.proxy import Proxy
from testing.terminal import on_terminal

PASSWORD = "correct-Horse-7"
WRONG = "wrong-Battery-8"
SCARCE = {"max_connections": "8", "superuser_reserved_connections": "2"}
CONFIGURE = "hermes-pgvector config set dsn DSN"
NO_DATABASE = (
    "the server has no such database for this role; create it (CREATE DATABASE …), or as its owner: "
    "GRANT CONNECT ON DATABASE … TO …"
)
NOT_ADMITTED = (
    "the server does not admit this role to this database from here, or only with TLS; add sslmode=require to the "
    "connection string, or a line to its pg_hba.conf, then: SELECT pg_reload_conf()"
)
HBA = "local all refused reject\nlocal all unlisted,hermes_owner,hermes,ada,asleep,lonely scram-sha-256\n"


class Server:
    """A server of this module's own, with few connections and roles that may not do everything."""

    def __init__(self, folder: Path) -> None:
        self._postgres = EmbeddedPostgres(folder, binaries=installed_binaries()[0], extra_settings={**FAST, **SCARCE})
        self.owner = self._postgres.ensure_running(Deadline.after(120)).owner_dsn
        (hba,) = folder.rglob("pg_hba.conf")
        hba.write_text(HBA, encoding="utf-8")
        self.execute(
            f"CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'", f"CREATE ROLE asleep PASSWORD '{PASSWORD}'",
            f"CREATE ROLE lonely LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0",
            "CREATE DATABASE memory", "CREATE DATABASE closed ALLOW_CONNECTIONS false", "CREATE DATABASE walled",
            "REVOKE CONNECT ON DATABASE walled FROM PUBLIC", "SELECT pg_reload_conf()",
        )  # fmt: skip
        self.ada = make_conninfo(self.owner, user="ada", password=PASSWORD, passfile="/nonexistent", dbname="memory")

    def execute(self, *statements: str, dbname: str = "hermes_memory") -> None:
        with psycopg.connect(make_conninfo(self.owner, dbname=dbname), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @property
    def socket(self) -> Path:
        parts = conninfo_to_dict(self.owner)
        return Path(str(parts["host"])) / f".s.PGSQL.{parts['port']}"

    def close(self) -> None:
        self._postgres.stop(Deadline.after(60), mode="immediate")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("refusing") / "pgvector")
    yield made
    made.close()


def told(dsn: str, **changes: str | None) -> str:
    """What is said of a connection string with these changes; it names neither passwords nor addresses."""
    whole = make_conninfo(dsn, **{name: value for name, value in changes.items() if value is not None})
    for name in [name for name, value in changes.items() if value is None]:
        whole = make_conninfo("", **{key: value for key, value in conninfo_to_dict(whole).items() if key != name})
    problem = connect_problem(whole, 3.0)
    assert type(problem) is DatabaseUnavailable
    text = str(problem)
    for secret in (PASSWORD, WRONG, "ada", "memory", ".invalid", "127."):
        assert secret not in text
    return text


def test_each_refusal_of_a_login_says_what_mends_it(server: Server) -> None:
    sentences = {
        "wrong password": told(server.ada, password=WRONG),
        "no password": told(server.ada, password=None),
        "no such role": told(server.ada, user="unlisted"),
        "no login": told(server.ada, user="asleep"),
        "no such database": told(server.ada, dbname="nowhere"),
        "closed database": told(server.owner, dbname="closed"),
        "walled database": told(server.ada, dbname="walled"),
        "role without connections": told(server.ada, user="lonely"),
        "rejected": told(server.ada, user="refused"),
        "not listed": told(server.ada, user="somebody"),
        "another method": told(server.ada, require_auth="md5"),
    }
    assert sentences == {
        "wrong password": "the server refuses the password of this role; to give another (it asks for it): "
        "hermes-pgvector config set dsn DSN",
        "no password": "the server wants a password and none is given; put it into ~/.pgpass, or let it be asked for: "
        "hermes-pgvector config set dsn DSN",
        # The server does not tell a stranger which roles there are.
        "no such role": sentences["wrong password"],
        "no login": "the server has no such role, or it may not log in; correct the name before the @ of the "
        "connection string, or as a superuser: CREATE ROLE … LOGIN",
        "no such database": NO_DATABASE,
        "closed database": NO_DATABASE,
        "walled database": NO_DATABASE,
        "role without connections": "the server has no connection left for this role; close some, raise "
        "max_connections, or use a pooler",
        "rejected": NOT_ADMITTED,
        "not listed": NOT_ADMITTED,
        "another method": f"an option of the connection string is not valid here; correct it with: {CONFIGURE}",
    }


def test_each_way_not_to_reach_a_server_says_what_mends_it(server: Server) -> None:
    with Proxy(server.socket) as proxy, _greeting(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web, _greeting(b"") as mute:
        here = make_conninfo(server.ada, host="127.0.0.1", port=str(proxy.port))
        assert connect_problem(here, 3.0) is None
        proxy.mode = "blackhole"
        silent = told(here)
        proxy.mode = "pass"
        sentences = {
            "closed port": told(here, port=str(_free_port())),
            "no socket": told(here, host="/nonexistent"),
            "unknown host": told(here, host="no-such-host.invalid"),
            "no route": told(here, host="127.255.255.255"),
            "silence": silent,
            "no TLS": told(here, sslmode="require"),
            "no Postgres": told(here, port=str(web)),
            "hangs up": told(here, port=str(mute)),
            "no service": told(here, service="nobody"),
            "no mode": told(here, sslmode="maybe"),
        }
    nobody = "no server listens where the connection string leads, or it is no Postgres"
    silent, not_valid = "the host does not answer", "an option of the connection string is not valid here"
    assert {name: text.partition(";")[0] for name, text in sentences.items()} == {
        "closed port": nobody,
        "no socket": nobody,
        "unknown host": "no machine of that name is known",
        "no route": silent,
        "silence": silent,
        "no TLS": "the server does not speak TLS, and sslmode demands it",
        "no Postgres": nobody,
        "hangs up": nobody,
        "no service": not_valid,
        "no mode": not_valid,
    }


def test_a_server_without_a_free_connection_says_so(server: Server) -> None:
    with ExitStack() as taken:
        while (problem := connect_problem(server.ada, 3.0)) is None:
            taken.enter_context(psycopg.connect(server.ada))
    assert "the server has no connection left" in str(problem)
    assert "max_connections" in str(problem)


def test_a_server_that_is_too_old_is_named_with_what_is_needed(server: Server) -> None:
    with _older(server.socket) as port:
        old = make_conninfo(server.owner, host="127.0.0.1", port=str(port))
        with pytest.raises(SchemaError, match=r"Postgres 13 is too old: 14 or newer is needed; upgrade the server"):
            migrate.apply(old)


def test_a_server_without_pgvector_says_what_to_install_on_which_system(server: Server) -> None:
    server.execute("ALTER DATABASE memory SET extension_control_path = '/nonexistent'")
    try:
        with pytest.raises(SchemaError) as caught:
            migrate.apply(make_conninfo(server.owner, dbname="memory"))
    finally:
        server.execute("ALTER DATABASE memory RESET extension_control_path")
    for part in (
        "apt install postgresql-18-pgvector", "dnf install pgvector_18", "brew install pgvector",
        "pgvector/pgvector:pg18", "then run this again",
    ):  # fmt: skip
        assert part in str(caught.value)


def test_a_login_that_may_not_create_is_told_what_a_better_one_has_to_do(server: Server) -> None:
    def apply() -> str:
        with pytest.raises(SchemaError) as caught:
            database.apply(server.ada, "hermes", None, adopt_model="x")
        return str(caught.value)

    assert "may not change the schema; give the owner's: hermes-pgvector migrate --admin-dsn OWNER_DSN" in apply()
    server.execute("GRANT CREATE ON SCHEMA public TO ada", dbname="memory")
    text = apply()
    assert text.startswith("this login may not install pgvector into the database; a superuser has to run once")
    assert "CREATE EXTENSION vector; then run this again" in text


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    made = Commands(tmp_path, [PASSWORD, WRONG])
    made.home.mkdir()
    return made


def test_commands_say_which_database_and_why_and_change_nothing(server: Server, commands: Commands) -> None:
    wrong = make_conninfo(server.ada, password=WRONG)
    commands.configure(prefetch_limit=3)
    before = (commands.home / "config.yaml").read_bytes()
    for arguments in (("config", "set", "dsn", wrong), ("up", "--dsn", wrong), ("migrate", "--admin-dsn", wrong)):
        done = commands.call(*arguments)
        assert done.code == 2, done
        assert f"hermes-pgvector: memory on {server.socket.parent}:5432 as ada: the server refuses the pass" in done.err
        assert (commands.home / "config.yaml").read_bytes() == before
    assert commands.call("config", "set", "dsn", wrong, "--force").code == 0
    status = commands.call("status")
    assert status.code == 2
    assert "database: the server refuses the password" in " ".join(status.out.split())


def test_a_password_is_asked_for_without_echo_and_kept_in_the_env_file(server: Server, commands: Commands) -> None:
    bare = make_conninfo(server.ada, password="")
    done = on_terminal(
        [PROGRAM, "config", "set", "dsn", bare],
        environment={**commands.environment, "COLUMNS": "100", "TERM": "xterm"},
        folder=commands.folder,
        answers={"Password for memory on": f"{WRONG}\n", "Another password for memory": f"{PASSWORD}\n"},
    )
    assert done.code == 0, done.shown
    assert PASSWORD not in done.shown
    assert WRONG not in done.shown
    assert f"HERMES_PGVECTOR_PASSWORD={PASSWORD}" in (commands.home / ".env").read_text(encoding="utf-8")
    assert PASSWORD not in (commands.home / "config.yaml").read_text(encoding="utf-8")
    # Nobody can be asked through a pipe.
    piped = commands.run("config", "set", "dsn", bare, stdin=f"{PASSWORD}\n")
    assert piped.code == 2
    assert "the server wants a password and none is given" in piped.err


def test_up_asks_for_the_password_of_your_own_postgres(database_owner: tuple[str, str], commands: Commands) -> None:
    owner, password = database_owner
    commands.secrets.append(password)
    done = on_terminal(
        [PROGRAM, "up", "--dsn", owner],
        environment={**commands.environment, "COLUMNS": "100", "TERM": "xterm"},
        folder=commands.folder,
        answers={"Password for ": f"{password}\n"},
    )
    assert done.code == 0, done.shown
    assert password not in done.shown
    assert "your Postgres" in done.shown


@pytest.fixture
def database_owner(empty_database: Database) -> tuple[str, str]:
    """A login without its password, and the password."""
    owner, password = with_password(empty_database.owner_dsn)
    return make_conninfo(owner, password=""), password


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def _greeting(answer: bytes) -> Iterator[int]:
    """A port where something else than Postgres answers, or hangs up when there is no answer to give."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    if answer:
                        caller.recv(1000)
                        caller.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def _older(upstream: Path) -> Iterator[int]:
    """A port through which a real server seems to be version 13: its greeting is changed on the way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pump(source: socket.socket, sink: socket.socket, *, is_answer: bool) -> None:
            while data := source.recv(65536):
                sink.sendall(data.replace(b"server_version\x0018", b"server_version\x0013") if is_answer else data)
            sink.shutdown(socket.SHUT_WR)

        def serve() -> None:
            caller, _ = listener.accept()
            with caller, socket.socket(socket.AF_UNIX) as server:
                server.connect(os.fspath(upstream))
                back = threading.Thread(target=pump, args=(server, caller), kwargs={"is_answer": True}, daemon=True)
                back.start()
                pump(caller, server, is_answer=False)
                back.join(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)
