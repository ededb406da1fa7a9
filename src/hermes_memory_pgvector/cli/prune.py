"""`prune`: delete turns that are past their time."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options, times
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.store.expiry import Rules

NAME = "prune"
HELP = "delete turns that are past their time (ttl_days); a dry run without --execute"
GROUP = "erase"
EXAMPLES = (
    ("prune", "what is older than ttl_days allows: a dry run"),
    ("prune --theme marketing --older-than 90d --execute", "everything of a theme that is older than 90 days"),
)

READ_SECONDS = 120.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme")
    parser.add_argument(
        "--older-than", type=times.moment, metavar="TIME", help=f"instead of what the settings say: {times.FORMS}"
    )
    parser.add_argument("--days", type=options.positive, metavar="N", help="the same as --older-than Nd")
    parser.add_argument("--execute", action="store_true", help="really do it")


def run(args: argparse.Namespace) -> int:
    """Show what would go, or delete it."""
    from hermes_memory_pgvector.care.themes import require
    from hermes_memory_pgvector.store import expiry, schema

    home = options.home_of(args)
    settings = load(home).settings
    theme = None if args.theme is None else options.named("--theme", theme_name(args.theme))
    rules = _rules(args, settings, theme)
    with parts.open_pool(home, settings) as pool:
        with pool.transaction(Deadline.after(READ_SECONDS)) as connection:
            schema.verify(connection)
            if theme is not None:
                require(connection, theme)
            found = expiry.due(connection, rules, 0)
            memories = _memories(connection, rules)
        counts = {"turns": sum(each.now for each in found), "memories": memories}
        if args.execute:
            counts = _execute(pool, rules, home)
    if args.json:
        themes = [{"theme": each.theme, "turns": each.now, "oldest": each.oldest} for each in found]
        terminal.as_json({"action": "prune", "executed": args.execute, "counts": counts, "themes": themes})
        return 0
    what = ", ".join(
        terminal.count(number, *noun)
        for name, noun in (("turns", ("turn",)), ("memories", ("memory", "memories")), ("delegations", ("delegation",)))
        if (number := counts.get(name, 0))
    )
    if not what:
        terminal.bullet("ok", "nothing to prune: nothing is that old")
    elif args.execute:
        terminal.bullet("ok", f"pruned: {what}")
    else:
        terminal.bullet("warning", f"dry run, nothing is changed: would prune {what}")
        rows = [(each.theme, terminal.number(each.now), f"{each.oldest:%Y-%m-%d}") for each in found]
        terminal.table(("theme", "turns", "oldest"), rows, right=(1,))
        terminal.bullet("note", "to do it", terminal.command("prune", *_again(args), "--execute"))
    return 0


def _rules(args: argparse.Namespace, settings: Settings, theme: str | None) -> Rules:
    from hermes_memory_pgvector.store.expiry import Rules

    if args.older_than is not None and args.days is not None:
        raise ConfigError("give --older-than or --days, not both")
    cut = args.older_than or (datetime.now(UTC) - timedelta(days=args.days) if args.days else None)
    if cut is not None:
        return Rules(cut, theme=theme)
    rules = Rules.of(settings, datetime.now(UTC), theme)
    if rules.is_empty:
        raise ConfigError("no setting says how long turns are kept: give --older-than 90d, or set ttl_days")
    return rules


def _memories(connection: Any, rules: Rules) -> int:
    from hermes_memory_pgvector.store import expiry

    return len(expiry.due_memories(connection, rules))


def _execute(pool: Pool, rules: Rules, home: Path) -> dict[str, int]:
    from hermes_memory_pgvector.care import actor
    from hermes_memory_pgvector.runtime.sweep import sweep_once

    who = actor.operator(home)
    counts: dict[str, int] = {}
    while True:
        expired = sweep_once(pool, rules, who.home_id, who.name)
        if expired is None:
            raise ConfigError("another process is pruning at this moment; try again")
        for name, number in expired.counts.items():
            counts[name] = counts.get(name, 0) + number
        if not expired.total:
            return counts


def _again(args: argparse.Namespace) -> list[str]:
    cut = args.older_than.isoformat() if args.older_than else None
    return [
        *options.again("--theme", args.theme),
        *options.again("--days", args.days),
        *options.again("--older-than", cut),
    ]
