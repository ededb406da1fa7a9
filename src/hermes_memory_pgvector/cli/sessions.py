"""`sessions`: the conversations of a theme, or of all."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options, reach, rows, times
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_memory_pgvector.care.lineage import Branch
    from hermes_memory_pgvector.store.browse import SessionRow

NAME = "sessions"
HELP = "list sessions, last used first"
GROUP = "see"
EXAMPLES = (
    ("sessions", "the last conversations, whatever their theme"),
    ("sessions --theme marketing --since 30d", "those of one theme, of the last month"),
    ("sessions --tree", "which session continued which, and who worked for whom"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme (default: all)")
    times.add_range(parser)
    parser.add_argument("--limit", type=options.positive, default=20, metavar="N", help="sessions a page (default: 20)")
    parser.add_argument("--page", metavar="PLACE", help="the next page, as the one before names it")
    parser.add_argument(
        "--tree", action="store_true", help="show branches, compressions and subagents below what they came from"
    )


def run(args: argparse.Namespace) -> int:
    """Show a page of sessions."""
    from hermes_memory_pgvector.care import lineage, see

    with reach.reading(args, theme=args.theme) as connection:
        page = see.sessions(
            connection, args.theme, since=args.since, until=args.until, page=args.page, limit=args.limit
        )
        grown = lineage.trees(connection, page.rows) if args.tree else []
    if args.tree:
        return _tell_trees(grown, page.following, json=args.json)
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


def _tell_trees(trees: Sequence[Branch], following: str | None, *, json: bool) -> int:
    if json:
        terminal.as_json({"trees": [each.document() for each in trees], "next": following})
        return 0
    if not trees:
        terminal.say("No session is stored for this.")
    shown = ""
    for tree in trees:
        if tree.theme != shown:
            shown = tree.theme
            terminal.say(terminal.styled(terminal.one_line(shown), "name"))
        _tell_branch(tree)
    if following:
        terminal.say(f"  next page: --page {following}")
    return 0


def _tell_branch(root: Branch) -> None:
    """A session and what came of it, each below and further in; not by recursion: a chain may be long."""
    waiting: list[tuple[Branch, str, str]] = [(root, "  ", "  ")]
    while waiting:
        branch, head, indent = waiting.pop()
        via = f"{terminal.one_line(branch.via)}: " if branch.via else ""
        after = f", after {terminal.one_line(branch.after)}" if branch.after else ""
        said = (
            f"{terminal.count(branch.turns, 'turn')}, {times.shown(branch.first)}" if branch.first else "no turns kept"
        )
        text = f"  {rows.line(branch.begins_with, 60)}" if branch.begins_with else ""
        terminal.wrap(
            [terminal.styled(branch.session_id, "strong"), f" ({said}{after}){text}"],
            len(indent) + 4,
            first=[f"{head}{via}"],
        )
        last = len(branch.children) - 1
        for place, child in reversed(list(enumerate(branch.children))):
            is_last = place == last
            waiting.append((child, f"{indent}{'└─ ' if is_last else '├─ '}", f"{indent}{'   ' if is_last else '│  '}"))
