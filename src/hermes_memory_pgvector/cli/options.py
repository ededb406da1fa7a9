"""Options that several commands take."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from hermes_memory_pgvector.config.access import check_access
from hermes_memory_pgvector.config.home import USUAL_NAME, root_of
from hermes_memory_pgvector.config.settings_file import default_home, start_for
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.migration import ADMIN_VARIABLE
from hermes_memory_pgvector.terminal.operation import PROGRAM
from hermes_memory_pgvector.terminal.program import add_global
from hermes_memory_pgvector.values import NAMED_ORIGINS


def add_common(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """Add the options every command takes."""
    add_global(parser, json=json)


def add_origin(parser: argparse.ArgumentParser) -> None:
    """Add the option that names where rows come from."""
    parser.add_argument(
        "--origin",
        type=str.lower,
        choices=NAMED_ORIGINS,
        metavar="ORIGIN",
        help=f"only what comes from there: {', '.join(NAMED_ORIGINS)}",
    )


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
    given = getattr(args, "hermes_home", None)
    home: Path = (given or default_home()).expanduser().absolute()
    check_access(home)
    if given and not home.is_dir():
        raise ConfigError(f"there is no folder {home}; give the hermes home that `hermes config path` names")
    start_for(given and home)
    return home


def home_to_be(args: argparse.Namespace) -> Path:
    """The hermes home of a command that may make it."""
    home: Path = (getattr(args, "hermes_home", None) or default_home()).expanduser().absolute()
    check_access(home)
    start_for(home)
    return home


def voice_of(args: argparse.Namespace) -> tuple[str, str | None]:
    """How the reader calls our program, and the home they have named."""
    given: Path | None = getattr(args, "hermes_home", None)
    home = None if given is None else str(given.expanduser().absolute())
    prog = args.pgvector_parser.prog
    if prog == PROGRAM:
        # `start.py` of a clone says how its own is called.
        return os.environ.get("HERMES_PGVECTOR_COMMAND") or PROGRAM, home
    own = default_home().absolute()
    if given is not None or root_of(own) == own:
        return prog, home
    # The host has set HERMES_HOME for itself; the reader's shell knows only the profile's name.
    host, _, rest = prog.partition(" ")
    return f"{host} -p {shlex.quote(own.name)} {rest}", home


def usual_home() -> Path | None:
    """The home of a shell that sets no HERMES_HOME; None for a user without a home folder."""
    try:
        return Path.home() / USUAL_NAME
    except RuntimeError:
        return None
