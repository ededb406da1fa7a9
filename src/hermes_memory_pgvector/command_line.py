"""`hermes-pgvector …` and `hermes pgvector …`: one command tree, one file per command.

Exit codes: 0 done, 1 error, 2 usage or endpoint unavailable, 3 work remains. Nothing heavy is imported before a command
runs, so help and usage errors come at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector import __version__, carried
from hermes_memory_pgvector.config import access, settings_file
from hermes_memory_pgvector.config.home import root_of, usual_home
from hermes_memory_pgvector.errors import (
    DatabaseUnavailable,
    DeadlineExceeded,
    EmbeddingUnavailable,
    MemoryPluginError,
    ServerError,
    UsageError,
)
from hermes_memory_pgvector.mcp.serving import MCP
from hermes_memory_pgvector.ops.catalogue import OPERATIONS
from hermes_memory_pgvector.ops.memory import Memory, memory_of
from hermes_memory_pgvector.ops.setup.up import UP
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal import render, sink
from hermes_memory_pgvector.terminal.operation import PROGRAM, Operation, Option, Raw
from hermes_memory_pgvector.tour import TRY
from hermes_memory_pgvector.web.serving import UI

FIRST = ("up", "status", "doctor", "recall", "list", "show", "add", "edit", "forget", "ui")
"""What stands on the first page of help."""
SHELLS = {
    "bash": "complete -o default -W '{names}' hermes-pgvector",
    "zsh": "_hermes_pgvector() {{ (( CURRENT == 2 )) && compadd {names} || _files; }}\n"
    "compdef _hermes_pgvector hermes-pgvector",
    "fish": "complete -c hermes-pgvector -n __fish_use_subcommand -f -a '{names}'",
}
UNAVAILABLE = (DatabaseUnavailable, EmbeddingUnavailable, ServerError, DeadlineExceeded)
INTERRUPTED = 130
BROKEN_PIPE = 141


@dataclass(frozen=True, slots=True)
class Completion(Raw):
    """A script for a shell."""

    script: str

    def as_text(self) -> str:
        """As the shell reads it."""
        return f"{self.script}\n"


def _completion(_memory: Memory, *, shell: str) -> Completion:
    """The names of all commands, for a shell to complete."""
    return Completion(SHELLS[shell].format(names=" ".join(each.name for each in EVERY)))


COMPLETION = Operation(
    "completion",
    "print a script that lets a shell complete the names of commands",
    (Option("shell", "the shell to write for", choices=tuple(SHELLS), required=True),),
    _completion,
    (("completion bash", "put it into ~/.local/share/bash-completion/completions/hermes-pgvector"),),
    group="set up",
    on_page=False,
    is_listed=False,
    needs_home=False,
)
EVERY = (UP, TRY, *OPERATIONS, UI, MCP, COMPLETION)
"""Every operation there is: those of the operator, and those that open a door of their own."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the whole command tree to a parser: ours, or the one the host made for `hermes pgvector`."""
    parser.set_defaults(pgvector_parser=parser)
    tree.add_commands(parser, EVERY, _operate, FIRST)


def _operate(operation: Operation, args: argparse.Namespace) -> int:
    """Run an operation on the memory of a home, and show what it answers."""
    given = tree.given(operation, args)
    home = access.chosen_home(getattr(args, "hermes_home", None), is_needed=operation.needs_home)
    answer = operation.run(memory_of(home), **given)
    with render.spoken_to(home=home) if operation.names_home and home != usual_home() else contextlib.nullcontext():
        return render.show(answer, as_json=args.json, again=operation.typed(given))


def dispatch(args: argparse.Namespace) -> int:
    """Run the chosen command; turn our own errors into one sentence and an exit code."""
    if getattr(args, "pgvector_run", None) is None:
        args.pgvector_parser.print_help()
        return 2
    # Commands print what goes wrong; without a handler, logging would print it a second time.
    logging.getLogger("hermes_memory_pgvector").addHandler(logging.NullHandler())
    _tolerate_terminal()
    sink.use(getattr(args, "color", None) or "auto", is_document=getattr(args, "json", False))
    carried.activate(getattr(args, "hermes_home", None) or settings_file.default_home())
    with render.spoken_to(*voice_of(args)):
        return _run(args)


def voice_of(args: argparse.Namespace) -> tuple[str, str | None]:
    """How the reader calls our program, and the home they have named."""
    given: Path | None = getattr(args, "hermes_home", None)
    home = None if given is None else str(given.expanduser().absolute())
    prog = args.pgvector_parser.prog
    if not prog.endswith(" pgvector"):
        return prog, home
    own = settings_file.default_home().absolute()
    if given is not None or root_of(own) == own:
        return prog, home
    # The host has set HERMES_HOME for itself; the reader's shell knows only the profile's name.
    host, _, rest = prog.partition(" ")
    return f"{host} -p {shlex.quote(own.name)} {rest}", home


def _run(args: argparse.Namespace) -> int:
    try:
        return int(args.pgvector_run(args))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads our output any more; the interpreter must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except MemoryPluginError as error:
        return _fail(args, str(error), 2 if isinstance(error, (UsageError, *UNAVAILABLE)) else 1)
    except OSError as error:
        said = access.sentence(error)
        if said is None:
            raise
        return _fail(args, said, 1)
    finally:
        settings_file.start_for(None)


def _fail(args: argparse.Namespace, text: str, code: int) -> int:
    if getattr(args, "json", False):
        # Whoever reads the document may be gone, or it may be what does not fit on the disk.
        with contextlib.suppress(OSError):
            sys.stdout.write(json.dumps({"error": render.addressed(text)}, ensure_ascii=False, indent=2) + "\n")
    render.complain(text)
    return code


def program() -> tree.Parser:
    """The parser of `hermes-pgvector`."""
    # `start.py` of a clone says how its own is called.
    name = os.environ.get("HERMES_PGVECTOR_COMMAND") or PROGRAM
    parser = tree.Parser(prog=name, description="Postgres + pgvector memory for hermes-agent.")
    parser.add_argument("--version", action="version", version=f"hermes-memory-pgvector {__version__}")
    parser.add_argument("--trace", action="store_true", help="show where an unexpected error comes from")
    configure(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point of `hermes-pgvector`."""
    parser = program()
    args, extra = parser.parse_known_args(argv)
    if extra:
        tree.refuse_extra(getattr(args, "pgvector_used", parser), extra)
    try:
        return dispatch(args)
    except Exception as error:  # noqa: BLE001 - the last place that can turn a bug into a sentence
        if args.trace:
            traceback.print_exc()
        # Its text may hold content; its class and place do not.
        render.complain(f"unexpected {type(error).__name__}", "run it again with: hermes-pgvector --trace")
        return 1


def _tolerate_terminal() -> None:
    """Print a question mark for what the terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
