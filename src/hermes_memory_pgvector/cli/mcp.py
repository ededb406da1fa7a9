"""`mcp`: the memory for other agents, such as a coding assistant at the desk."""

from __future__ import annotations

import argparse
import logging
import sys

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.terminal import lines as terminal

NAME = "mcp"
HELP = "let other agents share a theme of this memory, over the Model Context Protocol"
GROUP = "run"
EXAMPLES = (
    ("mcp --theme marketing", "for a client that starts it: messages on standard input and output"),
    ("mcp --theme marketing --read-only", "recall without remembering"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser, json=False)
    parser.add_argument(
        "--theme", required=True, metavar="THEME", help="the theme they are in, like any agent of it; what it may read "
        "of others is said by cross_theme",
    )  # fmt: skip
    parser.add_argument("--read-only", action="store_true", help="offer the recall tools only")


def run(args: argparse.Namespace) -> int:
    """Serve until the client goes, or somebody ends the process."""
    from hermes_memory_pgvector.config.settings_file import load
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.mcp import server
    from hermes_memory_pgvector.mcp.memory import SharedMemory
    from hermes_memory_pgvector.runtime.registry import close_all
    from hermes_memory_pgvector.web.access import NO_MEMORY, is_set_up

    home = options.home_of(args)
    if not is_set_up(home):
        raise ConfigError(NO_MEMORY)
    if not args.theme.strip():
        raise ConfigError("--theme is empty: name the theme, as `hermes-pgvector list themes` shows it")
    _log_to_stderr()
    try:
        memory = SharedMemory(home, args.theme, may_write=not args.read_only)
        if sys.stdin.isatty():
            terminal.complain("waiting for an MCP client on standard input; clients start this by themselves")
        server.serve(memory)
    finally:
        close_all(Deadline.after(load(home).settings.drain_seconds))
    return 0


def _log_to_stderr() -> None:
    """Standard output belongs to the client; what begins or ends an outage is said on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("hermes_memory_pgvector").addHandler(handler)
