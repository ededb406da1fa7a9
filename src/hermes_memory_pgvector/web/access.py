"""How the page reaches the memory: through the engine that the process has for a home, and never by making a database.

In the host's dashboard that engine is the one its agents use. The page only reads and changes rows, so it does not
start the engine's threads; what it leaves open is closed by a timer.
"""

from __future__ import annotations

import contextlib
import threading
from contextlib import nullcontext
from pathlib import Path

from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import MemoryPluginError, ServerError, ThreadUnavailable
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.postgres.pool import MAX_IDLE_SECONDS
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.runtime.registry import engine_for
from hermes_memory_pgvector.service import start_thread

SECONDS = 15.0
"""How long a page waits for an answer before it is told that there is none."""
NO_MEMORY = "there is no memory in this home yet; run: hermes-pgvector up"

_lock = threading.Lock()
_watched: set[Engine] = set()


def is_set_up(home: Path) -> bool:
    """Whether the home has a database to ask; looks at files only, and makes none."""
    settings = load(home).settings
    return bool(settings.dsn or settings.hold) or parts.has_embedded_data(home, settings)


def engine_of(home: Path) -> Engine:
    """The engine of this process for a home that has a database; ServerError when it has none yet."""
    if not is_set_up(home):
        raise ServerError(NO_MEMORY)
    engine, _ = engine_for(home)
    _close_later(engine)
    return engine


def memory_of(home: Path) -> Memory:
    """The memory of a home, through the engine of this process."""
    return Memory(home, lambda: nullcontext(engine_of(home).pool), lambda: nullcontext(engine_of(home)), SECONDS)


def embed_soon(home: Path) -> None:
    """Rows that were changed here want vectors; where no thread of the engine makes them, one is started for it."""
    engine = engine_of(home)
    engine.backlog.request()
    if engine.tasks.is_running:
        engine.tasks.wake()
        return
    with contextlib.suppress(ThreadUnavailable):
        start_thread(lambda: _embed(engine), "hermes-pgvector-page-vectors")


def _embed(engine: Engine) -> None:
    # What cannot be done now, the next agent does.
    with contextlib.suppress(MemoryPluginError):
        engine.backlog.run()


def _close_later(engine: Engine) -> None:
    """Let go of connections that nobody has used for a while: the engine's own threads may not be running."""
    with _lock:
        if engine in _watched:
            return
        _watched.add(engine)
    timer = threading.Timer(MAX_IDLE_SECONDS + 1, _close_idle, (engine,))
    timer.daemon = True
    timer.start()


def _close_idle(engine: Engine) -> None:
    with _lock:
        _watched.discard(engine)
    engine.pool.reap()
