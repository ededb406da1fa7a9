"""`remap`: merge one theme into another, or give it another name."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import parts, terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_memory_pgvector.care.remapping import Plan
    from hermes_memory_pgvector.config.settings import Settings

NAME = "remap"
HELP = "merge one theme into another, or rename it (a dry run without --execute)"
GROUP = "correct"
EXAMPLES = (
    ("remap sales marketing", "what would be moved: a dry run"),
    ("remap sales marketing --execute", "move it; what is written to sales from now on goes to marketing"),
)

READ_SECONDS = 120.0
NOUNS = {
    "turns": ("turn", "turns"),
    "memories": ("memory", "memories"),
    "history": ("history event", "history events"),
    "delegations": ("delegation", "delegations"),
    "recall_log": ("logged recall", "logged recalls"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("old", nargs="?", metavar="OLD", help="the theme that goes")
    parser.add_argument("new", nargs="?", metavar="NEW", help="the theme that gets everything; it need not exist yet")
    parser.add_argument("--old", dest="old_option", metavar="OLD", help=argparse.SUPPRESS)
    parser.add_argument("--new", dest="new_option", metavar="NEW", help=argparse.SUPPRESS)
    parser.add_argument("--execute", action="store_true", help="really do it; may be run again if it was interrupted")


def run(args: argparse.Namespace) -> int:
    """Show what would be moved, or move it."""
    from hermes_memory_pgvector.care import actor, remapping
    from hermes_memory_pgvector.store import schema

    old, new = theme_name(args.old_option or args.old or ""), theme_name(args.new_option or args.new or "")
    if not old or not new:
        raise ConfigError("name two themes: the one that goes, and the one that gets everything")
    home = options.home_of(args)
    settings = load(home).settings
    with parts.open_pool(home, settings) as pool:
        with pool.transaction(Deadline.after(READ_SECONDS)) as connection:
            schema.verify(connection)
            plan = remapping.plan(connection, old, new)
        counts = remapping.carry_out(pool, plan, actor.operator(home)) if args.execute else None
    if args.json:
        document = {"action": "remap", "executed": args.execute, **asdict(plan)}
        terminal.as_json(document if counts is None else {**document, "moved": counts})
        return 0
    if counts is None:
        _tell(plan)
    else:
        folded = counts.get("duplicates", 0)
        more = f"; {terminal.count(folded, 'duplicate')} folded" if folded else ""
        terminal.bullet("ok", f"moved to {terminal.one_line(new)}: {_counted(counts) or 'nothing was left'}{more}")
        terminal.bullet(
            "note", f"what is written to {terminal.one_line(old)} from now on goes to {terminal.one_line(new)}"
        )
    _tell_hints(plan)
    _tell_days(plan, settings)
    return 0


def _tell(plan: Plan) -> None:
    old, new = terminal.one_line(plan.old), terminal.one_line(plan.new)
    verb = "rename" if plan.is_new else "merge"
    begun = "; a move that was begun goes on" if plan.is_begun else ""
    what = _counted(asdict(plan.contents)) or "nothing"
    terminal.bullet("warning", f"dry run, nothing is changed: would {verb} {old} into {new}: {what}{begun}")
    if plan.contents.duplicates:
        terminal.bullet(
            "note", f"{terminal.count(plan.contents.duplicates, 'memory', 'memories')} of them {new} has, too"
        )
    terminal.bullet("note", "to do it", terminal.command("remap", plan.old, plan.new, "--execute"))


def _tell_hints(plan: Plan) -> None:
    if plan.becomes_public:
        terminal.bullet("warning", f"{plan.old} is private: in {plan.new} everybody who searches all themes finds it")
    if plan.becomes_private:
        terminal.bullet("warning", f"{plan.new} is private: nobody else finds there what they now find in {plan.old}")
    if plan.contents.indexes:
        terminal.bullet(
            "note",
            f"{plan.old} has an index of its own, which does not follow",
            f"{terminal.command('index', 'drop', '--theme', plan.old)}; "
            + terminal.command("index", "create", "--theme", plan.new),
        )


def _tell_days(plan: Plan, settings: Settings) -> None:
    """Say when turns are kept for another time than before."""
    rules = dict(settings.ttl)
    was, there = (rules.get(theme, settings.ttl_days) for theme in (plan.old, plan.new))
    # The rule of a name that goes holds on if it keeps more; see expiry.Rules.renamed.
    will = (0 if 0 in (was, there) else max(was, there)) if plan.old in rules else there
    if will and (not was or will < was):
        terminal.bullet("warning", f"{plan.old} keeps its turns {_days(was)}, {plan.new} {_days(there)}: older ones go")
    elif will != there:
        terminal.bullet("warning", f"ttl keeps the turns of {plan.old} {_days(was)}: so it will those of {plan.new}")


def _days(days: int) -> str:
    return terminal.count(days, "day") if days else "for good"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(terminal.count(counts[name], *noun) for name, noun in NOUNS.items() if counts.get(name))
