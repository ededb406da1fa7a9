"""`promote`: move everything from the embedded server to a Postgres of your own, or back, while agents run."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import promoting, promotion, terminal
from hermes_memory_pgvector.setup.database import DEFAULT_ROLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_memory_pgvector.setup.promoting import Outcome
    from hermes_memory_pgvector.setup.promotion import Plan

NAME = "promote"
HELP = "move everything from the embedded server to a Postgres of your own, or back (a dry run without --execute)"
GROUP = "move"
EXAMPLES = (
    ("promote --to postgresql://admin@db.example.com/memory", "what would move, and whether it can: a dry run"),
    ("promote --to postgresql://admin@db.example.com/memory --execute", "move; agents go on meanwhile"),
    ("promote --to embedded --execute", "back to the embedded server"),
    ("promote --drop-embedded --execute", "delete the embedded data that was left behind"),
)

FAILED, REMAINS = 1, 3
NOUNS = {
    "memory_entries": ("memory", "memories"),
    "conversations": ("turn", "turns"),
    "memory_operations": ("history event", "history events"),
    "delegations": ("delegation", "delegations"),
}
STAGES = {
    promotion.COPY: "",
    promotion.OPEN: "everything was copied and compared; what is left is to open it and let the homes follow",
    promotion.FOLLOW: "everything has moved; what is left is to let the homes follow",
    promotion.DONE: "everything has moved already",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument(
        "--to",
        metavar="DSN",
        help="the new database: a connection string with the login of an administrator, or `embedded`",
    )
    parser.add_argument(
        "--admin-dsn",
        metavar="DSN",
        help="login that owns the tables in your Postgres; --to then names the agents' login",
    )
    parser.add_argument(
        "--runtime-role", metavar="ROLE", help=f"role the agents connect as (default: a new one, {DEFAULT_ROLE})"
    )
    parser.add_argument("--cancel", action="store_true", help="take back a move that no home has followed yet")
    parser.add_argument(
        "--drop-embedded", action="store_true", help="delete the embedded data that a finished move has left behind"
    )
    parser.add_argument("--execute", action="store_true", help="really do it; run it again if it was interrupted")


def run(args: argparse.Namespace) -> int:
    """Show what would move, or move it."""
    home = options.home_of(args)
    if args.drop_embedded:
        if args.to or args.cancel:
            raise ConfigError("--drop-embedded is a step of its own: leave out --to and --cancel")
        return _drop(args, home)
    if not args.to:
        raise ConfigError("say where to: --to DSN names your Postgres, --to embedded the embedded server")
    ends = promotion.ends_of(home, args.to, args.admin_dsn)
    if args.cancel:
        return _cancel(args, home, ends)
    plan = promotion.plan(ends)
    if not args.execute or plan.problems:
        return _show(args, home, plan)
    from hermes_memory_pgvector.care import actor

    who = actor.operator(home)
    outcome = promoting.carry_out(ends, role=args.runtime_role, actor=(who.name, who.home_id), quiet=args.json)
    if args.json:
        terminal.as_json({**_document(plan, executed=True), **asdict(outcome)})
    else:
        _tell_outcome(plan, outcome)
    return REMAINS if outcome.left else 0


def _show(args: argparse.Namespace, home: Path, plan: Plan) -> int:
    if args.json:
        terminal.as_json(_document(plan, executed=False))
        return FAILED if plan.problems else 0
    ends = plan.ends
    what = _counted(plan.counts) or "nothing"
    terminal.bullet(
        "warning",
        f"dry run, nothing is changed: would move {what} of {terminal.count(plan.themes, 'theme')} "
        f"({terminal.size(plan.bytes)}) from {ends.old_place} to {ends.new_place}",
    )
    terminal.bullet("note", f"at the other end: {plan.target}{f' ({plan.server})' if plan.server else ''}")
    if STAGES[plan.stage] and not plan.problems:
        terminal.bullet("note", STAGES[plan.stage])
    for each in ends.homes:
        terminal.bullet("note", f"would follow: {each}")
    for problem in plan.problems:
        terminal.bullet("problem", problem)
    if not plan.problems:
        terminal.bullet("note", "to do it", _again(args, home))
    return FAILED if plan.problems else 0


def _tell_outcome(plan: Plan, outcome: Outcome) -> None:
    for note in outcome.notes:
        terminal.bullet("note", note)
    if outcome.left:
        terminal.bullet("warning", "not every home could follow; mend that and run this again")
    elif plan.ends.is_back:
        terminal.bullet("ok", "everything is on the embedded server; the tables in your Postgres stay, closed")
    else:
        terminal.bullet(
            "ok",
            f"everything is in {plan.ends.new_place}; agents connect as {outcome.role}",
            f"when you no longer need the old data: {terminal.command('promote', '--drop-embedded', '--execute')}",
        )


def _cancel(args: argparse.Namespace, home: Path, ends: promotion.Ends) -> int:
    text = promoting.cancel(ends, execute=args.execute)
    if args.json:
        terminal.as_json({"action": "cancel", "executed": args.execute, "result": text})
    else:
        terminal.bullet("ok" if args.execute else "warning", text if args.execute else f"dry run: {text}")
        if not args.execute:
            terminal.bullet("note", "to do it", _again(args, home))
    return 0


def _drop(args: argparse.Namespace, home: Path) -> int:
    folder, freed = promoting.drop_embedded(home, execute=args.execute)
    if args.json:
        terminal.as_json({"action": "drop-embedded", "executed": args.execute, "folder": str(folder), "bytes": freed})
    elif args.execute:
        terminal.bullet("ok", f"deleted the embedded database in {folder}: {terminal.size(freed)}")
    else:
        terminal.bullet(
            "warning",
            f"dry run, nothing is changed: would delete the embedded database in {folder}: {terminal.size(freed)}",
        )
        terminal.bullet("note", "to do it", _again(args, home))
    return 0


def _again(args: argparse.Namespace, home: Path) -> str:
    """The command that carries out what was shown; a password that was typed into it is not repeated."""
    from hermes_memory_pgvector.postgres.conninfo import split_password

    words = ["promote"]
    for name, value in (("--to", args.to), ("--admin-dsn", args.admin_dsn)):
        if value:
            words += [name, value if value == promotion.EMBEDDED else split_password(value)[0]]
    words += ["--runtime-role", args.runtime_role] if args.runtime_role else []
    words += ["--cancel"] if args.cancel else []
    words += ["--drop-embedded"] if args.drop_embedded else []
    words.append("--execute")
    if not args.hermes_home and home != options.usual_home():
        words += ["--hermes-home", str(home)]
    return terminal.command(*words)


def _counted(counts: Mapping[str, int]) -> str:
    vectors = sum(rows for name, rows in counts.items() if "_vectors_" in name)
    told = [terminal.count(counts[name], *noun) for name, noun in NOUNS.items() if counts.get(name)]
    return ", ".join([*told, *([terminal.count(vectors, "vector")] if vectors else [])])


def _document(plan: Plan, *, executed: bool) -> dict[str, Any]:
    return {
        "action": "promote",
        "executed": executed,
        "from": plan.ends.old_place,
        "to": plan.ends.new_place,
        "target": plan.target,
        "server": plan.server or None,
        "stage": plan.stage,
        "homes": [str(each) for each in plan.ends.homes],
        "tables": dict(plan.counts),
        "themes": plan.themes,
        "bytes": plan.bytes,
        "problems": list(plan.problems),
    }
