"""The folder of an embedded Postgres: its files, its locks, and what they say about the server.

`checkpoints/postgres.sock/` is the data, `secrets/` holds one password file per role, `postgres.log` is bounded. Two
locks decide who may do what; the kernel releases them, so they never go stale. The one process that creates, starts or
stops the server holds `postgres.lock`; every process of the running server inherits and holds `postgres.alive`.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector import files, machine
from hermes_memory_pgvector.config.home import ID_NAME, identity, root_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DeadlineExceeded, ServerError
from hermes_memory_pgvector.server.programs import Account, processes_named

logger = logging.getLogger(__name__)

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PREFIX = "run-"
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

# Copying the files of a running server makes a torn database, or fails when one of them vanishes. The host's backup
# skips folders of the first name at any depth; its copy of a profile skips whatever ends like the second.
# `host_config.backup_paths` gives the backup a dump instead.
SHELTER_NAME = "checkpoints"
DATA_NAME = f"{SHELTER_NAME}/postgres.sock"
REPLACED = "replaced-"
"""What a restore keeps aside is called so."""
NEW_PREFIX, NEW_SUFFIX = "new-", ".sock"
# In the user's home folder: theirs alone, the same in every service and session, and outside hermes homes.
PERSONAL_NAME = ".hermes-pgvector"


class Postmaster(NamedTuple):
    """What the server writes about itself into its pid file."""

    pid: int
    port: int
    is_ready: bool


class PostgresFolder:
    """All files of one embedded server; starts and runs nothing."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - absolute, but symbolic links stay as they are
        self.log = self.path / "postgres.log"
        self._shelter = self.path / SHELTER_NAME
        self._recorded_sockets = self.path / "socket-directory"

    @property
    def data(self) -> Path:
        """The cluster's directory."""
        return self.path / DATA_NAME

    def make(self) -> None:
        """Create the folder, private; root gives it to the owner of the home."""
        if not self.path.is_dir():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
                files.give(self.path, files.owner_of(self.path.parent))

    def new_data(self) -> Path:
        """An empty directory in which to build a cluster before it becomes the data."""
        self._private_directory(self._shelter, files.owner_of(self.path))
        return Path(tempfile.mkdtemp(prefix=NEW_PREFIX, suffix=NEW_SUFFIX, dir=self._shelter))

    def accept_data(self, new: Path) -> None:
        """Make a complete cluster the data, in one step."""
        new.rename(self.data)
        files.sync_folder(self.data.parent)

    def put_data_aside(self) -> Path | None:
        """Keep the data of a stopped server under another name, for other data to take its place; None without data."""
        data = self.data
        if not data.is_dir():
            return None
        aside = data.with_name(f"{REPLACED}{time.time_ns()}{NEW_SUFFIX}")
        data.rename(aside)
        files.sync_folder(aside.parent)
        return aside

    # -- locks

    @contextlib.contextmanager
    def exclusive(self, deadline: Deadline) -> Iterator[None]:
        """Be the only process that creates, starts or stops the server."""
        lock = self._open_lock("postgres.lock")
        try:
            for _ in ticks(deadline, "Another process is still busy with the embedded Postgres"):
                if _locks(lock, fcntl.LOCK_EX):
                    break
            yield
        finally:
            os.close(lock)

    def claim(self, deadline: Deadline) -> int:
        """Wait until no process of an earlier server is left; returns the lock that the next server inherits."""
        alive = self._open_lock("postgres.alive")
        try:
            began = time.monotonic()
            for _ in ticks(deadline, "Processes of an earlier embedded Postgres are still running"):
                if _locks(alive, fcntl.LOCK_EX):
                    break
                if time.monotonic() - began > 2 and self.data.exists() and self.own_pid() is None:
                    # Their postmaster is dead, so they serve nobody; a busy one would notice only after its query.
                    for orphan in processes_named(self.cluster_name(self.data)):
                        if self._works_here(orphan) is False:
                            continue
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
        files.give(lock, files.owner_of(self.path))
        return lock

    # -- the server as its files show it

    def postmaster(self, data: Path | None = None) -> Postmaster | None:
        """The content of the pid file, which may be stale."""
        try:
            lines = ((data or self.data) / "postmaster.pid").read_text(errors="replace").splitlines()
            is_ready = len(lines) > 7 and lines[7].strip() == "ready"
            return Postmaster(abs(int(lines[0])), int(lines[3]), is_ready)
        except (FileNotFoundError, NotADirectoryError, ValueError, IndexError):
            return None

    def own_pid(self) -> int | None:
        """The pid in the pid file, if that process is alive and really serves this data."""
        known = self.postmaster()
        if known is None:
            return None
        works_here = self._works_here(known.pid)
        if works_here is None and processes_named(self.cluster_name(self.data), only=known.pid):
            return known.pid
        return known.pid if works_here else None

    def _works_here(self, pid: int) -> bool | None:
        """Whether the data is a process's working directory; None when the system does not say.

        The snapshot of a file system has the inodes, and so the cluster's name, of its original.
        """
        return machine.works_in(pid, self.data)

    def answering(self, deadline: Deadline) -> Postmaster | None:
        """The server of this very data, if it is running and accepts connections."""
        known = self.postmaster()
        # The files may be copied from another server, and the directory may belong to somebody else by now.
        if known is None or not known.is_ready or self.own_pid() is None:
            return None
        if not self._is_private(self.socket_path().parent):
            return None
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.settimeout(max(0.001, deadline.earlier(1).remaining()))
            connection.connect(os.fsencode(self.socket_path()))
            if machine.peer_uid(connection) not in (None, self.data.stat().st_uid):
                return None
            connection.sendall(HELLO)
            return known if connection.recv(1) in (b"N", b"S") else None
        return None

    @staticmethod
    def cluster_name(data: Path) -> str:
        """A name in the command line of this directory's processes; it survives a move of the home."""
        return f"hermes-{data.stat().st_ino:016x}"

    def data_major(self) -> int | None:
        """The major version that made the data; None when there is none."""
        try:
            return int((self.data / "PG_VERSION").read_text().strip())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def clear_leftovers(self) -> None:
        """Remove what killed processes left behind; only for the holder of both locks, when nothing runs."""
        for unfinished in self._shelter.glob(f"{NEW_PREFIX}*{NEW_SUFFIX}"):
            shutil.rmtree(unfinished, ignore_errors=True)
        self.clear_sockets()
        # That pid may belong to any other program by now, which Postgres would take for a server.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            (self.data / "postmaster.pid").unlink()
        if self.data.exists() and not (self.data / "global" / "pg_control").exists():
            ruin = self.path / f"postgres.unusable-{time.time_ns()}"
            self.data.rename(ruin)
            logger.warning(
                "%s is not a complete database; it was moved to %s and a new one is created", self.data, ruin.name
            )

    def close_data(self) -> None:
        """Close the data to others: Postgres refuses a directory that a copy has left open."""
        if self.data.stat().st_mode & 0o077:
            self.data.chmod(0o700)

    def clear_sockets(self) -> None:
        """Remove the socket of a server that has ended, and its directory if we created it."""
        directory = self._recorded_directory()
        if directory is None or not self._is_private(directory):
            return
        for stale in (directory / SOCKET_NAME, directory / f"{SOCKET_NAME}.lock"):
            with contextlib.suppress(OSError):
                stale.unlink()
        with contextlib.suppress(OSError):
            directory.rmdir()
            if directory.parent.name == PERSONAL_NAME:
                directory.parent.rmdir()

    # -- passwords

    def password_file(self, role: str) -> Path:
        """The password file of a role, in libpq's format."""
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
        owner = files.owner_of(self.path)
        self._private_directory(self.path / "secrets", owner)
        for role in missing:
            line = f"*:*:*:{role}:{secrets.token_urlsafe(32)}\n"
            files.replace(self.password_file(role), line.encode(), owner=owner)
        return bool(missing)

    # -- what the server reads and writes

    def write_configuration(self, data: Path, settings: Mapping[str, str], account: Account) -> None:
        """Write our settings and who may connect; what ALTER SYSTEM sets is in a file that Postgres reads later."""
        lines = []
        for name, value in settings.items():
            escaped = value.replace("\\", "\\\\").replace("'", "''")
            lines.append(f"{name} = '{escaped}'\n")
        text = "".join(lines).encode("utf-8", "surrogateescape")
        files.replace(data / "postgresql.conf", text, owner=account.owner)
        files.replace(data / "pg_hba.conf", AUTHENTICATION.encode(), owner=account.owner)

    def open_log(self) -> int:
        """Open the log for appending."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(self.log, flags, 0o600)
        files.give(log, files.owner_of(self.path))
        return log

    def trim_log(self) -> None:
        """Cut a long log down to its end; the server appends to it, so this does not disturb it."""
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
        """The path of the socket, now or after the start."""
        return (self._recorded_directory() or self.path) / SOCKET_NAME

    def make_socket_directory(self, account: Account) -> Path:
        """A private directory for the socket, outside of hermes homes: nothing that copies a home can copy a socket."""
        recorded = self._recorded_directory()
        if recorded is not None:
            with contextlib.suppress(OSError, ServerError):
                return self._private_directory(recorded, account.owner)
        made = self._personal_sockets(account) or self._temporary_sockets(account)
        note = f"{made}\n{self.data.stat().st_ino}\n".encode("utf-8", "surrogateescape")
        files.replace(self._recorded_sockets, note, owner=files.owner_of(self.path))
        return made

    def _recorded_directory(self) -> Path | None:
        """The socket directory noted at the last start; None when the note came with a copy of the folder."""
        try:
            directory, _, inode = (
                self._recorded_sockets.read_text(errors="surrogateescape").rstrip("\n").partition("\n")
            )
            return Path(directory) if int(inode) == self.data.stat().st_ino else None
        except (OSError, ValueError):
            return None

    def _personal_sockets(self, account: Account) -> Path | None:
        """A directory in the home folder of the hermes home's owner; None where there is no such folder."""
        owner = files.owner_of(self.path)
        personal = _home_of(owner[0])
        home = self.path.parent
        root = home.parent.parent if home.parent.name == "profiles" else home
        if personal is None or root.resolve() in (personal.resolve(), *personal.resolve().parents):
            return None
        folder = personal / PERSONAL_NAME
        if not _fits_socket(folder / f"{SOCKET_PREFIX}xxxxxxxx" / SOCKET_NAME):
            return None
        try:
            self._private_directory(folder, owner)
            made = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir=folder))
            files.give(made, account.owner)
        except (OSError, ServerError):
            return None
        return made

    def _temporary_sockets(self, account: Account) -> Path:
        example = Path(tempfile.gettempdir(), "hermes-pgvector-xxxxxxxx", SOCKET_NAME)
        short = example.parent.parent if _fits_socket(example) else Path("/tmp")  # noqa: S108 - mkdtemp is private
        made = Path(tempfile.mkdtemp(prefix="hermes-pgvector-", dir=short))
        files.give(made, account.owner)
        return made

    def _is_private(self, directory: Path) -> bool:
        """Whether a directory is ours and nobody else can put a socket into it."""
        try:
            status = directory.lstat()
            owners = (os.geteuid(), self.path.stat().st_uid, self.data.stat().st_uid)
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o077

    @staticmethod
    def _private_directory(directory: Path, owner: files.Owner) -> Path:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
            files.give(directory, owner)
        status = directory.lstat()
        uid, _ = owner
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (uid, os.geteuid()):
            raise ServerError(f"{directory} is not a directory of uid {uid}; move it away")
        if status.st_uid != uid:
            files.give(directory, owner)
        if status.st_mode & 0o077:
            directory.chmod(0o700)
        return directory


