"""The embedded Postgres of one home: whichever process needs it creates, starts, adopts and stops it.

The server belongs to no process: it keeps running when its starter ends, and costs a few megabytes while idle.
Each start rewrites its settings; what an administrator sets with ALTER SYSTEM is kept and wins.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ServerError
from hermes_memory_pgvector.postgres.connect_failure import WRONG_PASSWORD
from hermes_memory_pgvector.postgres.conninfo import connect_problem
from hermes_memory_pgvector.server.accounts import account_for, executable_by, take_over_data
from hermes_memory_pgvector.server.binaries import Binaries, find_binaries, initialise, installed_binaries
from hermes_memory_pgvector.server.folder import PostgresFolder, Postmaster, restorable, ticks
from hermes_memory_pgvector.server.programs import (
    Account,
    launch_detached,
    processes_named,
    reachable,
    reason_in,
    refusal_in,
    run_program,
)

logger = logging.getLogger(__name__)

OWNER_ROLE = "hermes_owner"
RUNTIME_ROLE = "hermes"
OF_OUR_ROLE = re.compile(rf'(?:GRANT|REVOKE) [^";]+ (?:TO|FROM) (?:{RUNTIME_ROLE}|PUBLIC);')
DATABASE = "hermes_memory"
RESTORE_SECONDS = 24 * 3600.0
PLAIN = ("--no-owner", "--no-publications", "--no-subscriptions")
"""What stays out of a dump, and out of what is restored from one: it may name roles that are not there."""
SMALLEST_DISK_BYTES = 128 * 1024 * 1024
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
SETTINGS = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "min_wal_size": "80MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "password_encryption": "scram-sha-256",
    "unix_socket_permissions": "0700",
    # Files instead of /dev/shm, which is tiny in containers and is emptied at logout on some systems.
    "dynamic_shared_memory_type": "mmap",
    # The log is about the server, never about what is stored: no statements, no values, no failing rows.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
    "log_connections": "off",
    "log_autovacuum_min_duration": "-1",
}


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """How to reach the server; the strings name password files instead of containing passwords."""

    owner_dsn: str
    runtime_dsn: str
    database: str


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of the embedded server, for operators."""

    running: bool
    pid: int | None
    address: str
    """Directory of the socket."""
    version: str | None
    """Major version that created the data; None before the first start."""
    binaries_version: str | None


