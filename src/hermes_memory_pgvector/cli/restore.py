"""`restore`: make a theme's memories those it held at a time."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.cli import correcting, options, reach, times

NAME = "restore"
HELP = "bring a theme's memories back to what they were at a time"
GROUP = "correct"
EXAMPLES = (
    ("restore --theme marketing --at 2026-05-31T14:00", "show what would go and what would come back"),
    ("restore --theme marketing --at 2h --execute", "go back two hours"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", required=True, help="the theme")
    parser.add_argument("--at", type=times.moment, metavar="TIME", required=True, help=f"{times.FORMS}; UTC")
    correcting.add_execute(parser)


def run(args: argparse.Namespace) -> int:
    """Restore, or show the difference."""
    from hermes_memory_pgvector.care import changes

    hand = correcting.hand_of(args)
    with reach.changing(args) as connection:
        found = changes.restore(connection, args.theme, args.at, hand, execute=args.execute)
    return correcting.tell_correction(
        args, found, "restore", *options.again("--theme", args.theme), "--at", args.at.isoformat(timespec="seconds")
    )
