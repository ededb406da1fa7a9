"""`sessions`: the conversations of a theme, or of all."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options, reach, rows, times
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.browse import SessionRow

NAME = "sessions"
HELP = "list sessions, last used first"
GROUP = "see"
EXAMPLES = (
    ("sessions", "the last conversations, whatever their theme"),
    ("sessions --theme marketing --since 30d", "those of one theme, of the last month"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme (default: all)")
    times.add_range(parser)
    parser.add_argument("--limit", type=options.positive, default=20, metavar="N", help="sessions a page (default: 20)")
    parser.add_argument("--page", metavar="PLACE", help="the next page, as the one before names it")


def run(args: argparse.Namespace) -> int:
    """Show a page of sessions."""
    from hermes_memory_pgvector.care import see

    with reach.reading(args, theme=args.theme) as connection:
        page = see.sessions(
            connection, args.theme, since=args.since, until=args.until, page=args.page, limit=args.limit
        )
    if args.json:
        terminal.as_json({"sessions": [_document(row) for row in page.rows], "next": page.following})
        return 0
    if not page.rows:
        terminal.say("No session is stored for this.")
        return 0
    # One theme need not be told on every line.
    own = () if args.theme else ("theme",)
    terminal.table(
        (*own, "session", "turns", "last (UTC)", "first (UTC)", "subagents", "begins with"),
        [
            (
                *(row.theme for _ in own),
                row.session_id,
                terminal.number(row.turns),
                times.shown(row.last),
                times.shown(row.first),
                terminal.number(row.delegations) if row.delegations else None,
                rows.line(row.begins_with, 80),
            )
            for row in page.rows
        ],
        right=(len(own) + 1, len(own) + 4),
    )
    if page.following:
        terminal.say(f"  next page: --page {page.following}")
    return 0


def _document(row: SessionRow) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if name != "last_id"}
