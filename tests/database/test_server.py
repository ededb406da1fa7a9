"""The embedded Postgres, for real: created, shared, killed, damaged and repaired, as root and as an ordinary user."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import hermes_memory_pgvector
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DeadlineExceeded, ServerError
from hermes_memory_pgvector.server import accounts, dump, programs
from hermes_memory_pgvector.server.binaries import Binaries, find_binaries, installed_binaries
from hermes_memory_pgvector.server.folder import DATA_NAME, LONGEST_LOG_BYTES
from hermes_memory_pgvector.server.programs import Account, ProgramOutcome, processes_named
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from testing.postgres import FAST
from testing.waiting import promptly, wait_until

IS_ROOT = os.geteuid() == 0
# Root can become anybody and so tests an ordinary user as well; anybody else is the ordinary user.
USERS = [None, "daemon"] if IS_ROOT else [None]
# What a process of its own runs: everything is imported before it becomes the user, who may not see this Python.
PRELUDE = """
import json, os, pwd, signal, sys, psycopg
from pathlib import Path
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.server.accounts import executable_by
from hermes_memory_pgvector.server.binaries import find_binaries
from hermes_memory_pgvector.server.programs import Account
from hermes_memory_pgvector.server.server import EmbeddedPostgres
folder, user = Path(sys.argv[1]), sys.argv[2]
binaries = None
if user:
    entry = pwd.getpwnam(user)
    binaries = executable_by(find_binaries(), Account(entry.pw_uid, entry.pw_gid, switches=True))
    os.setgroups([]); os.setgid(entry.pw_gid); os.setuid(entry.pw_uid)
server = EmbeddedPostgres(folder, binaries=binaries)
"""
START = "info = server.ensure_running(Deadline.after(60))\n"
TELL_START = """
with psycopg.connect(info.runtime_dsn) as connection:
    began, = connection.execute("select pg_postmaster_start_time()::text").fetchone()
print(json.dumps({"began": began, "uid": os.getuid(), "dsn": info.runtime_dsn}))
"""


def soon() -> Deadline:
    """Time enough for anything that is not stuck."""
    return Deadline.after(60)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder for a server, which is stopped at the end; near the root, for a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="hermes-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "home" / "pgvector"
        yield folder
        EmbeddedPostgres(folder).stop(soon(), mode="immediate")


@pytest.fixture(scope="session")
def stopped_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose server was created, holds one row, and is stopped."""
    folder = tmp_path_factory.mktemp("stopped") / "pgvector"
    server = EmbeddedPostgres(folder, extra_settings=FAST)
    run(server.ensure_running(soon()).owner_dsn, "create table kept as select 42 as n")
    server.stop(soon())
    return folder


