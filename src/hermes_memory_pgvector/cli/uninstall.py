"""`uninstall`: take the memory out of a hermes installation, and with --purge everything it has stored here."""

from __future__ import annotations

import argparse
from pathlib import Path

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.ops.setup import removal
from hermes_memory_pgvector.ops.setup.removal import Plan, Step
from hermes_memory_pgvector.terminal import lines as terminal

NAME = "uninstall"
HELP = "take the memory out of hermes, in all profiles; --purge also deletes what is stored on this machine"
GROUP = "set up"
EXAMPLES = (
    ("uninstall", "show what would be done"),
    ("uninstall --execute", "do it; everything stored stays, and `up` brings it back"),
    ("uninstall --purge --execute", "also delete the embedded database, journals, dumps and passwords for good"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--purge", action="store_true", help="delete the embedded database, journals, dumps, settings")
    parser.add_argument("--execute", action="store_true", help="really do it")


def run(args: argparse.Namespace) -> int:
    """Show the plan, or carry it out."""
    home = options.home_of(args)
    plan = removal.plan(home, purge=args.purge)
    if args.execute:
        plan.execute((lambda _: None) if args.json else _tell_done)
    if args.json:
        terminal.as_json(
            {
                "executed": args.execute,
                "steps": [step.text for step in plan.steps],
                "stays": list(plan.stays),
                "processes": list(plan.users),
            }
        )
        return 0
    if not args.execute:
        _tell_plan(plan, _again(args, home))
    _tell_rest(plan, executed=args.execute)
    return 0


def _again(args: argparse.Namespace, home: Path) -> str:
    """The command that carries out what was shown, in any shell: without its home it would take out another memory."""
    words = ["uninstall", *(["--purge"] if args.purge else []), "--execute"]
    if not args.hermes_home and home != options.usual_home():
        words += ["--hermes-home", str(home)]
    return terminal.command(*words)


def _tell_plan(plan: Plan, again: str) -> None:
    if not plan.steps:
        terminal.bullet("ok", "nothing to remove")
        return
    terminal.say("Dry run, nothing is changed. This would:")
    for step in plan.steps:
        terminal.bullet("note", step.text)
    for user in plan.users:
        terminal.bullet("warning", f"{user} still uses this memory; stop it first")
    terminal.say(f"To do it: {again}")


def _tell_done(step: Step) -> None:
    terminal.bullet("ok", step.text)


def _tell_rest(plan: Plan, *, executed: bool) -> None:
    if plan.stays:
        terminal.say("What stays:" if executed else "What would stay:")
        for each in plan.stays:
            terminal.bullet("note", each)