class EmbeddedPostgres:
    """One server per folder, shared by all processes of the home; many may call each method at once."""

    def __init__(
        self,
        folder: Path,
        *,
        binaries: Binaries | None = None,
        extra_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = PostgresFolder(folder)
        self._binaries = binaries
        self._settings = {**SETTINGS, **(extra_settings or {})}

    def ensure_running(self, deadline: Deadline) -> ConnectionInfo:
        """Create the server if it does not exist, start it if it is not running; returns how to reach it."""
        with _as_server_error():
            running = self.folder.answering(deadline)
            if running is not None and all(self.folder.password(role) for role in (OWNER_ROLE, RUNTIME_ROLE)):
                self.folder.trim_log()
                return self._connection_info(running)
            self.folder.make()
            with self.folder.exclusive(deadline):
                return self._bring_up(deadline)

    def stop(self, deadline: Deadline, *, mode: Literal["smart", "fast", "immediate"] = "fast") -> bool:
        """Stop the server and wait until all of it is gone; False when none was running."""
        if not self.folder.path.is_dir():
            return False
        with _as_server_error(), self.folder.exclusive(deadline):
            return self._stop(deadline, mode)

    def replace_data(self, dump: Path, deadline: Deadline) -> Path | None:
        """Put the database of a dump in the place of the data; where the old data is now, None when there was none.

        The server does not run afterwards. Whoever is killed on the way leaves the old data in its place or beside it.
        """
        with _as_server_error():
            self.folder.make()
            with self.folder.exclusive(deadline):
                self.folder.ensure_passwords(OWNER_ROLE, RUNTIME_ROLE)
                self._stop(deadline, "fast")
                alive = self.folder.claim(deadline)
                try:
                    self.folder.clear_leftovers()
                    account = account_for(self.folder.path, self.folder.data)
                    step = _Step(
                        executable_by(self._binaries or find_binaries(None), account), account, alive, deadline
                    )
                    new = self._built(step, dump)
                    # Whoever is killed here leaves `new` to the next start, which clears it.
                    aside = self.folder.put_data_aside()
                    self.folder.accept_data(new)
                finally:
                    os.close(alive)
        return aside

    def _stop(self, deadline: Deadline, mode: Literal["smart", "fast", "immediate"]) -> bool:
        if not self.folder.is_occupied():
            return False
        self._end(STOP_SIGNALS[mode], deadline)
        self.folder.clear_sockets()
        return True

    def is_there(self) -> bool:
        """Whether a server runs, also one that is too busy to answer."""
        with _as_server_error():
            return self.folder.data.is_dir() and self.folder.is_occupied()

    def status(self) -> ServerStatus:
        """The state, without starting anything."""
        with _as_server_error():
            running = self.folder.answering(Deadline.after(1))
            major = self.folder.data_major()
            installed = (self._binaries,) if self._binaries else installed_binaries()
            fitting = next((each for each in installed if each.major == major), installed[0] if installed else None)
            return ServerStatus(
                running=running is not None,
                pid=running.pid if running else None,
                address=str(self.folder.socket_path().parent),
                version=str(major) if major else None,
                binaries_version=fitting.version if fitting else None,
            )

    def _bring_up(self, deadline: Deadline) -> ConnectionInfo:
        """With the exclusive lock held: adopt a running server, or start one."""
        has_new_passwords = self.folder.ensure_passwords(OWNER_ROLE, RUNTIME_ROLE)
        if self.folder.is_occupied():
            running = self._wait_until_steady(deadline)
            if running is not None and not has_new_passwords:
                return self._connection_info(running)
            self._end(signal.SIGINT, deadline)
        # The second round sets the passwords again: data and secrets may come from different backups.
        for sets_passwords in (has_new_passwords, True):
            log_start = self._start(deadline, sets_passwords=sets_passwords)
            info = self._connection_info(self._started(log_start, deadline))
            if all(_accepts_login(dsn, deadline) for dsn in (info.owner_dsn, info.runtime_dsn)):
                return info
            self._end(signal.SIGINT, deadline)
        raise ServerError(f"The embedded Postgres refuses the passwords it was given; see {self.folder.log}")

    def _start(self, deadline: Deadline, *, sets_passwords: bool) -> int:
        """Prepare the data and launch the server; returns where its part of the log begins."""
        alive = self.folder.claim(deadline)
        try:
            self.folder.clear_leftovers()
            account = account_for(self.folder.path, self.folder.data)
            if self.folder.data.is_dir():
                take_over_data(self.folder.data, account)
                self.folder.close_data()
            major = self.folder.data_major()
            binaries = executable_by(self._binaries or find_binaries(major), account)
            step = _Step(binaries, account, alive, deadline)
            if not self.folder.data.exists():
                self._create(step)
            elif major != binaries.major:
                raise ServerError(
                    f"The data in {self.folder.data} was made by Postgres {major}, but the installed server is "
                    f"Postgres {binaries.version}; install a server package with Postgres {major} to go on, "
                    "or move the folder aside to begin with an empty database"
                )
            elif sets_passwords:
                self._run_sql(self.folder.data, self._role_statements(), step)
            return self._launch(step)
        finally:
            # From here on the server holds the lock: it is free again when its last process has ended.
            os.close(alive)

    def _create(self, step: _Step) -> None:
        """Create the data, from the home's dump if it has one."""
        dump = restorable(self.folder.path)
        new = self._built(step, dump)
        if dump is not None:
            logger.warning("the embedded database was restored from %s", dump)
        self.folder.accept_data(new)

    def _built(self, step: _Step, dump: Path | None) -> Path:
        """A new cluster under another name, with roles, database and what a dump holds."""
        free, needed = shutil.disk_usage(self.folder.path).free >> 20, SMALLEST_DISK_BYTES >> 20
        if free < needed:
            raise ServerError(
                f"The disk is full: a new database needs {needed} MB in {self.folder.path}, {free} MB are free"
            )
        new = self.folder.new_data()
        try:
            if step.account.switches:
                os.chown(new, step.account.uid, step.account.gid)
            syncs = self._settings.get("fsync") != "off"
            initialise(new, OWNER_ROLE, step.binaries, step.account, step.deadline, inherit=(step.alive,), syncs=syncs)
            self.folder.write_configuration(new, self._settings, step.account)
            database = (
                f"CREATE DATABASE {DATABASE};",
                f"REVOKE ALL ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC;",
                f"GRANT CONNECT ON DATABASE {DATABASE} TO {RUNTIME_ROLE};",
            )
            self._run_sql(new, (*self._role_statements(), *database), step)
            if dump is not None:
                self._restore(new, dump, step)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        return new

    def _restore(self, new: Path, dump: Path, step: _Step) -> None:
        """Fill new data from a dump, using a server nobody else can reach, so the data appears complete."""
        # Others wait for the lock meanwhile; how long this takes depends only on the dump.
        deadline = Deadline.after(RESTORE_SECONDS)
        sockets = Path(tempfile.mkdtemp(prefix="hermes-pgvector-"))
        me = Account(os.geteuid(), os.getegid(), switches=False)
        try:
            if step.account.switches:
                os.chown(sockets, step.account.uid, step.account.gid)
            self._launch_at(new, sockets, replace(step, deadline=deadline))
            complaint = f"The server that restores {dump} was not ready in time"
            for _ in ticks(deadline, complaint):
                running = self.folder.postmaster(new)
                if running is not None and running.is_ready:
                    break
            assert running is not None
            try:
                passfile = str(self.folder.password_file(OWNER_ROLE))
                dsn = make_conninfo("", host=str(sockets), dbname=DATABASE, user=OWNER_ROLE, passfile=passfile)
                program, whole = step.binaries.program("pg_restore"), ("--single-transaction", "--exit-on-error")
                command = [program, *whole, *PLAIN, "--no-privileges", f"--dbname={dsn}", str(dump)]
                outcome = run_program(command, me, deadline)
                if outcome.returncode == 0:
                    # Rights come afterwards, and only those of our role: the others are not here, and a statement
                    # that names them takes along the rest of its entry.
                    listed = run_program([program, "--list", str(dump)], me, deadline).output.splitlines()
                    rights = sockets / "rights"
                    rights.write_text("\n".join(line for line in listed if " ACL " in line), encoding="utf-8")
                    script = run_program([program, f"--use-list={rights}", "--file=-", str(dump)], me, deadline).output
                    with psycopg.connect(dsn) as owner:
                        for line in filter(OF_OUR_ROLE.fullmatch, script.splitlines()):
                            owner.execute(line.encode())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(running.pid, signal.SIGINT)
                for _ in ticks(deadline, "The server that restores did not stop in time"):
                    if not processes_named(self.folder.cluster_name(new), only=running.pid):
                        break
            if outcome.returncode != 0:
                raise ServerError(
                    f"The dump {dump} could not be restored ({refusal_in(outcome.output)}); "
                    "move it away to begin with an empty database"
                )
        finally:
            shutil.rmtree(sockets, ignore_errors=True)

    def _run_sql(self, data: Path, statements: tuple[str, ...], step: _Step) -> None:
        """Run statements in single-user mode, so that nobody can connect before the passwords are set."""
        with reachable(data, step.account) as (path, descriptors):
            command = [step.binaries.program("postgres"), "--single", "-D", path, "-c", "exit_on_error=on"]
            command += ["-c", f"cluster_name={self.folder.cluster_name(data)}", "postgres"]
            text = "\n".join(statements) + "\n"
            outcome = run_program(command, step.account, step.deadline, stdin=text, inherit=(step.alive, *descriptors))
        if outcome.returncode != 0:
            raise ServerError(f"The database could not be prepared: {reason_in(outcome.output)}")

    def _role_statements(self) -> tuple[str, ...]:
        missing = f"SELECT FROM pg_roles WHERE rolname = '{RUNTIME_ROLE}'"
        limits = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
        return (
            f"DO $$BEGIN IF NOT EXISTS ({missing}) THEN CREATE ROLE {RUNTIME_ROLE}; END IF; END$$;",
            f"ALTER ROLE {OWNER_ROLE} LOGIN SUPERUSER PASSWORD '{self.folder.password(OWNER_ROLE)}';",
            f"ALTER ROLE {RUNTIME_ROLE} LOGIN {limits} PASSWORD '{self.folder.password(RUNTIME_ROLE)}';",
        )

    def _launch(self, step: _Step) -> int:
        self.folder.write_configuration(self.folder.data, self._settings, step.account)
        self.folder.trim_log()
        return self._launch_at(self.folder.data, self.folder.make_socket_directory(step.account), step)

    def _launch_at(self, data: Path, sockets: Path, step: _Step) -> int:
        """Start a server on a socket; returns where its part of the log begins."""
        account = step.account
        log = self.folder.open_log()
        try:
            log_start = os.fstat(log).st_size
            with reachable(data, account) as (path, one), reachable(sockets, account) as (socket_path, two):
                quoted = socket_path.replace('"', '""')
                where = [f'unix_socket_directories="{quoted}"', "listen_addresses=", "port=5432"]
                command = [step.binaries.program("postgres"), "-D", path]
                for setting in (f"cluster_name={self.folder.cluster_name(data)}", *where):
                    command += ["-c", setting]
                launch_detached(command, account, step.deadline, log, (step.alive, *one, *two))
            return log_start
        finally:
            os.close(log)

    def _started(self, log_start: int, deadline: Deadline) -> Postmaster:
        log = self.folder.log
        for _ in ticks(deadline, f"The embedded Postgres was not ready in time; see {log}"):
            running = self.folder.answering(deadline)
            if running is not None:
                return running
            if not self.folder.is_occupied():
                break
        with log.open("rb") as stream:
            stream.seek(log_start)
            text = stream.read(65536).decode(errors="replace")
        raise ServerError(f"The embedded Postgres ended while starting: {reason_in(text)}; see {log}")

    def _wait_until_steady(self, deadline: Deadline) -> Postmaster | None:
        """Wait until a server has finished starting or stopping; None when it can no longer be used."""
        headless_since: float | None = None
        for _ in ticks(deadline, f"The embedded Postgres was not ready in time; see {self.folder.log}"):
            running = self.folder.answering(deadline)
            if running is not None or not self.folder.is_occupied():
                return running
            known = self.folder.postmaster()
            if known and known.is_ready and not self.folder.socket_path().exists():
                return None  # the socket was deleted: the server still runs, but nobody can reach it
            if self.folder.own_pid() is not None:
                headless_since = None
            elif headless_since is None:
                headless_since = time.monotonic()
            elif time.monotonic() - headless_since > 1:
                return None  # killed: only its children are left
        return None

    def _end(self, number: signal.Signals, deadline: Deadline) -> None:
        """Stop the server and wait until its last process is gone."""
        pid = self.folder.own_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        os.close(self.folder.claim(deadline))
        for _ in ticks(deadline, "The embedded Postgres did not stop in time"):
            if self.folder.own_pid() is None:
                return

    def _connection_info(self, running: Postmaster) -> ConnectionInfo:
        def dsn(role: str) -> str:
            where: dict[str, str | int] = {"host": str(self.folder.socket_path().parent), "port": running.port}
            if pq.version() >= 160000:
                # Somebody who takes over the address gets no password from us, not even a hashed one.
                where["require_auth"] = "scram-sha-256"
            if "PGPASSWORD" in os.environ:
                # libpq takes it before any password file, and it is meant for another server.
                where["password"] = self.folder.password(role) or ""
            return make_conninfo("", **where, dbname=DATABASE, user=role, passfile=str(self.folder.password_file(role)))

        return ConnectionInfo(dsn(OWNER_ROLE), dsn(RUNTIME_ROLE), DATABASE)


@dataclass(frozen=True, slots=True)
class _Step:
    """What every program that works on the data needs."""

    binaries: Binaries
    account: Account
    alive: int
    deadline: Deadline


def _accepts_login(dsn: str, deadline: Deadline) -> bool:
    """Whether the password is right; later connections report any other problem."""
    problem = connect_problem(dsn, deadline.remaining())
    return problem is None or problem.kind != WRONG_PASSWORD


@contextlib.contextmanager
def _as_server_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ServerError("The embedded Postgres cannot be used: the disk is full") from error
        where = f" ({error.filename})" if isinstance(error.filename, str) else ""
        raise ServerError(f"The embedded Postgres cannot be used: {error.strerror}{where}") from error