def server_folder(home: Path, settings: Settings) -> Path:
    """The folder of the embedded server a home uses: a profile shares that of the root home.

    A profile has one of its own when it was told to, when it already has data, or when what lies above it is not a
    hermes home of the same user.
    """
    own = data_folder(home)
    root = root_of(home)
    if root == home or settings.own_server or has_data(own):
        return own
    return data_folder(root)


def has_data(folder: Path) -> bool:
    """Whether an embedded database was ever created in a plugin folder, or came with a backup."""
    return PostgresFolder(folder).data.is_dir() or restorable(folder) is not None


def dump_path(home_id: str) -> Path | None:
    """Where to put a home's dump for the host's backup: in the user's home folder, outside the hermes home."""
    try:
        return Path.home() / PERSONAL_NAME / f"{home_id}.dump"
    except RuntimeError:
        return None  # a user without an entry in the system's user database and without HOME


def restorable(folder: Path) -> Path | None:
    """The dump that a home without data starts from: its own, or that of the home it was restored from.

    None beside the original: a cloned profile is a new workspace, not an older state of the one it was cloned from.
    """
    if not (folder / ID_NAME).exists():
        return None
    known = identity(folder.parent)
    if known.original:
        return None
    for name in (known.id, *known.predecessors):
        path = dump_path(name)
        with contextlib.suppress(OSError):
            if path is not None and stat.S_ISREG((status := path.lstat()).st_mode) and status.st_uid == os.geteuid():
                return path
    return None


def ticks(deadline: Deadline, complaint: str) -> Iterator[None]:
    """Yield every few milliseconds; raise the complaint when the deadline is over."""
    while True:
        yield
        if deadline.is_over:
            raise DeadlineExceeded(complaint)
        time.sleep(min(0.02, deadline.remaining()))


def _home_of(uid: int) -> Path | None:
    """The home folder of a user, if it really belongs to them."""
    candidates = []
    if uid == os.geteuid() and os.environ.get("HOME"):
        candidates.append(Path(os.environ["HOME"]))
    with contextlib.suppress(KeyError):
        candidates.append(Path(pwd.getpwuid(uid).pw_dir))
    for folder in candidates:
        with contextlib.suppress(OSError):
            status = folder.stat()
            if folder.is_absolute() and stat.S_ISDIR(status.st_mode) and status.st_uid == uid:
                return folder
    return None


def _fits_socket(path: Path) -> bool:
    """Whether clients can use this path: the system limits its length, and libpq takes a comma for a list."""
    return len(os.fsencode(path)) <= LONGEST_SOCKET_PATH and "," not in str(path)


def _locks(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
