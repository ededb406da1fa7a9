"""`mute`: keep a memory or turn out of every recall without deleting it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import correcting, options, reach, rows
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.changes import Muting

NAME = "mute"
HELP = "keep a memory or turn out of every recall without deleting it"
GROUP = "correct"
EXAMPLES = (
    ("mute m12", "show what would be muted"),
    ("mute m12 t345 --execute", "mute a memory and a turn; `list hidden` shows what is"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("ids", metavar="ID", nargs="+", help="m12 for a memory, t34 for a turn")
    parser.add_argument("--theme", metavar="THEME", help="look into this theme only")
    correcting.add_execute(parser)


def run(args: argparse.Namespace) -> int:
    """Mute, or show what would be."""
    from hermes_memory_pgvector.care import changes, ids

    hand = correcting.hand_of(args)
    with reach.changing(args) as connection:
        found = changes.mute(
            connection, [ids.parse_row(each) for each in args.ids], hand, execute=args.execute, theme=args.theme
        )
    return tell(args, found, "muted")


def tell(args: argparse.Namespace, found: Muting, done: str) -> int:
    """Say what was or would be muted or heard again."""
    from hermes_memory_pgvector.care.changes import row_name

    if args.json:
        terminal.as_json(
            {
                "executed": found.executed,
                "rows": [row_name(row) for row in found.rows],
                "unchanged": list(found.unchanged),
            }
        )
        return 0
    for row in found.rows:
        terminal.wrap([rows.line(row.content)], 6, first=[f"  {row_name(row)}  {terminal.one_line(row.theme)}  "])
    for name in found.unchanged:
        terminal.bullet("note", f"{name} is {'muted already' if done == 'muted' else 'not muted'}")
    if found.executed:
        terminal.bullet("ok", f"{done}: {terminal.count(len(found.rows), 'row')}")
    elif found.rows:
        correcting.tell_dry_run(done.removesuffix("d"), *args.ids, *options.again("--theme", args.theme))
    return 0
