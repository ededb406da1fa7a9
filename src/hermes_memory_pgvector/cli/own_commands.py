"""How the reader runs a command that a sentence names: under the name this one was started by, for the same home.

Sentences anywhere in the package say `hermes-pgvector migrate`. Printed by `hermes -p coder pgvector …` or with
`--hermes-home`, that would work on another memory, or not at all: what is printed has to work when it is pasted.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings_file import default_home
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal.lines import PROGRAM

HOME_OPTION = "--hermes-home"
# A name in backticks is spoken of, and not to be typed.
_NAMED = re.compile(rf"(?<![\w./`-]){PROGRAM}((?: [a-z][a-z-]*)+)")
_HOSTS = re.compile(r"(?<![\w./`-])hermes (?=config set )")


def completed_for(args: argparse.Namespace) -> Callable[[str], str]:
    """What makes the commands in a sentence those that the reader of this command's output can run."""
    parser: argparse.ArgumentParser = args.pgvector_parser
    given: Path | None = getattr(args, "hermes_home", None)
    home = None if given is None else shlex.quote(str(given.expanduser().absolute()))
    program = _program(parser.prog, is_home_given=given is not None)
    host = "hermes" if home is None else f"HERMES_HOME={home} hermes"
    if home is None and " -p " in program:
        host = program.rpartition(" ")[0]

    def place(found: re.Match[str]) -> str:
        words = found.group(1).split()
        used, number = _command(parser, words)
        if number == 0:
            return found.group()
        named = [HOME_OPTION, home] if home is not None and HOME_OPTION in tree.options_of(used) else []
        return " ".join([program, *words[:number], *named, *words[number:]])

    def completed(text: str) -> str:
        if HOME_OPTION in text or "HERMES_HOME=" in text:
            return text
        return _NAMED.sub(place, _HOSTS.sub(f"{host} ", text))

    return completed


def voice_of(args: argparse.Namespace) -> tuple[str, str | None]:
    """How the reader calls our program, and the home they have named."""
    given: Path | None = getattr(args, "hermes_home", None)
    home = None if given is None else str(given.expanduser().absolute())
    return _program(args.pgvector_parser.prog, is_home_given=given is not None), home


def _program(prog: str, *, is_home_given: bool) -> str:
    if prog == PROGRAM:
        # `start.py` of a clone says how its own is called.
        return os.environ.get("HERMES_PGVECTOR_COMMAND") or PROGRAM
    home = default_home().absolute()
    if is_home_given or root_of(home) == home:
        return prog
    # The host has set HERMES_HOME for itself; the reader's shell knows only the profile's name.
    host, _, rest = prog.partition(" ")
    return f"{host} -p {shlex.quote(home.name)} {rest}"


def _command(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[argparse.ArgumentParser, int]:
    """The command that the words begin with, and how many of them name it."""
    for number, word in enumerate(words):
        below = tree.commands_of(parser)
        if below is None or word not in below.parsers:
            return parser, number
        parser = below.parsers[word]
    return parser, len(words)
