"""The engines of a process: one per home and configuration, made on first use.

A changed configuration replaces an engine, whose successor goes on with its journal; a forked child makes its own, and
the end of the process drains them within a bound.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import Parsed
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.engine import Engine

_engines: dict[tuple[Path, str], Engine] = {}
"""By home and by what an embedding program has overridden; the host overrides nothing."""
_made: weakref.WeakSet[Engine] = weakref.WeakSet()
"""Every engine that somebody may still hold, closed ones included."""
_engines_lock = threading.Lock()


def engine_for(home: Path, overrides: Mapping[str, Any] | None = None) -> tuple[Engine, Parsed]:
    """The engine of a home under the configuration in force, made on first use."""
    parsed = settings_file.load(home, overrides, is_hasty=True)
    key = (home, repr(sorted(overrides.items())) if overrides else "")
    with _engines_lock:
        engine = _engines.get(key)
        if engine is not None and engine.settings == parsed.settings and not engine.is_retired:
            return engine, parsed
        old = engine if engine is not None and not engine.is_retired else None
        engine = Engine(home, parsed.settings, predecessor=old, reconsider=lambda: _reconsider(key, overrides))
        _engines[key] = engine
        _made.add(engine)
    if old is not None:
        old.retire(engine)
    return engine, parsed


def _reconsider(key: tuple[Path, str], overrides: Mapping[str, Any] | None) -> None:
    """Have an engine replaced whose configuration is no longer the one in force."""
    with _engines_lock:
        is_ours = key in _engines
    if is_ours:
        engine_for(key[0], overrides)


def close_all(deadline: Deadline) -> None:
    """Close every engine of the process."""
    with _engines_lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.close(deadline)


def _at_exit() -> None:
    """Deliver what there is; the engines stay, because a host's own exit handlers may run after this one."""
    with _engines_lock:
        engines = list(_engines.values())
    deadline = Deadline.after(max((engine.settings.shutdown_drain_timeout for engine in engines), default=0.0))
    for engine in engines:
        engine.rest(deadline)


def _after_fork_in_child() -> None:
    """The child has none of the threads and must not touch the parent's connections: it starts with nothing."""
    global _engines_lock
    _engines_lock = threading.Lock()
    _engines.clear()
    for engine in _made:
        engine.is_retired = True


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
