"""A home's memory as operations see it: its settings, one connection to read with, and the search of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.config.home import ID_NAME, home_id, homes_of
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.terminal.fields import column

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Parsed
    from hermes_memory_pgvector.ops.audit import Actor
    from hermes_memory_pgvector.postgres.pool import Connection, Pool
    from hermes_memory_pgvector.runtime.engine import Engine

READ_SECONDS: Final = 60.0
REWRITE_SECONDS: Final = 6 * 3600.0
GATE_SECONDS: Final = 70.0
"""A little longer than a writer's batch may take."""


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row that a change concerns."""

    id: str = column("id")
    agent_identity: str = column("theme")
    content: str = column("text", text=True)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one home, through a pool and an engine that somebody opens for it."""

    home: Path
    pool: Callable[[], AbstractContextManager[Pool]]
    engine: Callable[[], AbstractContextManager[Engine]]
    seconds: float = READ_SECONDS
    """How long one answer may take."""

    @property
    def parsed(self) -> Parsed:
        """The settings in force, with all that is wrong with them."""
        return load(self.home)

    def homes(self) -> dict[str, Path]:
        """The homes of this installation by their ids."""
        return {home_id(each): each for each in homes_of(self.home) if (data_folder(each) / ID_NAME).exists()}

    def named_home(self, home_id: str) -> str:
        """A home as people know it: by its path where it is one of this installation's."""
        here = self.homes()
        return str(here[home_id]) if home_id in here else f"home {home_id[:8]}"

    def reading(self, theme: str | None = None, seconds: float | None = None) -> AbstractContextManager[Connection]:
        """A connection to a database that has our schema; a theme that is named has to exist."""
        allowed = seconds or self.seconds
        return self._transaction(theme, allowed, pause_seconds=allowed)

    def changing(self, theme: str | None = None, *, waits: bool = False) -> AbstractContextManager[Connection]:
        """A transaction on a database that has our schema; an error takes everything back.

        With `waits`, something else may be waited for in it.
        """
        return self._transaction(theme, self.seconds, **({"pause_seconds": self.seconds} if waits else {}))

    @contextmanager
    def rewriting(self, theme: str | None = None, *, execute: bool) -> Iterator[Connection]:
        """A transaction that may take hours; with `execute`, nobody stores anything beside it."""
        from hermes_memory_pgvector.postgres import buckets
        from hermes_memory_pgvector.store import gate

        seconds = REWRITE_SECONDS
        with self._transaction(theme, seconds, pause_seconds=seconds, lock_seconds=GATE_SECONDS) as connection:
            if execute:
                gate.close(connection)
                # Somebody may just have given a theme another name, which lies elsewhere than the name says.
                buckets.forget(connection)
            yield connection

    @contextmanager
    def _transaction(self, theme: str | None, seconds: float, **limits: Any) -> Iterator[Connection]:
        from hermes_memory_pgvector.ops import known_themes
        from hermes_memory_pgvector.store import schema

        with self.pool() as pool, pool.transaction(Deadline.after(seconds), **limits) as connection:
            schema.verify(connection)
            if theme is not None:
                known_themes.require(connection, theme)
            yield connection

    @property
    def actor(self) -> Actor:
        """Whoever works with it, for the audit log."""
        from hermes_memory_pgvector.ops.audit import operator

        return operator(self.home)


def memory_of(home: Path) -> Memory:
    """The memory of a home, for a command: it opens what it needs, and closes it at its end."""
    from hermes_memory_pgvector.ops import parts

    return Memory(home, lambda: parts.open_pool(home, load(home).settings), lambda: parts.open_engine(home))
