"""How the commands that look after the memory reach it: one connection of the runtime role, or one transaction."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.ops import parts

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection, Pool

READ_SECONDS = 60.0


@contextmanager
def reading(args: argparse.Namespace, *, theme: str | None = None) -> Iterator[Connection]:
    """A connection to a database that has our schema; a theme that is named has to exist."""
    from hermes_memory_pgvector.care import themes
    from hermes_memory_pgvector.store import schema

    home = options.home_of(args)
    deadline = Deadline.after(READ_SECONDS)
    with (
        parts.open_pool(home, load(home).settings) as pool,
        pool.transaction(deadline, pause_seconds=READ_SECONDS) as connection,
    ):
        schema.verify(connection)
        if theme is not None:
            themes.require(connection, theme)
        yield connection


@contextmanager
def changing(args: argparse.Namespace) -> Iterator[Connection]:
    """A transaction on a database that has our schema; an error takes everything back."""
    from hermes_memory_pgvector.store import schema

    home = options.home_of(args)
    deadline = Deadline.after(READ_SECONDS)
    with parts.open_pool(home, load(home).settings) as pool, pool.transaction(deadline) as connection:
        schema.verify(connection)
        yield connection


def require_theme(pool: Pool, theme: str) -> None:
    """Say that a theme which was named does not exist, instead of that there is nothing to do in it."""
    from hermes_memory_pgvector.care import themes
    from hermes_memory_pgvector.store import schema

    with pool.transaction(Deadline.after(READ_SECONDS)) as connection:
        schema.verify(connection)
        themes.require(connection, theme)
