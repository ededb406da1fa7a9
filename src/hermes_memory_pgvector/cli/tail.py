"""`tail`: what arrives in the memory, as it arrives."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options, reach, rows, times
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.setup import parts, terminal
from hermes_memory_pgvector.terminal.sink import Part

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.tail import News

NAME = "tail"
HELP = "follow what arrives in the memory, until Ctrl-C"
GROUP = "see"
EXAMPLES = (("tail --theme marketing", "turns and memories of a theme, as they are stored"),)

PAUSE_SECONDS = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme (default: all)")
    parser.add_argument("--lines", type=_count, default=10, metavar="N", help="rows to begin with (default: 10)")


def run(args: argparse.Namespace) -> int:
    """Follow, with a look every second; with --json each row is one line."""
    from hermes_memory_pgvector.care import see, themes
    from hermes_memory_pgvector.care.tail import Tail
    from hermes_memory_pgvector.store import schema

    home = options.home_of(args)
    with parts.open_pool(home, load(home).settings) as pool, _until_interrupted() as stopped:
        with pool.transaction(Deadline.after(reach.READ_SECONDS), pause_seconds=reach.READ_SECONDS) as connection:
            schema.verify(connection)
            if args.theme is not None:
                themes.require(connection, args.theme)
            tail = Tail(connection, args.theme)
            if args.lines:
                page = see.rows(connection, theme=args.theme, limit=args.lines)
                for row in reversed(page.rows):
                    _tell(args, rows.row_document(row), f"{row.target or row.role}", row.content)
        while not stopped.wait(PAUSE_SECONDS):
            with pool.transaction(Deadline.after(reach.READ_SECONDS), pause_seconds=reach.READ_SECONDS) as connection:
                news = tail.look(connection)
            _tell_news(args, news)
    return 0


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Set when somebody presses Ctrl-C; a second time, it interrupts as usual."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, former)

    former = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, former)


def _count(text: str) -> int:
    return 0 if text.strip() == "0" else options.positive(text)


def _tell_news(args: argparse.Namespace, news: News) -> None:
    told = [(row.at, rows.row_document(row), str(row.role), row.content) for row in news.turns]
    told += [
        (
            event.at,
            {"kind": "event", "ts": event.at, **rows.event_document(event)},
            event.action,
            rows.event_text(event),
        )
        for event in news.events
    ]
    for _, document, what, text in sorted(told, key=lambda each: each[0]):
        _tell(args, document, what, text)


def _tell(args: argparse.Namespace, document: dict[str, Any], what: str, text: str) -> None:
    if args.json:
        terminal.say(rows.json_line(document))
        return
    letter = {"memory": "m", "turn": "t", "event": "e"}[str(document["kind"])]
    number = document.get("id") or document.get("event")
    first: list[Part] = [
        f"{times.shown(document['ts'])}  {letter}{number}  ",
        terminal.styled(document["agent_identity"], "name"),
        f"/{what}  ",
    ]
    terminal.wrap([rows.line(text)], 6, first=first)
