"""`unmute`: let recall find a muted memory or turn again."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.cli import correcting, mute, reach

NAME = "unmute"
HELP = "let recall find a muted memory or turn again"
GROUP = "correct"
EXAMPLES = (("unmute m12 --execute", "found by words at once, by meaning as soon as it has its vector"),)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    mute.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Unmute, or show what would be."""
    from hermes_memory_pgvector.care import changes, ids

    hand = correcting.hand_of(args)
    with reach.changing(args) as connection:
        found = changes.unmute(
            connection, [ids.parse_row(each) for each in args.ids], hand, execute=args.execute, theme=args.theme
        )
    return mute.tell(args, found, "unmuted")
