"""`mcp`: the memory for other agents, such as a coding assistant at the desk."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Final

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Operation, Option, Stream


def mcp(memory: Memory, *, theme: str, cross_theme: bool, read_only: bool) -> Stream:
    """Serve until the client goes, or somebody ends the process."""
    return Stream(_served(memory, theme, crosses=cross_theme, read_only=read_only))


def _served(memory: Memory, theme: str, *, crosses: bool, read_only: bool) -> Iterator[None]:
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.mcp import server
    from hermes_memory_pgvector.mcp.memory import SharedMemory
    from hermes_memory_pgvector.runtime.registry import close_all
    from hermes_memory_pgvector.web.access import NO_MEMORY, is_set_up

    if not is_set_up(memory.home):
        raise ConfigError(NO_MEMORY)
    _log_to_stderr()
    try:
        shared = SharedMemory(memory.home, theme, crosses=crosses, may_write=not read_only)
        if sys.stdin.isatty():
            sys.stderr.write("waiting for an MCP client on standard input; clients start this by themselves\n")
        server.serve(shared)
    finally:
        close_all(Deadline.after(memory.parsed.settings.drain_seconds))
    yield from ()


def _log_to_stderr() -> None:
    """Standard output belongs to the client; what begins or ends an outage is said on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("hermes_memory_pgvector").addHandler(handler)


MCP: Final = Operation(
    "mcp",
    "let other agents share a theme of this memory, over the Model Context Protocol",
    (
        Option("--theme", "the theme they are in, which is all they see", parse.filled, required=True, metavar="THEME"),
        Option("--cross-theme", "let them read other themes as far as the agents of theirs do", is_flag=True),
        Option("--read-only", "offer the recall tools only", is_flag=True),
    ),
    mcp,
    (
        ("mcp --theme marketing", "for a client that starts it: messages on standard input and output"),
        ("mcp --theme marketing --read-only", "recall without remembering"),
    ),
    group="run",
    on_page=False,
)  # fmt: skip
