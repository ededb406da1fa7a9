"""A home's memory as operations see it: its settings, one connection to read with, and the search of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Parsed
    from hermes_memory_pgvector.ops.audit import Actor
    from hermes_memory_pgvector.postgres.pool import Connection, Pool
    from hermes_memory_pgvector.runtime.engine import Engine

READ_SECONDS = 60.0


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
        from hermes_memory_pgvector.config.settings_file import load

        return load(self.home)

    @contextmanager
    def reading(self, theme: str | None = None, seconds: float | None = None) -> Iterator[Connection]:
        """A connection to a database that has our schema; a theme that is named has to exist."""
        from hermes_memory_pgvector.deadline import Deadline
        from hermes_memory_pgvector.ops import known_themes
        from hermes_memory_pgvector.store import schema

        allowed = seconds or self.seconds
        with (
            self.pool() as pool,
            pool.transaction(Deadline.after(allowed), pause_seconds=allowed) as connection,
        ):
            schema.verify(connection)
            if theme is not None:
                known_themes.require(connection, theme)
            yield connection

    @contextmanager
    def changing(self, theme: str | None = None, *, waits: bool = False) -> Iterator[Connection]:
        """A transaction on a database that has our schema; an error takes everything back.

        With `waits`, something else may be waited for in it.
        """
        from hermes_memory_pgvector.deadline import Deadline
        from hermes_memory_pgvector.ops import known_themes
        from hermes_memory_pgvector.postgres.pool import PAUSE_SECONDS
        from hermes_memory_pgvector.store import schema

        pause = self.seconds if waits else PAUSE_SECONDS
        with (
            self.pool() as pool,
            pool.transaction(Deadline.after(self.seconds), pause_seconds=pause) as connection,
        ):
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
    from hermes_memory_pgvector.config.settings_file import load
    from hermes_memory_pgvector.ops import parts

    return Memory(home, lambda: parts.open_pool(home, load(home).settings), lambda: parts.open_engine(home))