@pytest.fixture
def used_home(stopped_home: Path, home: Path) -> Path:
    """A home of its own that was in use before: `kept` holds 42."""
    home.parent.mkdir()
    subprocess.run(["cp", "-a", str(stopped_home), str(home)], check=True)
    (home / "postgres.log").unlink()
    return home


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home that any user can reach, unlike pytest's own directories."""
    with tempfile.TemporaryDirectory(prefix="hermes-test-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "home" / "pgvector"
        folder.parent.mkdir()
        yield folder
        EmbeddedPostgres(folder).stop(soon(), mode="immediate")


def python(
    script: str, folder: Path, user: str | None = None, *, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, as that user."""
    command = [sys.executable, "-c", PRELUDE + script, str(folder), user or ""]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def answer(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What the script printed."""
    assert result.returncode == 0, result.stderr
    told: dict[str, str] = json.loads(result.stdout)
    return told


def one(dsn: str, query: str) -> object:
    """The single value of a query."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def run(dsn: str, statement: str) -> None:
    """Run a statement and commit."""
    with psycopg.connect(dsn) as connection:
        connection.execute(statement.encode())


def pid_of(server: EmbeddedPostgres) -> int:
    """The postmaster's pid."""
    pid = server.status().pid
    assert pid is not None
    return pid


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def starts_in(log: Path) -> int:
    """How often a server was started."""
    return log.read_text().count("starting PostgreSQL")


# -- start, attach, stop


def test_a_cold_start_makes_a_server_with_two_roles_and_the_intended_settings(home: Path) -> None:
    info = EmbeddedPostgres(home).ensure_running(soon())
    settings = (
        "fsync data_checksums full_page_writes server_encoding TimeZone listen_addresses jit shared_buffers "
        "max_connections autovacuum log_connections password_encryption"
    )
    values = {name: str(one(info.owner_dsn, f"show {name}")) for name in settings.split()}
    assert values.pop("log_connections") in ("off", "")
    assert values == {
        "fsync": "on",
        "data_checksums": "on",
        "full_page_writes": "on",
        "server_encoding": "UTF8",
        "TimeZone": "UTC",
        "listen_addresses": "",
        "jit": "off",
        "shared_buffers": "128MB",
        "max_connections": "100",
        "autovacuum": "on",
        "password_encryption": "scram-sha-256",
    }
    role = "rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls"
    assert one(info.owner_dsn, "select rolsuper from pg_roles where rolname = current_user") is True
    assert one(info.runtime_dsn, f"select {role} from pg_roles where rolname = current_user") is False
    assert one(info.runtime_dsn, "select current_user || '@' || current_database()") == "hermes@hermes_memory"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(info.runtime_dsn, "create table mine (x int)")
    with pytest.raises(psycopg.OperationalError):
        run(make_conninfo(info.runtime_dsn, dbname="postgres"), "select 1")


@pytest.mark.parametrize("major", [16, 18])
def test_letters_of_all_languages_are_letters(home: Path, major: int) -> None:
    info = EmbeddedPostgres(home, binaries=find_binaries(major), extra_settings=FAST).ensure_running(soon())
    assert one(info.owner_dsn, "select current_setting('server_version_num')::int / 10000") == major
    assert one(info.owner_dsn, "select lower('ÉTÉ ЖУК ΣΩ')") == "été жук σω"
    assert one(info.owner_dsn, "select to_tsvector('simple', '“Grüße” — ÉTÉ')::text") == "'grüße':1 'été':2"
    run(info.owner_dsn, "create extension vector")


@pytest.mark.parametrize("user", USERS)
def test_the_server_is_shared_never_runs_as_root_and_its_files_are_private(open_home: Path, user: str | None) -> None:
    if user:
        os.chown(open_home.parent, pwd.getpwnam(user).pw_uid, -1)
    first, second = (answer(python(START + TELL_START, open_home, user)) for _ in range(2))
    assert first == second, "the second process attaches to the running server"
    assert starts_in(open_home / "postgres.log") == 1
    server = EmbeddedPostgres(open_home)
    owner = Path(f"/proc/{pid_of(server)}").stat().st_uid
    assert owner != 0
    assert owner == (open_home / DATA_NAME).stat().st_uid
    if user:
        assert owner == pwd.getpwnam(user).pw_uid == open_home.stat().st_uid
    sockets = EmbeddedPostgres(open_home).folder.socket_path().parent
    for private in (open_home, open_home / DATA_NAME, open_home / "secrets", sockets):
        assert private.stat().st_mode & 0o077 == 0, private
    for file in (*(open_home / "secrets").iterdir(), open_home / "postgres.log"):
        assert file.stat().st_mode & 0o177 == 0, file
        assert file.stat().st_uid == open_home.stat().st_uid


def test_four_processes_at_once_share_one_server(home: Path) -> None:
    command = [sys.executable, "-c", PRELUDE + START + TELL_START, str(home), ""]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(set(outputs)) == 1
    assert starts_in(home / "postgres.log") == 1


def test_stop_ends_every_process_and_may_be_repeated(used_home: Path) -> None:
    missing = used_home.with_name("missing")
    assert EmbeddedPostgres(missing).stop(soon()) is False
    assert not missing.exists()
    server = EmbeddedPostgres(used_home)
    assert server.stop(soon()) is False
    info = server.ensure_running(soon())
    pid = pid_of(server)
    with psycopg.connect(info.owner_dsn):
        assert server.stop(soon()) is True
    assert not is_alive(pid)
    assert not processes_named(server.folder.cluster_name(server.folder.data))
    assert server.stop(soon()) is False
    assert server.status().running is False


def test_status_tells_what_runs(used_home: Path) -> None:
    before = EmbeddedPostgres(used_home.with_name("missing")).status()
    assert (before.running, before.pid, before.version) == (False, None, None)
    server = EmbeddedPostgres(used_home)
    assert not server.status().running
    server.ensure_running(soon())
    status = server.status()
    assert status.running
    assert status.pid is not None
    assert is_alive(status.pid)
    assert status.version == "18"
    assert status.binaries_version == installed_binaries()[0].version
    assert status.address == str(server.folder.socket_path().parent)


def test_the_server_holds_none_of_its_starters_pipes(used_home: Path) -> None:
    # A server that held them would keep us waiting for the end of its starter's output.
    answer(python(START + TELL_START, used_home, seconds=30))
    server = EmbeddedPostgres(used_home)
    targets = {link.name: str(link.readlink()) for link in Path(f"/proc/{pid_of(server)}/fd").iterdir()}
    assert [targets[number] for number in "012"] == ["/dev/null", str(server.folder.log), str(server.folder.log)]
    assert str(used_home / "postgres.alive") in targets.values()
    assert str(used_home / "postgres.lock") not in targets.values()
    assert os.getsid(pid_of(server)) != os.getsid(0)


# -- kill -9, reboots and damage


def test_rows_survive_a_killed_postmaster(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    info = server.ensure_running(soon())
    run(info.owner_dsn, "insert into kept select generate_series(1, 1000)")
    first = pid_of(server)
    os.kill(first, signal.SIGKILL)
    again = server.ensure_running(soon())
    assert again == info
    assert pid_of(server) != first
    assert one(again.owner_dsn, "select sum(n) from kept") == 500542


def test_rows_survive_a_killed_client_and_the_server_goes_on(used_home: Path) -> None:
    script = START + (
        "connection = psycopg.connect(info.owner_dsn)\n"
        "connection.execute('insert into kept values (43)')\n"
        "connection.commit()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert python(script, used_home).returncode == -signal.SIGKILL
    info = EmbeddedPostgres(used_home).ensure_running(soon())
    assert one(info.owner_dsn, "select max(n) from kept") == 43
    assert starts_in(used_home / "postgres.log") == 1


def test_a_busy_orphan_of_a_killed_postmaster_does_not_block_the_next_start(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    info = server.ensure_running(soon())
    with contextlib.closing(psycopg.connect(info.owner_dsn)) as connection:
        backend = connection.info.backend_pid
        # A loop inside one function call never looks at its postmaster.
        connection.pgconn.send_query(b"select count(*) from generate_series(1, 100000000000)")
        wait_until(lambda: one(info.owner_dsn, f"select state from pg_stat_activity where pid = {backend}") == "active")
        os.kill(pid_of(server), signal.SIGKILL)
        again = server.ensure_running(Deadline.after(30))
        assert one(again.owner_dsn, "select n from kept") == 42
        assert not is_alive(backend)


@pytest.mark.parametrize("content", ["live foreign process", "dead process", "garbage", "empty"])
def test_a_stale_pid_file_does_not_prevent_the_start(used_home: Path, content: str) -> None:
    server = EmbeddedPostgres(used_home)
    server.ensure_running(soon())
    pid = pid_of(server)
    file, lock = used_home / DATA_NAME / "postmaster.pid", server.folder.socket_path().with_name(".s.PGSQL.5432.lock")
    text, owner = file.read_text(), file.stat()
    server.stop(soon())
    lock.parent.mkdir(mode=0o700)
    os.chown(lock.parent, owner.st_uid, owner.st_gid)
    # Owned by the server's user: Postgres by itself takes such a process for a running server.
    foreign = subprocess.Popen(["/bin/sleep", "600"], user=owner.st_uid if IS_ROOT else None, cwd="/")
    try:
        number = {"live foreign process": foreign.pid, "dead process": pid}.get(content)
        for path in (file, lock):
            stale = text.replace(str(pid), str(number), 1) if number else {"garbage": "\x00\xff§", "empty": ""}[content]
            path.write_text(stale)
            os.chown(path, owner.st_uid, owner.st_gid)
        again = server.ensure_running(soon())
        assert one(again.owner_dsn, "select n from kept") == 42
        assert server.stop(soon()) is True
        assert is_alive(foreign.pid)
    finally:
        foreign.kill()
        foreign.wait()


def test_a_creation_that_was_killed_is_begun_anew(home: Path) -> None:
    command = [sys.executable, "-c", PRELUDE + START, str(home), ""]
    with subprocess.Popen(command) as process:
        wait_until(lambda: any(home.glob("checkpoints/new-*/base")))
        process.kill()
    info = EmbeddedPostgres(home, extra_settings=FAST).ensure_running(soon())
    assert one(info.runtime_dsn, "select 1") == 1
    assert not list(home.glob("checkpoints/new-*"))


def test_an_incomplete_data_directory_is_kept_aside(home: Path) -> None:
    (home / DATA_NAME / "base").mkdir(parents=True)
    (home / DATA_NAME / "PG_VERSION").write_text("18\n")
    info = EmbeddedPostgres(home, extra_settings=FAST).ensure_running(soon())
    assert one(info.runtime_dsn, "select 1") == 1
    (kept,) = home.glob("postgres.unusable-*")
    assert (kept / "PG_VERSION").read_text() == "18\n"


@pytest.mark.parametrize(
    ("damage", "is_running"),
    [("truncated", True), ("truncated", False), ("deleted", True), ("deleted", False), ("from elsewhere", False)],
)
def test_damaged_secrets_are_replaced_and_nothing_is_lost(used_home: Path, damage: str, is_running: bool) -> None:
    server = EmbeddedPostgres(used_home)
    if is_running:
        server.ensure_running(soon())
    for role in ("hermes", "hermes_owner"):
        file = used_home / "secrets" / f"{role}.pgpass"
        if damage == "truncated":
            file.write_text(file.read_text()[:20])
        elif damage == "deleted":
            file.unlink()
        else:
            file.write_text(f"*:*:*:{role}:{'x' * 43}\n")
    again = server.ensure_running(soon())
    assert one(again.owner_dsn, "select n from kept") == 42
    assert one(again.runtime_dsn, "select 1") == 1


def test_a_server_whose_socket_was_deleted_is_restarted(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    server.ensure_running(soon())
    EmbeddedPostgres(used_home).folder.socket_path().unlink()
    assert one(server.ensure_running(soon()).owner_dsn, "select n from kept") == 42
    assert starts_in(server.folder.log) == 2


def test_a_home_that_is_moved_keeps_its_running_server(used_home: Path) -> None:
    old = EmbeddedPostgres(used_home)
    old.ensure_running(soon())
    pid = pid_of(old)
    moved = used_home.parent.rename(used_home.parent.with_name("moved")) / used_home.name
    new = EmbeddedPostgres(moved)
    info = new.ensure_running(soon())
    assert one(info.runtime_dsn, "select 1") == 1
    assert pid_of(new) == pid
    assert new.stop(soon()) is True
    assert not is_alive(pid)


# -- bounds


def test_waiting_for_another_starter_ends_with_the_deadline(home: Path) -> None:
    home.mkdir(parents=True)
    with (home / "postgres.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with promptly(), pytest.raises(DeadlineExceeded):
            EmbeddedPostgres(home).ensure_running(Deadline.after(0.2))


def test_a_deadline_too_short_to_create_leaves_nothing_half_made(home: Path) -> None:
    server = EmbeddedPostgres(home, extra_settings=FAST)
    with promptly(), pytest.raises(DeadlineExceeded):
        server.ensure_running(Deadline.after(0.1))
    assert not list(home.glob("postgres*/"))
    assert one(server.ensure_running(soon()).runtime_dsn, "select 1") == 1


def test_a_server_that_does_not_answer_costs_no_more_than_the_deadline(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    server.ensure_running(soon())
    pid = pid_of(server)
    os.kill(pid, signal.SIGSTOP)
    try:
        with promptly(), pytest.raises(DeadlineExceeded):
            server.ensure_running(Deadline.after(0.5))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert one(server.ensure_running(soon()).runtime_dsn, "select 1") == 1


def test_a_long_log_is_cut_while_the_server_goes_on_writing(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    server.ensure_running(soon())
    with server.folder.log.open("ab") as log:
        log.write(b"noise\n" * (LONGEST_LOG_BYTES // 6) + b"the end\n")
    assert server.folder.log.stat().st_size > LONGEST_LOG_BYTES
    server.ensure_running(soon())
    assert server.folder.log.stat().st_size < LONGEST_LOG_BYTES / 8
    server.stop(soon())
    text = server.folder.log.read_bytes().decode()
    assert "the end\n" in text
    assert "database system is shut down" in text


def test_the_log_says_nothing_about_what_is_stored(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    info = server.ensure_running(soon())
    run(info.owner_dsn, "create table t (content text unique check (content <> 'forbidden mango'))")
    run(info.owner_dsn, "insert into t values ('secret mango')")
    for value in ("secret mango", "forbidden mango"):
        with pytest.raises(psycopg.errors.IntegrityError), psycopg.connect(info.owner_dsn) as connection:
            connection.execute("insert into t values (%s)", (value,))
    with pytest.raises(psycopg.errors.SyntaxError):
        run(info.owner_dsn, "selekt 'mango'")
    server.stop(soon())
    assert "shut down" in server.folder.log.read_text()
    assert "mango" not in server.folder.log.read_text()


# -- who gets in


def test_only_the_right_password_opens_the_server(used_home: Path) -> None:
    info = EmbeddedPostgres(used_home).ensure_running(soon())
    for dsn in (info.owner_dsn, info.runtime_dsn):
        assert conninfo_to_dict(dsn).get("password") is None
        for changes in ({"password": "wrong"}, {"passfile": "/dev/null"}, {"user": "postgres", "password": ""}):
            with pytest.raises(psycopg.OperationalError):
                run(make_conninfo(dsn, **changes), "select 1")


def test_a_password_meant_for_another_server_does_not_lock_us_out(
    used_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-another-server")
    info = EmbeddedPostgres(used_home).ensure_running(soon())
    for dsn in (info.owner_dsn, info.runtime_dsn):
        assert one(dsn, "select 1") == 1
    commands: list[str] = []
    real = programs.run_program

    def recorded(command: Sequence[str], account: Account, deadline: Deadline) -> ProgramOutcome:
        commands.extend(command)
        return real(command, account, deadline)

    monkeypatch.setattr(dump, "run_program", recorded)
    dump.dump_database(used_home, info, tmp_path / "dump", soon())
    assert (tmp_path / "dump").stat().st_size > 0
    assert "password=" not in " ".join(commands)


def test_passwords_appear_in_no_command_line_environment_log_or_message(home: Path) -> None:
    seen: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for process in Path("/proc").iterdir():
                for name in ("cmdline", "environ") if process.name.isdigit() else ():
                    try:
                        seen.add((process / name).read_bytes())
                    except OSError:
                        continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = python(START + "print(info, server.status())", home)
    done.set()
    watcher.join()
    assert result.returncode == 0
    assert any(b"initdb" in each for each in seen)
    assert any(b"--single" in each for each in seen)
    shown = b"".join(seen) + result.stdout.encode() + result.stderr.encode() + (home / "postgres.log").read_bytes()
    for role in ("hermes", "hermes_owner"):
        password = (home / "secrets" / f"{role}.pgpass").read_text().strip().rpartition(":")[2]
        assert len(password) == 43
        assert password.encode() not in shown


# -- copies and strangers


@pytest.mark.parametrize("how", ["-a", "-r"])
def test_a_copy_of_a_running_servers_folder_gets_a_server_of_its_own(used_home: Path, how: str) -> None:
    server = EmbeddedPostgres(used_home)
    info = server.ensure_running(soon())
    copy = EmbeddedPostgres(used_home.parent.with_name("copy") / "pgvector")
    copy.folder.path.parent.mkdir()
    # Everything but the data is as it was: postmaster.pid, the passwords, and where the socket is.
    subprocess.run(["cp", how, str(used_home), str(copy.folder.path)], check=True)
    if how == "-r":
        # As an archive is unpacked: owner and mode of folders are whatever is usual.
        copy.folder.data.chmod(0o755)
    assert not copy.status().running
    try:
        other = copy.ensure_running(soon())
        assert pid_of(copy) != pid_of(server)
        run(other.owner_dsn, "update kept set n = 43")
        assert one(info.owner_dsn, "select n from kept") == 42
        copy.stop(soon())
        assert one(server.ensure_running(soon()).owner_dsn, "select n from kept") == 42
        assert server.folder.socket_path().exists()
    finally:
        copy.stop(soon(), mode="immediate")


def test_a_stranger_who_takes_the_sockets_place_is_not_spoken_to(
    used_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a folder of the user's own the socket is in /tmp, which a reboot empties for anybody to fill.
    monkeypatch.setenv("HOME", str(used_home.parent))
    server = EmbeddedPostgres(used_home)
    server.ensure_running(soon())
    place = server.folder.socket_path()
    assert place.is_relative_to(tempfile.gettempdir())
    ready = (used_home / DATA_NAME / "postmaster.pid").read_text()
    server.stop(soon())
    (used_home / DATA_NAME / "postmaster.pid").write_text(ready)
    place.parent.mkdir(mode=0o755)
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(place))
        stranger.listen()
        if IS_ROOT:
            for path in (place, place.parent):
                os.chown(path, pwd.getpwnam("daemon").pw_uid, -1)
        listening = threading.Thread(target=_answer_like_postgres, args=(stranger, heard), daemon=True)
        listening.start()
        assert not server.status().running
        assert one(server.ensure_running(soon()).owner_dsn, "select n from kept") == 42
        # Whoever is not root can play the stranger only as the same user, whose folder it may use.
        assert server.folder.socket_path() != place or not IS_ROOT
        stranger.shutdown(socket.SHUT_RDWR)
        listening.join()
    assert heard == []
    shutil.rmtree(place.parent, ignore_errors=True)


def _answer_like_postgres(stranger: socket.socket, heard: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = stranger.accept()
            with connection:
                heard.append(connection.recv(8))
                connection.sendall(b"N")


# -- places


# Whatever a name may contain is in one; a long one takes another way, through a shorter path.
@pytest.mark.parametrize("name", ["Grüße-日本, quo'te\"s $(false) `x` \\", "long-" + "x" * 120])
@pytest.mark.parametrize("has_own_folder", [True, False])
def test_the_home_may_have_any_name(
    open_home: Path, stopped_home: Path, name: str, has_own_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_own_folder:
        # As in a container whose user's folder is the hermes home itself: nothing of ours may be put beside it.
        monkeypatch.setenv("HOME", str(open_home.parent / name))
    folder = open_home.parent / name / "pgvector"
    if not has_own_folder:
        # Creation is tried with the other half.
        folder.parent.mkdir(parents=True)
        subprocess.run(["cp", "-a", str(stopped_home), str(folder)], check=True)
    server = EmbeddedPostgres(folder, extra_settings=FAST)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(server.stop, soon(), mode="immediate")
        run(server.ensure_running(soon()).owner_dsn, "create table if not exists kept as select 42 as n")
        sockets = Path(server.status().address)
        assert not sockets.is_relative_to(folder.parent)
        assert sockets.stat().st_mode & 0o777 == 0o700
        server.stop(soon())
        assert not sockets.exists()
        assert one(server.ensure_running(soon()).owner_dsn, "select n from kept") == 42
        server.stop(soon())


def test_data_of_another_major_version_is_refused_with_both_versions(home: Path) -> None:
    old = EmbeddedPostgres(home, binaries=find_binaries(16), extra_settings=FAST)
    run(old.ensure_running(soon()).owner_dsn, "create table kept as select 42 as n")
    old.stop(soon())
    with pytest.raises(ServerError, match=r"Postgres 16.*Postgres 18\.\d+; install.*Postgres 16"):
        EmbeddedPostgres(home, binaries=find_binaries(18), extra_settings=FAST).ensure_running(soon())
    # Left to itself, the server takes the installed binaries that fit.
    assert one(EmbeddedPostgres(home, extra_settings=FAST).ensure_running(soon()).owner_dsn, "select n from kept") == 42


def test_without_a_server_package_the_error_names_the_command() -> None:
    source = str(Path(hermes_memory_pgvector.__file__).parent.parent)
    script = (
        f"import sys; sys.path.insert(0, {source!r})\n"
        "from hermes_memory_pgvector.server.binaries import find_binaries\n"
        "find_binaries()\n"
    )
    result = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert "ServerError" in result.stderr
    assert "hermes-pgvector up fetches one" in result.stderr


def test_a_disk_that_fills_up_during_creation_is_named_and_nothing_stays(home: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "bin").mkdir()
        initdb = Path(name) / "bin" / "initdb"
        initdb.write_text("#!/bin/sh\n[ \"$1\" = --show ] || { echo 'write: No space left on device'; exit 1; }\n")
        initdb.chmod(0o755)
        broken = Binaries(Path(name), "broken", "18.0")
        with pytest.raises(ServerError, match="the disk is full"):
            EmbeddedPostgres(home, binaries=broken).ensure_running(soon())
    assert not list(home.glob("postgres*/"))
    assert one(EmbeddedPostgres(home, extra_settings=FAST).ensure_running(soon()).runtime_dsn, "select 1") == 1


def test_a_start_that_fails_is_told_and_the_next_one_succeeds(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home, extra_settings={"shared_buffers": "900000GB"})
    with pytest.raises(ServerError, match=r"ended while starting: a setting is not valid; see .*postgres\.log"):
        server.ensure_running(soon())
    assert one(EmbeddedPostgres(used_home).ensure_running(soon()).runtime_dsn, "select 1") == 1


if IS_ROOT:
    # Only root can become another user or mount a small disk; an ordinary user has nothing here that could be tested.

    def test_another_local_user_does_not_get_in(open_home: Path) -> None:
        info = EmbeddedPostgres(open_home, extra_settings=FAST).ensure_running(soon())
        secret = (open_home / "secrets" / "hermes_owner.pgpass").read_text().strip().rpartition(":")[2]
        dsn = make_conninfo(info.owner_dsn, passfile="/dev/null", password=secret)
        script = (
            f"try:\n    psycopg.connect({dsn!r})\nexcept psycopg.OperationalError as error:\n    refused = str(error)\n"
            f"try:\n    os.listdir({str(open_home)!r})\n"
            "except PermissionError:\n    print(json.dumps({'error': refused}))\n"
        )
        assert "Permission denied" in answer(python(script, open_home, "nobody"))["error"]

    def test_a_home_of_another_user_stays_usable_for_that_user_after_root_was_there(open_home: Path) -> None:
        user = pwd.getpwnam("daemon")
        os.chown(open_home.parent, user.pw_uid, user.pw_gid)
        server = EmbeddedPostgres(open_home, extra_settings=FAST)
        run(server.ensure_running(soon()).owner_dsn, "create table kept as select 42 as n")
        assert Path(f"/proc/{pid_of(server)}").stat().st_uid == user.pw_uid
        read = (
            "with psycopg.connect(info.owner_dsn) as connection:\n"
            "    print(json.dumps({'n': connection.execute('select n::text from kept').fetchone()[0]}))\n"
        )
        assert answer(python(START + read, open_home, "daemon")) == {"n": "42"}
        assert server.stop(soon()) is True
        assert answer(python(START + read, open_home, "daemon")) == {"n": "42"}
        assert Path(f"/proc/{pid_of(server)}").stat().st_uid == user.pw_uid

    def test_binaries_that_the_servers_user_cannot_reach_are_published(
        home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = installed_binaries()[0]
        site = tmp_path / "closed"
        site.mkdir(mode=0o700)
        copied = site / original.package / original.folder.name
        shutil.copytree(original.folder, copied, symlinks=True)
        libraries = original.folder.parent.parent / f"{original.package}.libs"
        shutil.copytree(libraries, site / libraries.name, symlinks=True)
        with tempfile.TemporaryDirectory(prefix="hermes-test-") as public:
            Path(public).chmod(0o755)
            monkeypatch.setattr(accounts, "PUBLISHED", (Path(public) / "shared" / "binaries",))
            server = EmbeddedPostgres(
                home, binaries=Binaries(copied, original.package, original.version), extra_settings=FAST
            )
            for _ in range(2):
                assert one(server.ensure_running(soon()).owner_dsn, "select 1") == 1
                assert Path(f"/proc/{pid_of(server)}/exe").readlink().is_relative_to(public)
                server.stop(soon())
            assert len(list((Path(public) / "shared" / "binaries").iterdir())) == 1

    def test_a_disk_too_small_for_a_database_is_named(tmp_path: Path) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(tmp_path)], check=True)
        try:
            with pytest.raises(ServerError, match=r"The disk is full: .* needs 128 MB .* 4\d MB are free"):
                EmbeddedPostgres(tmp_path / "pgvector").ensure_running(soon())
        finally:
            subprocess.run(["umount", str(tmp_path)], check=True)


NAMELESS = """
import pwd
from hermes_memory_pgvector.provider import host_config as hostconfig
from hermes_memory_pgvector.errors import ServerError
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.config.settings import Settings
home = folder.parent
def say(home):
    agent = PgvectorMemoryProvider({"embed_url": "http://127.0.0.1:9/", "dsn": "host=127.0.0.1 port=9"})
    agent.initialize("s1", hermes_home=str(home), gateway_session_key="x", agent_context="primary")
    agent.sync_turn("When does the ferry to the outer islands leave today?", "", session_id="s1")
say(home.parent / "before")  # whatever is imported on the way is imported while this Python can be read
entry = pwd.getpwnam("daemon") if os.geteuid() == 0 else None
if entry is not None:
    binaries = executable_by(find_binaries(), Account(entry.pw_uid, entry.pw_gid, switches=True))
    os.chown(home, 54321, 54321)
    os.environ.pop("HOME")
    os.setgroups([]); os.setgid(54321); os.setuid(54321)
    try:
        EmbeddedPostgres(folder, binaries=binaries).ensure_running(Deadline.after(60))
        said = ""
    except ServerError as error:
        said = str(error)
else:
    said = "no entry in the system's user database"  # an ordinary user has a name and cannot lose it
say(home)
kept = sum(path.stat().st_size for path in (folder / "journal").iterdir())
print(json.dumps({"said": said, "kept": kept, "dumps": hostconfig.backup_paths(home, Settings())}), flush=True)
os._exit(0)
"""


def test_a_user_without_a_name_loses_no_write_and_hears_why_there_is_no_server(open_home: Path) -> None:
    told = json.loads(answer_text(python(NAMELESS, open_home)))
    assert "no entry in the system's user database" in told["said"]
    assert told["kept"] > 0
    assert told["dumps"] == []


def answer_text(result: subprocess.CompletedProcess[str]) -> str:
    """The last line of what a script printed."""
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]
