"""`themes`: what each theme holds, how it grows, and when it was last used."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hermes_memory_pgvector.cli import options, reach
from hermes_memory_pgvector.setup import terminal

NAME = "themes"
HELP = "list themes with their rows, growth and last use"
GROUP = "see"
EXAMPLES = (
    ("themes", "the largest themes"),
    ("themes --sort growth --top 10", "those that grew most in the last week"),
)

ORDERS = ("size", "growth", "recent", "name")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--sort", choices=ORDERS, default="size", help="size (default), growth, recent or name")
    parser.add_argument("--top", type=options.positive, metavar="N", help="how many to list (default: all)")


def run(args: argparse.Namespace) -> int:
    """Show the themes."""
    from hermes_memory_pgvector.care import themes

    with reach.reading(args) as connection:
        found = themes.ordered(themes.overview(connection), args.sort)
    shown = found[: args.top] if args.top else found
    if args.json:
        terminal.as_json({"themes": [asdict(theme) for theme in shown], "count": len(found)})
        return 0
    if not found:
        terminal.say("Nothing is stored yet.")
        return 0
    terminal.table(
        ("theme", "memories", "turns", "today", "7 days", "last write", "last recall", "access"),
        [
            (
                theme.theme,
                terminal.number(theme.memories),
                terminal.number(theme.turns),
                f"{theme.new_today:+,}" if theme.new_today else "–",
                f"{theme.new_this_week:+,}" if theme.new_this_week else "–",
                terminal.ago(theme.last_write),
                terminal.ago(theme.last_recall),
                "private" if theme.is_private else "shared",
            )
            for theme in shown
        ],
        right=(1, 2, 3, 4),
    )
    if len(found) > len(shown):
        terminal.say(f"  and {terminal.count(len(found) - len(shown), 'theme')} more; see --top")
    return 0
