"""`list`: memories, turns or sessions, newest first."""

from __future__ import annotations

import argparse
from dataclasses import replace

from hermes_memory_pgvector.cli import options, reach, rows, sessions, times
from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.setup import terminal

NAME = "list"
HELP = "list memories, turns or sessions, newest first"
GROUP = "see"
EXAMPLES = (
    ("list --theme marketing --memories", "what a theme knows"),
    ("list --turns --since 7d --limit 50", "what was said in the last week, in every theme"),
    ("list --origin web --since 7d", "what came out of turns that read the web"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme (default: all)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--memories", action="store_true", help="only memories")
    which.add_argument("--turns", action="store_true", help="only turns")
    which.add_argument("--sessions", action="store_true", help="sessions, last used first")
    which.add_argument("--muted", action="store_true", help="only what `mute` keeps out of recall")
    options.add_origin(parser)
    times.add_range(parser)
    parser.add_argument("--limit", type=options.positive, default=20, metavar="N", help="rows a page (default: 20)")
    parser.add_argument("--page", metavar="PLACE", help="the next page, as the one before names it")


def run(args: argparse.Namespace) -> int:
    """Show a page."""
    _check(args)
    if args.sessions:
        return sessions.run(args)
    from hermes_memory_pgvector.care import see
    from hermes_memory_pgvector.values import Kind

    has_more = False
    kinds = (Kind.MEMORY,) if args.memories else (Kind.TURN,) if args.turns else see.BOTH
    with reach.reading(args, theme=args.theme) as connection:
        if args.muted:
            page = see.muted(connection, theme=args.theme, limit=args.limit + 1)
        else:
            page = see.rows(
                connection,
                kinds=kinds,
                theme=args.theme,
                since=args.since,
                until=args.until,
                page=args.page,
                limit=args.limit,
                origin=args.origin,
            )
    if len(page.rows) > args.limit:
        # What is muted has no pages.
        page, has_more = replace(page, rows=page.rows[: args.limit]), True
    if args.json:
        terminal.as_json({"rows": [rows.row_document(row) for row in page.rows], "next": page.following})
        return 0
    if page.rows:
        rows.tell_rows(page.rows)
    else:
        terminal.say("Nothing is stored for this.")
    if page.following:
        terminal.say(f"  next page: --page {page.following}")
    if has_more:
        terminal.say("  and more; see --limit")
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse options that would be ignored: whoever gives one takes the list for what it is not."""
    given = {"--origin": args.origin, "--since": args.since, "--until": args.until, "--page": args.page}
    what = "--muted" if args.muted else "--sessions" if args.sessions else ""
    for name in {"--muted": tuple(given), "--sessions": ("--origin",)}.get(what, ()):
        if given[name]:
            raise UsageError(f"{what} does not go with {name}")
