"""`undo`: put back what an event changed."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.cli import correcting, options, reach
from hermes_memory_pgvector.terminal import lines as terminal

NAME = "undo"
HELP = "put back what an event of the history changed"
GROUP = "correct"
EXAMPLES = (
    ("undo e57", "show what undoing event 57 would change"),
    ("undo e57 --execute", "undo it; this is an event too, and can be undone"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("event", metavar="EVENT", help="the event, as `list events` names it: e57")
    parser.add_argument("--theme", metavar="THEME", help="refuse unless the event belongs to this theme")
    correcting.add_execute(parser)


def run(args: argparse.Namespace) -> int:
    """Undo an event, or show what that would change."""
    from hermes_memory_pgvector.care import changes, events, ids

    hand = correcting.hand_of(args)
    with reach.changing(args) as connection:
        found = changes.undo(connection, ids.parse_event(args.event), hand, execute=args.execute, theme=args.theme)
    if not args.json and found.event is not None:
        terminal.say(f"Event e{found.event.id}: {found.event.action} by {events.by(found.event)}")
    code = correcting.tell_correction(args, found, "undo", args.event, *options.again("--theme", args.theme))
    if found.executed and not args.json:
        correcting.tell_lines_to_add(found)
    return code
