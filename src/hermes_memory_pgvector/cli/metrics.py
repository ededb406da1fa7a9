"""`metrics`: the fleet's numbers for Prometheus, printed, written to a file or served."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.cli import listening, options
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.service import start_thread
from hermes_memory_pgvector.setup import terminal

NAME = "metrics"
HELP = "print the fleet's numbers for Prometheus, or serve them"
GROUP = "run"
EXAMPLES = (
    ("metrics", "all numbers, as Prometheus reads them"),
    ("metrics --output /var/lib/node_exporter/hermes.prom", "for the textfile collector, replaced at once"),
    ("metrics --listen 127.0.0.1:9187", "serve them on this machine"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--output", type=Path, metavar="FILE", help="write to this file, replacing it at once")
    where.add_argument(
        "--listen",
        type=listening.address,
        metavar="HOST:PORT",
        help="serve under /metrics until Ctrl-C; port 0: any free one",
    )


def run(args: argparse.Namespace) -> int:
    """Print, write or serve."""
    from hermes_memory_pgvector.setup import exposition

    home = options.home_of(args)
    if args.listen is not None:
        return _serve(home, *args.listen, json=args.json)
    if args.output is not None:
        _write(args.output.expanduser(), exposition.text(home))
        if args.json:
            terminal.as_json({"file": str(args.output)})
    elif args.json:
        terminal.as_json({"metrics": exposition.document(home)})
    else:
        print(exposition.text(home), end="")
    return 0


def _write(path: Path, text: str) -> None:
    """Replace a file that others read: whoever looks finds the numbers of one moment.

    A pipe or a device is written to as it is; where a link stands, the file it names is replaced.
    """
    data = text.encode("utf-8")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            files.replace(path.resolve() if path.is_symlink() else path, data, is_durable=False, mode=0o644)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or type(error).__name__}") from None


def _serve(home: Path, host: str, port: int, *, json: bool) -> int:
    from hermes_memory_pgvector.setup import exposition

    try:
        server = exposition.MetricsServer(home, host, port)
    except OSError as error:
        raise ConfigError(f"{host}:{port} cannot be served: {error.strerror or type(error).__name__}") from None
    thread = start_thread(server.serve_forever, "hermes-pgvector-metrics")
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{server.server_port}/metrics"
    if json:
        terminal.as_json({"url": url})
    else:
        terminal.say(f"Serving {url}; Ctrl-C ends it.")
        if not _is_loopback(host):
            terminal.bullet(
                "warning", "whoever reaches this address can read the numbers, and the names of machines and folders"
            )
    try:
        with _until_asked() as asked:
            asked.wait()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    return 0


@contextlib.contextmanager
def _until_asked() -> Iterator[threading.Event]:
    """An event that is set when the system or the terminal says so."""
    asked = threading.Event()
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
