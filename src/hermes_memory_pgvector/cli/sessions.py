"""`sessions`: the conversations of a theme."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hermes_memory_pgvector.cli import options, reach, rows, times
from hermes_memory_pgvector.setup import terminal

NAME = "sessions"
HELP = "list the sessions of a theme, last used first"
GROUP = "see"
EXAMPLES = (("sessions --theme marketing --since 30d", "the conversations of the last month"),)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", required=True, help="the theme")
    times.add_range(parser)
    parser.add_argument("--limit", type=options.positive, default=20, metavar="N", help="sessions a page (default: 20)")
    parser.add_argument("--page", metavar="PLACE", help="the next page, as the one before names it")


def run(args: argparse.Namespace) -> int:
    """Show a page of sessions."""
    from hermes_memory_pgvector.care import see

    with reach.reading(args) as connection:
        page = see.sessions(
            connection, args.theme, since=args.since, until=args.until, page=args.page, limit=args.limit
        )
    if args.json:
        terminal.as_json({"sessions": [asdict(row) for row in page.rows], "next": page.following})
        return 0
    if not page.rows:
        terminal.say("Nothing was said in this theme at that time.")
        return 0
    terminal.table(
        ("session", "turns", "subagents", "first (UTC)", "last (UTC)", "begins with"),
        [
            (
                row.session_id,
                terminal.number(row.turns),
                terminal.number(row.delegations),
                times.shown(row.first),
                times.shown(row.last),
                rows.line(row.begins_with, 80),
            )
            for row in page.rows
        ],
        right=(1, 2),
    )
    if page.following:
        terminal.say(f"  next page: --page {page.following}")
    return 0
