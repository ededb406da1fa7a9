"""A consistent copy of an embedded database as one file, and servers that live only as long as a copy is looked at.

While the server runs, its files change all the time; only pg_dump gets a consistent copy. Dumps hold tables and rows:
no owners, no large objects, which may name roles that another server does not have.
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
from hermes_memory_pgvector.server.programs import Account, refusal_in, run_program
from hermes_memory_pgvector.server.server import PLAIN, ConnectionInfo, EmbeddedPostgres

START_SECONDS = 120.0
RESTORE_SECONDS = 24 * 3600.0
STOP_SECONDS = 60.0
HASTY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off"}
"""For a server whose data nobody keeps."""


@contextlib.contextmanager
def running(folder: Path, deadline: Deadline) -> Iterator[ConnectionInfo]:
    """The folder's server, started if it does not run, and stopped again afterwards if we started it."""
    server = EmbeddedPostgres(folder)
    was_running = server.is_there()
    info = server.ensure_running(deadline)
    try:
        yield info
    finally:
        if not was_running:
            # If another process needs it meanwhile, that process starts it again.
            server.stop(Deadline.after(STOP_SECONDS))


@contextlib.contextmanager
def scratch(folder: Path, dump: Path | None = None) -> Iterator[ConnectionInfo]:
    """A server in an empty folder, for the length of a block: empty, or with what a dump holds."""
    server = EmbeddedPostgres(folder, extra_settings=HASTY)
    try:
        if dump is not None:
            server.replace_data(dump, Deadline.after(RESTORE_SECONDS))
        yield server.ensure_running(Deadline.after(START_SECONDS))
    finally:
        server.stop(Deadline.after(STOP_SECONDS), mode="immediate")


def dump_database(folder: Path, info: ConnectionInfo, target: Path, deadline: Deadline, snapshot: str = "") -> None:
    """Write the database of a running server to a file, as a snapshot shows it or as it is now."""
    program = find_binaries(int(EmbeddedPostgres(folder).status().version or 0)).program("pg_dump")
    # Every user of the machine sees a command line: pg_dump finds the password in its file.
    login, _ = split_password(info.owner_dsn)
    command = [program, "--format=custom", "--no-large-objects", *PLAIN, f"--file={target}", f"--dbname={login}"]
    me = Account(os.geteuid(), os.getegid(), switches=False)
    done = run_program([*command, *([f"--snapshot={snapshot}"] if snapshot else [])], me, deadline)
    if done.returncode != 0:
        raise ServerError(f"pg_dump ended with code {done.returncode} ({refusal_in(done.output)})")


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
