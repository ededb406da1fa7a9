"""`ui`: the memory page in a browser, without the host's dashboard."""

from __future__ import annotations

import argparse
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import listening, options
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import parse

if TYPE_CHECKING:
    from hermes_memory_pgvector.web.server import PageServer

NAME = "ui"
HELP = "open the memory page in a browser"
GROUP = "run"
EXAMPLES = (
    ("ui", "serve the page on this machine and print its address"),
    ("ui --listen 127.0.0.1:9121 --open", "on a port of your choice, in your browser"),
    ("ui --listen 10.0.0.7:9121 --token-file ~/.hermes/page.token", "for others, who need the token of the file"),
)

DEFAULT = "127.0.0.1:0"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument(
        "--listen",
        type=parse.address,
        default=DEFAULT,
        metavar="HOST:PORT",
        help=f"default: {DEFAULT}, any free port",
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="a file with the token that opens the page, as often as needed"
    )
    parser.add_argument("--open", action="store_true", help="open the page in your browser")


def run(args: argparse.Namespace) -> int:
    """Serve until somebody presses Ctrl-C."""
    from hermes_memory_pgvector.web.server import PageServer

    home = options.home_of(args)
    host, port = args.listen
    token = "" if args.token_file is None else listening.token(args.token_file.expanduser())
    with contextlib.closing(_Closing(PageServer(home, host, port, token))) as served:
        return serve(served.server, json=args.json, opens=args.open)


def serve(server: PageServer, *, json: bool, opens: bool) -> int:
    """Tell where the page is, and answer until the end."""
    if json:
        terminal.as_json({"url": server.url, "home": str(server.home)})
    else:
        terminal.say(f"The memory of {server.home}, in your browser:")
        terminal.say(f"  {server.url}")
        terminal.say("Ctrl-C ends the page.")
    if opens:
        import webbrowser

        webbrowser.open(server.url)
    with _ending():
        server.serve_forever(poll_interval=0.2)
    return 0


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """End in peace when the system or the terminal says so."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        terminal.complain("the page has ended")
    finally:
        signal.signal(signal.SIGTERM, before)


class _Closing:
    """A server that gives its port back, and the engine its connections."""

    def __init__(self, server: PageServer) -> None:
        self.server = server

    def close(self) -> None:
        """Close both."""
        from hermes_memory_pgvector.deadline import Deadline
        from hermes_memory_pgvector.runtime.registry import close_all

        self.server.server_close()
        close_all(Deadline.after(5))
