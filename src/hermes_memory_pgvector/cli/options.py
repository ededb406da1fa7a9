"""Options that several commands take."""

from __future__ import annotations

import argparse
from pathlib import Path

from hermes_memory_pgvector.config.access import chosen_home
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.migration import ADMIN_VARIABLE
from hermes_memory_pgvector.terminal.program import add_global


def add_common(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """Add the options every command takes."""
    add_global(parser, json=json)


def add_admin_dsn(parser: argparse.ArgumentParser) -> None:
    """Add the login of commands that change tables or indexes."""
    parser.add_argument(
        "--admin-dsn",
        metavar="DSN",
        help=f"login of the tables' owner (default: ${ADMIN_VARIABLE}, the embedded server's owner, or dsn)",
    )


def positive(text: str) -> int:
    """Parse a whole number above zero."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return value


def again(option: str, value: object) -> list[str]:
    """An option as the reader types it to run a command again; nothing if it was not given."""
    if value is None:
        return []
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def named(option: str, value: str) -> str:
    """The value of an option that narrows what a command changes; an empty one must not mean everything."""
    if not value:
        raise ConfigError(f"{option} is empty: give a value, or leave the option out")
    return value


def home_of(args: argparse.Namespace) -> Path:
    """The hermes home a command works on."""
    return chosen_home(getattr(args, "hermes_home", None))
