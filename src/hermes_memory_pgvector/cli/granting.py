"""What the commands about logins have in common: the owner's connection, and who gives or takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.setup import database


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options that all of them have."""
    options.add_common(parser)
    options.add_admin_dsn(parser)


@contextmanager
def as_owner(args: argparse.Namespace, action: str, remedy: str, *, may_create: bool = False) -> Iterator[str]:
    """The connection string of the tables' owner; who is refused is told which one to give."""
    home = options.home_of(args)
    admin = database.admin_dsn(home, load(home).settings, args.admin_dsn, may_create=may_create)
    with database.explaining_denial(admin, action, remedy):
        yield admin
