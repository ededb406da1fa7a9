"""`ui`: the memory page in a browser, without the host's dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import Operation, Option, Stream

if TYPE_CHECKING:
    from hermes_memory_pgvector.web.server import PageServer

DEFAULT: Final = "127.0.0.1:0"


@dataclass(frozen=True, slots=True)
class Served:
    """Where the page is; it is there until somebody ends it."""

    url: str = column("address")
    home: str = ""
    advice: str = column("", is_aside=True)


def ui(memory: Memory, *, listen: tuple[str, int], token_file: str | None, open: bool) -> Stream:
    """Serve until somebody ends it."""
    from hermes_memory_pgvector.web.server import PageServer

    token = "" if token_file is None else _token(Path(token_file).expanduser())
    return Stream(_closed_after(PageServer(memory.home, *listen, token), opens=open), is_endless=True)


def serving(server: PageServer, *, opens: bool) -> Iterator[Served]:
    """Tell where the page is, and answer."""
    yield Served(server.url, str(server.home), "Ctrl-C ends the page")
    if opens:
        import webbrowser

        webbrowser.open(server.url)
    server.serve_forever(poll_interval=0.2)


def _closed_after(server: PageServer, *, opens: bool) -> Iterator[Served]:
    """Give the port back at the end, and the engine its connections."""
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.runtime.registry import close_all

    try:
        yield from serving(server, opens=opens)
    finally:
        server.server_close()
        close_all(Deadline.after(5))


def _token(path: Path) -> str:
    """The token in a file that nobody else may read."""
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"{path} can be read by others; close it to them: chmod 600 {path}")
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise ConfigError(f"{path} cannot be read: {reason}") from None
    if not found or not found.isascii() or not found.isprintable():
        raise ConfigError(f"{path} holds no token: one line of letters and digits is needed")
    return found


UI: Final = Operation(
    "ui",
    "serve the memory page for a browser on this machine",
    (
        Option("--listen", f"default: {DEFAULT}, any free port", parse.address, ("127.0.0.1", 0), metavar="HOST:PORT"),
        Option("--token-file", "a file with the token that opens the page, as often as needed", metavar="FILE"),
        Option("--open", "open the page in your browser", is_flag=True),
    ),
    ui,
    (
        ("ui", "serve the page on this machine and print its address"),
        ("ui --listen 127.0.0.1:9121 --open", "on a port of your choice, in your browser"),
        ("ui --listen 10.0.0.7:9121 --token-file ~/.hermes/page.token", "for others, who need the token of the file"),
    ),
    group="run",
    on_page=False,
)  # fmt: skip
