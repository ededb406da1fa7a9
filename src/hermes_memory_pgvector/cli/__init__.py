"""`hermes-pgvector …` and `hermes pgvector …`: one command tree, one file per command.

Exit codes: 0 done, 1 error, 2 usage or endpoint unavailable, 3 work remains. Nothing heavy is imported before a command
runs, so help and usage errors come at once.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from hermes_memory_pgvector import __version__, carried
from hermes_memory_pgvector.cli import (
    backfill,
    completion,
    config,
    doctor,
    edit,
    export,
    forget,
    import_,
    index,
    install,
    mcp,
    migrate,
    options,
    own_commands,
    prune,
    reembed,
    restore,
    scan,
    system_errors,
    tour,
    ui,
    undo,
    uninstall,
    up,
)
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.errors import (
    DatabaseUnavailable,
    DeadlineExceeded,
    EmbeddingUnavailable,
    MemoryPluginError,
    ServerError,
    UsageError,
)
from hermes_memory_pgvector.ops.catalogue import OPERATIONS
from hermes_memory_pgvector.ops.memory import memory_of
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal import render, sink
from hermes_memory_pgvector.terminal.operation import Operation

COMMANDS = (
    up, tour, install, uninstall, migrate, doctor, config, completion,
    undo, restore, edit,
    forget, prune, scan,
    import_, export,
    reembed, backfill, index, ui, mcp,
)  # fmt: skip
"""The commands that declare their own options; the others are operations."""
FIRST = ("up", "status", "doctor", "recall", "list", "show", "edit", "forget", "ui", "try")
"""What stands on the first page of help."""
UNAVAILABLE = (DatabaseUnavailable, EmbeddingUnavailable, ServerError, DeadlineExceeded)
INTERRUPTED = 130
BROKEN_PIPE = 141


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the whole command tree to a parser: ours, or the one the host made for `hermes pgvector`."""
    parser.set_defaults(pgvector_parser=parser)
    tree.add_commands(parser, every_command(), FIRST)


def every_command() -> list[tree.Entry]:
    """Every command there is, in the order of `help --all`."""
    return [*(tree.entry_of(each, _operate) for each in OPERATIONS), *(_entry(each) for each in COMMANDS)]


def _operate(operation: Operation, args: argparse.Namespace) -> int:
    """Run an operation on the memory of a home, and show what it answers."""
    given = tree.given(operation, args)
    home = options.home_of(args)
    with render.spoken_to(*own_commands.voice_of(args)):
        return render.show(operation.run(memory_of(home), **given), as_json=args.json, again=operation.typed(given))


def _entry(command: ModuleType) -> tree.Entry:
    """A command that declares its own options."""
    aliases: dict[str, dict[str, Any]] = {name: {} for name in getattr(command, "ALIASES", ())}
    return tree.Entry(
        command.NAME, command.HELP, command.GROUP, command.EXAMPLES, command.configure, command.run, aliases,
    )  # fmt: skip


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
    with terminal.completing(own_commands.completed_for(args)):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        return int(args.pgvector_run(args))
    except KeyboardInterrupt:
        terminal.complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads our output any more; the interpreter must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except MemoryPluginError as error:
        return _fail(args, str(error), 2 if isinstance(error, (UsageError, *UNAVAILABLE)) else 1)
    except OSError as error:
        said = system_errors.sentence(error)
        if said is None:
            raise
        return _fail(args, said, 1)
    finally:
        settings_file.start_for(None)


def _fail(args: argparse.Namespace, text: str, code: int) -> int:
    if getattr(args, "json", False):
        # Whoever reads the document may be gone, or it may be what does not fit on the disk.
        with contextlib.suppress(OSError):
            terminal.as_json({"error": terminal.completed(text)})
    terminal.fail(text)
    return code


def program() -> tree.Parser:
    """The parser of `hermes-pgvector`."""
    parser = tree.Parser(prog="hermes-pgvector", description="Postgres + pgvector memory for hermes-agent.")
    parser.add_argument("--version", action="version", version=f"hermes-memory-pgvector {__version__}")
    parser.add_argument("--trace", action="store_true", help="show where an unexpected error comes from")
    configure(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point of `hermes-pgvector`."""
    parser = program()
    args, extra = parser.parse_known_args(argv)
    if extra:
        used = getattr(args, "pgvector_used", parser)
        used.error(tree.unknown_options(used, extra))
    try:
        return dispatch(args)
    except Exception as error:  # noqa: BLE001 - the last place that can turn a bug into a sentence
        if args.trace:
            traceback.print_exc()
        # Its text may hold content; its class and place do not.
        terminal.fail(f"unexpected {type(error).__name__}", "run it again with: hermes-pgvector --trace")
        return 1


def _tolerate_terminal() -> None:
    """Print a question mark for what the terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
