"""The folder of an embedded Postgres: its files, its locks, and what they tell about the server.

`postgres/` is the data, `secrets/` holds one password file per role, `postgres.log` is bounded. Two locks that the
kernel releases by itself decide who may do what, so no file can go stale: `postgres.lock` is held by the one process
that creates, starts or stops; `postgres.alive` is inherited and held by every process of the running server.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DeadlineExceeded, ServerError
from hermes_memory_pgvector.postgres_binaries import Account, processes_named

logger = logging.getLogger(__name__)

SOCKET_NAME = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 100
LONGEST_LOG_BYTES = 4 * 1024 * 1024
KEPT_LOG_BYTES = 256 * 1024
# SSLRequest: every Postgres answers it with one byte, before any login and without a line in its log.
HELLO = bytes.fromhex("0000000804d2162f")
AUTHENTICATION = """\
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
host all all ::1/128 scram-sha-256
"""

# The host's backup leaves out folders of this name. It must leave this one out: files copied from under a running
# server make a torn database that looks like a backup. `hostconfig.backup_paths` gives it a dump instead.
DATA_NAME = "checkpoints"


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What the server writes about itself into its pid file."""

    pid: int
    port: int
    uses_socket: bool
    is_ready: bool


class PostgresFolder:
    """Everything about one embedded server that lies in files; starts and runs nothing."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - absolute, but symbolic links stay as they are
        self.data = self.path / DATA_NAME
        self.log = self.path / "postgres.log"
        self._recorded_sockets = self.path / "socket-directory"

    def make(self) -> None:
        """Create the folder, private; root gives it to the owner of the home around it."""
        if not self.path.is_dir():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
                _give(self.path, self.path.parent.stat())

    # -- locks

    @contextlib.contextmanager
    def exclusive(self, deadline: Deadline) -> Iterator[None]:
        """Be the only one who creates, starts or stops."""
        lock = self._open_lock("postgres.lock")
        try:
            for _ in ticks(deadline, "Another process is still busy with the embedded Postgres"):
                if _locks(lock, fcntl.LOCK_EX):
                    break
            yield
        finally:
            os.close(lock)

    def claim(self, deadline: Deadline) -> int:
        """Wait until no process of an earlier server is left; the descriptor holds the place for the next one."""
        alive = self._open_lock("postgres.alive")
        try:
            began = time.monotonic()
            for _ in ticks(deadline, "Processes of an earlier embedded Postgres are still running"):
                if _locks(alive, fcntl.LOCK_EX):
                    break
                if time.monotonic() - began > 2 and self.data.exists() and self.own_pid() is None:
                    # Their postmaster is dead, so they serve nobody; a busy one notices only after its query.
                    for orphan in processes_named(self.cluster_name(self.data)):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(orphan, signal.SIGQUIT)
        except BaseException:
            os.close(alive)
            raise
        return alive

    def is_occupied(self) -> bool:
        """Whether any process of a server is left, or one runs that was started by hand."""
        lock = self._open_lock("postgres.alive")
        try:
            return not _locks(lock, fcntl.LOCK_SH) or self.own_pid() is not None
        finally:
            os.close(lock)

    def _open_lock(self, name: str) -> int:
        lock = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        _give(lock, self.path.stat())
        return lock

    # -- the server as its files show it

    def postmaster(self) -> Postmaster | None:
        """The content of the pid file, which may be stale."""
        try:
            lines = (self.data / "postmaster.pid").read_text(errors="replace").splitlines()
            is_ready = len(lines) > 7 and lines[7].strip() == "ready"
            return Postmaster(abs(int(lines[0])), int(lines[3]), bool(lines[4].strip()), is_ready)
        except (FileNotFoundError, NotADirectoryError, ValueError, IndexError):
            return None

    def own_pid(self) -> int | None:
        """The pid in the pid file, if that process is alive and really serves this data."""
        known = self.postmaster()
        if known is None:
            return None
        if processes_named(self.cluster_name(self.data), only=known.pid):
            return known.pid
        with contextlib.suppress(OSError):
            if os.path.samestat(Path(f"/proc/{known.pid}/cwd").stat(), self.data.stat()):
                return known.pid
        return None

    def answering(self, deadline: Deadline) -> Postmaster | None:
        """The server, if it is there and takes connections."""
        known = self.postmaster()
        # A port, unlike a socket in a private directory, may meanwhile belong to somebody else.
        if known is None or not known.is_ready or not (known.uses_socket or self.is_occupied()):
            return None
        with (
            socket.socket(socket.AF_UNIX if known.uses_socket else socket.AF_INET) as connection,
            contextlib.suppress(OSError),
        ):
            connection.settimeout(max(0.001, deadline.earlier(1).remaining()))
            connection.connect(os.fsencode(self.socket_path()) if known.uses_socket else ("127.0.0.1", known.port))
            connection.sendall(HELLO)
            return known if connection.recv(1) in (b"N", b"S") else None
        return None

    @staticmethod
    def cluster_name(data: Path) -> str:
        """A name that processes of this very directory carry in their command line; it survives a move of the home."""
        return f"hermes-{data.stat().st_ino:016x}"

    def data_major(self) -> int | None:
        """The major version that made the data; None when there is none."""
        try:
            return int((self.data / "PG_VERSION").read_text().strip())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def data_bytes(self) -> int:
        """Disk space that the data takes."""
        total = 0
        for parent, _, names in os.walk(self.data):
            for name in names:
                with contextlib.suppress(OSError):
                    total += (Path(parent) / name).lstat().st_blocks * 512
        return total

    def clear_leftovers(self) -> None:
        """Remove what killed processes left; only for the holder of both locks, when nothing runs."""
        for unfinished in self.path.glob("postgres.new-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        # The pid in such a file may by now belong to any other program, which Postgres would take for a server.
        sockets = self.socket_path()
        for stale in (self.data / "postmaster.pid", sockets, sockets.with_name(f"{SOCKET_NAME}.lock")):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                stale.unlink()
        if self.data.exists() and not (self.data / "global" / "pg_control").exists():
            ruin = self.path / f"postgres.unusable-{time.time_ns()}"
            self.data.rename(ruin)
            logger.warning(
                "%s is not a complete database; it is kept as %s and a new one is made", self.data, ruin.name
            )

    # -- passwords

    def password_file(self, role: str) -> Path:
        """The file in libpq's format from which clients take the password of a role."""
        return self.path / "secrets" / f"{role}.pgpass"

    def password(self, role: str) -> str | None:
        """The password of a role; None when its file is missing, damaged or open to others."""
        try:
            file = self.password_file(role)
            if file.stat().st_mode & 0o077:
                return None
            match = re.fullmatch(rf"\*:\*:\*:{role}:([\w-]{{43}})\n", file.read_text(errors="replace"), re.ASCII)
            return match.group(1) if match else None
        except FileNotFoundError:
            return None

    def ensure_passwords(self, *roles: str) -> bool:
        """Write a new random password for each role that has none; True when any was written."""
        missing = [role for role in roles if self.password(role) is None]
        home = self.path.stat()
        self._private_directory(self.path / "secrets", home)
        for role in missing:
            write_whole(self.password_file(role), f"*:*:*:{role}:{secrets.token_urlsafe(32)}\n", home)
        return bool(missing)

    # -- what the server reads and writes

    def write_configuration(self, data: Path, settings: Mapping[str, str], account: Account) -> None:
        """Write our settings and who may connect; ALTER SYSTEM has a file of its own, which is read later and wins."""
        lines = []
        for name, value in settings.items():
            escaped = value.replace("\\", "\\\\").replace("'", "''")
            lines.append(f"{name} = '{escaped}'\n")
        write_whole(data / "postgresql.conf", "".join(lines), account)
        write_whole(data / "pg_hba.conf", AUTHENTICATION, account)

    def open_log(self) -> int:
        """The log, for appending."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(self.log, flags, 0o600)
        _give(log, self.path.stat())
        return log

    def trim_log(self) -> None:
        """Cut a long log down to its end; the server appends, so it goes on undisturbed."""
        log = self.open_log()
        try:
            size = os.fstat(log).st_size
            if size > LONGEST_LOG_BYTES:
                end = os.pread(log, KEPT_LOG_BYTES, size - KEPT_LOG_BYTES)
                os.ftruncate(log, 0)
                os.write(log, end)
        finally:
            os.close(log)

    def socket_path(self) -> Path:
        """Where the socket is, or will be."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return Path(self._recorded_sockets.read_text().rstrip("\n")) / SOCKET_NAME
        # Backups by the host leave out directories of this name, and a socket cannot be archived.
        return self.path / ".cache" / SOCKET_NAME

    def make_socket_directory(self, account: Account) -> Path:
        """A private directory for the socket: in the folder, or elsewhere when a socket cannot be there."""
        recorded = self.socket_path().parent
        self._recorded_sockets.unlink(missing_ok=True)
        inside = self.socket_path()
        if _fits_socket(inside):
            return self._private_directory(inside.parent, account)
        with contextlib.suppress(FileNotFoundError, ServerError):
            if recorded != inside.parent:
                self._private_directory(recorded, account, create=False)
                write_whole(self._recorded_sockets, f"{recorded}\n", self.path.stat())
                return recorded
        example = Path(tempfile.gettempdir(), "hermes-pgvector-xxxxxxxx", SOCKET_NAME)
        short = example.parent.parent if _fits_socket(example) else Path("/tmp")  # noqa: S108 - mkdtemp is private
        recorded = Path(tempfile.mkdtemp(prefix="hermes-pgvector-", dir=short))
        _give(recorded, account)
        write_whole(self._recorded_sockets, f"{recorded}\n", self.path.stat())
        return recorded

    @staticmethod
    def _private_directory(directory: Path, owner: Account | os.stat_result, *, create: bool = True) -> Path:
        if create:
            with contextlib.suppress(FileExistsError):
                directory.mkdir(mode=0o700)
                _give(directory, owner)
        status = directory.lstat()
        uid = owner.uid if isinstance(owner, Account) else owner.st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (uid, os.geteuid()):
            raise ServerError(f"{directory} is not a directory of uid {uid}; move it away")
        if status.st_uid != uid:
            _give(directory, owner)
        if status.st_mode & 0o077:
            directory.chmod(0o700)
        return directory


