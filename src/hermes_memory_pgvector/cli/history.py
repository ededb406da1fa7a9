"""`history`: every add, replace and remove of memories."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.cli import options, reach, rows, times
from hermes_memory_pgvector.setup import terminal

NAME = "history"
HELP = "show how memories changed: when, by whom, and from what to what"
GROUP = "correct"
EXAMPLES = (
    ("history --theme marketing --since 30d", "what changed in a theme in the last month"),
    ("history --id m12", "how one memory came to be"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme (default: all)")
    parser.add_argument("--id", metavar="ID", help="only what made this memory what it is")
    times.add_range(parser)
    parser.add_argument("--limit", type=options.positive, default=20, metavar="N", help="events a page (default: 20)")
    parser.add_argument("--page", metavar="EVENT", help="the next page: events before this one")


def run(args: argparse.Namespace) -> int:
    """Show a page of the history, newest first."""
    from hermes_memory_pgvector.care import changes, ids

    with reach.reading(args, theme=args.theme) as connection:
        page = changes.history(
            connection,
            theme=args.theme,
            name=ids.parse_row(args.id) if args.id else None,
            since=args.since,
            until=args.until,
            before=ids.parse_event(args.page) if args.page else None,
            limit=args.limit,
        )
    if args.json:
        document = {"events": [rows.event_document(event) for event in page.events], "next": page.following}
        terminal.as_json(document)
        return 0
    if not page.events:
        terminal.say("No memory was changed there at that time.")
        return 0
    rows.tell_events(page.events)
    if page.following:
        terminal.say(f"  next page: --page {page.following}")
    return 0
