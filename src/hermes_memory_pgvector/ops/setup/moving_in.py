"""Connections to an embedded server that a home has used before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.deadline import Deadline

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Pool

STOP_SECONDS = 60.0
CONNECT_SECONDS = 30.0


@contextmanager
def embedded_pool(folder: Path) -> Iterator[Pool]:
    """Connections to the embedded server of a folder, whether or not anybody's settings lead there."""
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    server = EmbeddedPostgres(folder)
    was_running = server.status().running
    pool = Pool(
        lambda deadline: server.ensure_running(deadline).runtime_dsn, maximum=1, connect_seconds=CONNECT_SECONDS
    )
    try:
        yield pool
    finally:
        pool.close()
        if not was_running:
            server.stop(Deadline.after(STOP_SECONDS))
