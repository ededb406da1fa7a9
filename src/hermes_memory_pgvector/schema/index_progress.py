"""The progress of an index build, read over a second connection."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from hermes_memory_pgvector.errors import ThreadUnavailable
from hermes_memory_pgvector.schema.statements import admin_statement
from hermes_memory_pgvector.service import start_thread

LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build has got."""

    name: str
    phase: str
    share: float | None


Watch = Callable[[Progress], None]


@contextmanager
def watched(name: str, building: psycopg.Connection[TupleRow], dsn: str, watch: Watch) -> Iterator[None]:
    """Report the progress of a build on one connection through another; if that fails, the build goes on."""
    ended = threading.Event()
    builder = building.info.backend_pid

    def look() -> None:
        if ended.wait(LOOK_SECONDS):
            return
        try:
            with psycopg.connect(dsn, autocommit=True, connect_timeout=5, prepare_threshold=None) as other:
                while not ended.wait(LOOK_SECONDS):
                    row: Any = other.execute(admin_statement("indexes/progress"), (builder,)).fetchone()
                    if row is not None:
                        watch(Progress(name, str(row[0]), None if row[1] is None else float(row[1])))
        except psycopg.Error:
            return

    thread: threading.Thread | None = None
    with contextlib.suppress(ThreadUnavailable):
        thread = start_thread(look, "hermes-pgvector-index-progress")
    try:
        yield
    finally:
        ended.set()
        if thread is not None:
            thread.join(LOOK_SECONDS + 5)
