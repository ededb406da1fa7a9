"""`audit`: who changed the memory, and who read across themes."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options, times
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.setup import parts, terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.audit_log import AuditRow

NAME = "audit"
HELP = "show who changed the memory, when, and how many rows"
GROUP = "erase"
EXAMPLES = (("audit --since 30d --action forget", "what was forgotten in the last thirty days"),)

READ_SECONDS = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only what concerned this theme")
    parser.add_argument("--action", metavar="NAME", help="only this command, for example forget")
    times.add_range(parser)
    parser.add_argument("--limit", type=options.positive, default=50, metavar="N", help="rows (default: 50)")
    parser.add_argument(
        "--before", type=options.positive, metavar="NUMBER", help="the next page: rows below this number"
    )


def run(args: argparse.Namespace) -> int:
    """Show the log, newest first."""
    from hermes_memory_pgvector.care import audit
    from hermes_memory_pgvector.store import schema

    home = options.home_of(args)
    deadline = Deadline.after(READ_SECONDS)
    with parts.open_pool(home, load(home).settings) as pool, pool.connection(deadline) as connection:
        schema.verify(connection)
        own_login = connection.info.user
        rows = audit.read(
            connection,
            theme=args.theme,
            action=args.action,
            since=args.since,
            until=args.until,
            before_id=args.before,
            limit=args.limit + 1,
        )
    shown = rows[: args.limit]
    following = shown[-1].id if len(rows) > len(shown) else None
    if args.json:
        terminal.as_json({"audit": [asdict(row) for row in shown], "next": following})
        return 0
    if not shown:
        terminal.say("Nothing is in the log for this.")
        return 0
    terminal.table(
        ("number", "when (UTC)", "who", "action", "theme", "what", "rows"),
        [_cells(row, own_login) for row in shown],
        right=(0,),
    )
    if following is not None:
        terminal.say(f"  older ones: --before {following}")
    return 0


def _cells(row: AuditRow, own_login: str) -> tuple[str, ...]:
    # Who it was is what somebody said; the login is what Postgres knows.
    who = row.actor if row.login == own_login else f"{row.actor} ({row.login})"
    counts = ", ".join(f"{name.replace('_', ' ')}: {terminal.number(value)}" for name, value in row.counts.items())
    return str(row.id), times.shown(row.at), who, row.action, row.theme or "–", row.subject or "–", counts
