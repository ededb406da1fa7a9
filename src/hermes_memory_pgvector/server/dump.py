"""A consistent copy of the embedded database as one file, for the host's backup.

While the server runs, its files change all the time; only pg_dump gets a consistent copy.
"""

from __future__ import annotations

import logging
import subprocess
import tempfile
from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ServerError
from hermes_memory_pgvector.server.binaries import find_binaries
from hermes_memory_pgvector.server.server import EmbeddedPostgres

STOP_SECONDS = 30.0

logger = logging.getLogger(__name__)


def dump_embedded(folder: Path, target: Path, deadline: Deadline) -> bool:
    """Write a dump of the folder's database to `target` in one step; False when there is none."""
    server = EmbeddedPostgres(folder)
    if server.status().version is None:
        return False
    was_running = server.status().running
    info = server.ensure_running(deadline)
    program = find_binaries(int(server.status().version or 0)).program("pg_dump")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A restored backup may be readable by everybody.
    target.parent.chmod(0o700)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-", delete=False) as file:
        part = Path(file.name)
    try:
        done = subprocess.run(  # noqa: S603 - our own program and arguments
            [program, "--format=custom", f"--file={part}", f"--dbname={info.owner_dsn}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(0.1, deadline.remaining()),
            check=False,
        )
        if done.returncode != 0:
            raise ServerError(f"pg_dump ended with code {done.returncode}")
        part.replace(target)
    except subprocess.TimeoutExpired as error:
        raise ServerError("pg_dump did not finish in time") from error
    finally:
        part.unlink(missing_ok=True)
        if not was_running:
            # If another process needs it meanwhile, that process starts it again.
            server.stop(Deadline.after(STOP_SECONDS))
    return True