def ticks(deadline: Deadline, complaint: str) -> Iterator[None]:
    """Give a turn every few milliseconds, and raise the complaint when the deadline is over."""
    while True:
        yield
        if deadline.is_over:
            raise DeadlineExceeded(complaint)
        time.sleep(min(0.02, deadline.remaining()))


def write_whole(path: Path, text: str, owner: Account | os.stat_result) -> None:
    """Replace a private file by a new one, durably: readers see the old content or the new, never a part."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        # Never through an existing name: in a directory of another user it could lead anywhere.
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(file, "w", encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123 - a descriptor
            _give(file, owner)
            stream.write(text)
            stream.flush()
            os.fsync(file)
        new.rename(path)
        sync_directory(path.parent)
    finally:
        new.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make renames in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give(file: Path | int, owner: Account | os.stat_result) -> None:
    """As root, hand a file that we made to the user whose folder or server it belongs to."""
    if os.geteuid() == 0:
        uid, gid = (owner.uid, owner.gid) if isinstance(owner, Account) else (owner.st_uid, owner.st_gid)
        os.chown(file, uid, gid)


def _fits_socket(path: Path) -> bool:
    """Whether clients can name this socket: the system bounds its length, and libpq takes a comma for a list."""
    return len(os.fsencode(path)) <= LONGEST_SOCKET_PATH and "," not in str(path)


def _locks(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
