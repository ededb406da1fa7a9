"""`mcp`: the memory for other agents, such as a coding assistant at the desk."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import listening, options
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import terminal
from hermes_memory_pgvector.values import Trust

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.mcp.memory import SharedMemory

NAME = "mcp"
HELP = "let other agents share a theme of this memory, over the Model Context Protocol"
GROUP = "run"
EXAMPLES = (
    ("mcp --theme marketing", "for a client that starts it: messages on standard input and output"),
    ("mcp --theme marketing --read-only", "recall without remembering"),
    (
        "mcp --theme marketing --listen 127.0.0.1:9122 --token-file ~/.hermes/mcp.token",
        "for clients that connect by HTTP",
    ),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument(
        "--theme",
        required=True,
        metavar="THEME",
        help="the theme they recall from and write to; no client can change it",
    )
    parser.add_argument("--read-only", action="store_true", help="offer the recall tools only")
    parser.add_argument(
        "--trust",
        choices=tuple(each.value for each in Trust),
        default=Trust.EXPOSED.value,
        metavar="TRUST",
        help="how far agents trust what is remembered here: trusted, exposed (default: nobody tells what a client has "
        "read) or untrusted (never offered unasked)",
    )
    parser.add_argument(
        "--listen",
        type=listening.address,
        metavar="HOST:PORT",
        help="serve HTTP on this machine's loopback interface instead; port 0 takes any free one",
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="with --listen: a file with the token that clients have to send"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client goes, or somebody ends the process."""
    if (args.listen is None) != (args.token_file is None):
        raise ConfigError("--listen and --token-file belong together: whoever connects needs the token of the file")
    _require_sdk()
    from hermes_memory_pgvector.config.settings_file import load
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.engine.registry import close_all
    from hermes_memory_pgvector.mcp.memory import SharedMemory
    from hermes_memory_pgvector.web.access import NO_MEMORY, is_set_up

    home = options.home_of(args)
    if not is_set_up(home):
        raise ConfigError(NO_MEMORY)
    settings = load(home).settings
    theme = _theme(args.theme, settings)
    memory = SharedMemory(home, theme, may_write=not args.read_only, trust=Trust(args.trust))
    _log_to_stderr()
    try:
        if args.listen is None:
            _serve_client(memory)
        else:
            _serve_http(memory, args.listen, args.token_file.expanduser(), json=args.json)
    finally:
        close_all(Deadline.after(settings.shutdown_drain_timeout))
    return 0


def _serve_client(memory: SharedMemory) -> None:
    from hermes_memory_pgvector.mcp import stdio

    if sys.stdin.isatty():
        terminal.complain(
            "waiting for an MCP client on standard input; clients start this by themselves. Ctrl-C ends it"
        )
    stdio.serve(memory)


def _serve_http(memory: SharedMemory, address: tuple[str, int], token_file: Path, *, json: bool) -> None:
    from hermes_memory_pgvector.mcp import http

    token = listening.token(token_file)
    with http.listening(*address, token) as bound:
        url = http.url_of(bound)

        def tell() -> None:
            if json:
                terminal.as_json(
                    {"url": url, "agent_identity": memory.theme, "tools": [each.name for each in memory.tools]}
                )
            else:
                terminal.say(f"Theme {memory.theme} for other agents, at {url}")
                terminal.say(f"They send the token of {token_file} (Authorization: Bearer …). Ctrl-C ends it.")
            sys.stdout.flush()

        http.serve(memory, bound, token, tell)
    terminal.complain("the server has ended")


def _theme(given: str, settings: Settings) -> str:
    """The theme under the operator's rules; another one than was named is never taken in silence."""
    from hermes_memory_pgvector.text.names import printable, theme_name
    from hermes_memory_pgvector.values import DEFAULT_THEME, is_private_theme

    name = theme_name(given)
    name = dict(settings.identity_aliases).get(name, name)
    if not name:
        raise ConfigError("--theme is empty: name the theme, as `hermes-pgvector list themes` shows it")
    is_allowed = not settings.allowed_themes or name in (*settings.allowed_themes, DEFAULT_THEME)
    if not is_allowed and not is_private_theme(name):
        raise ConfigError(f"theme {printable(name)!r} is not in allowed_themes")
    return name


def _require_sdk() -> None:
    try:
        import mcp  # noqa: F401
    except ImportError:
        from hermes_memory_pgvector import distribution

        raise ConfigError(f"the MCP SDK is not installed; run: {distribution.install_command(extra='mcp')}") from None


def _log_to_stderr() -> None:
    """Standard output belongs to the clients; what begins or ends an outage is said on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("hermes_memory_pgvector").addHandler(handler)
