"""A consistent copy of the embedded database as one file, for the host's backup.

While the server runs, its files change all the time; only pg_dump gets a consistent copy.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ServerError
from hermes_memory_pgvector.postgres.conninfo import split_password
from hermes_memory_pgvector.server.binaries import find_binaries
from hermes_memory_pgvector.server.programs import Account, reason_in, run_program
from hermes_memory_pgvector.server.server import ConnectionInfo, EmbeddedPostgres

STOP_SECONDS = 30.0


@contextlib.contextmanager
def running(folder: Path, deadline: Deadline) -> Iterator[ConnectionInfo]:
    """The folder's server, started if it does not run, and stopped again afterwards if we started it."""
    server = EmbeddedPostgres(folder)
    was_running = server.status().running
    info = server.ensure_running(deadline)
    try:
        yield info
    finally:
        if not was_running:
            # If another process needs it meanwhile, that process starts it again.
            server.stop(Deadline.after(STOP_SECONDS))


def dump_database(folder: Path, info: ConnectionInfo, target: Path, deadline: Deadline, snapshot: str = "") -> None:
    """Write the database of a running server to a file, as a snapshot shows it or as it is now."""
    program = find_binaries(int(EmbeddedPostgres(folder).status().version or 0)).program("pg_dump")
    # Every user of the machine sees a command line: pg_dump finds the password in its file.
    login, _ = split_password(info.owner_dsn)
    command = [program, "--format=custom", f"--file={target}", f"--dbname={login}"]
    me = Account(os.geteuid(), os.getegid(), switches=False)
    done = run_program([*command, *([f"--snapshot={snapshot}"] if snapshot else [])], me, deadline)
    if done.returncode != 0:
        raise ServerError(f"pg_dump ended with code {done.returncode} ({reason_in(done.output)})")


def dump_embedded(folder: Path, target: Path, deadline: Deadline) -> bool:
    """Write a dump of the folder's database to `target` in one step; False when there is none."""
    server = EmbeddedPostgres(folder)
    if server.status().version is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A restored backup may be readable by everybody.
    target.parent.chmod(0o700)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-", delete=False) as file:
        part = Path(file.name)
    try:
        with running(folder, deadline) as info:
            dump_database(folder, info, part, deadline)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return True
