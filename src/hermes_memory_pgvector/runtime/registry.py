"""The engines of a process: one per home, made on first use. The end of the process flushes them within a bound."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import Parsed
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.runtime.engine import Engine

Overrides = Mapping[str, Any] | None
"""Settings that an embedding program has given; the host gives none."""


class Registry:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines: dict[tuple[Path, str], Engine] = {}
        """By home and overrides."""
        renew_after_fork(self)

    def engine_for(self, home: Path, overrides: Overrides = None) -> tuple[Engine, Parsed]:
        """The engine of a home under the configuration in force, made on first use."""
        parsed = settings_file.load(home, overrides, is_hasty=True)
        key = _key(home, overrides)
        with self._lock:
            engine = self._engines.get(key)
            if engine is None:
                engine = self._engines[key] = Engine(
                    home, parsed.settings, check_configuration=lambda: self._check(home, overrides)
                )
        if engine.settings != parsed.settings:
            engine.adopt(parsed.settings)
        return engine, parsed

    def close_all(self, deadline: Deadline) -> None:
        """Close every engine of the process."""
        with self._lock:
            engines = list(self._engines.values())
            self._engines.clear()
        for engine in engines:
            engine.close(deadline)

    def at_exit(self) -> None:
        """Flush the engines, but keep them: a host's own exit handlers may run after this one."""
        with self._lock:
            engines = list(self._engines.values())
        deadline = Deadline.after(max((engine.settings.drain_seconds for engine in engines), default=0.0))
        for engine in engines:
            engine.rest(deadline)

    def after_fork_in_child(self) -> None:
        """Start with nothing: the child has none of the threads and must not touch the parent's connections."""
        self._lock = threading.Lock()
        self._engines.clear()

    def _check(self, home: Path, overrides: Overrides) -> None:
        """Have an engine adopt the configuration in force."""
        with self._lock:
            is_ours = _key(home, overrides) in self._engines
        if is_ours:
            self.engine_for(home, overrides)


def _key(home: Path, overrides: Overrides) -> tuple[Path, str]:
    return home, repr(sorted(overrides.items())) if overrides else ""


_registry = Registry()
engine_for = _registry.engine_for
close_all = _registry.close_all
atexit.register(_registry.at_exit)
