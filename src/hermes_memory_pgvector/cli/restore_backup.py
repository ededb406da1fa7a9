"""`restore-backup`: put a backup back, here or on another machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import default_home
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import restoring, terminal
from hermes_memory_pgvector.setup.restoring import Plan

NAME = "restore-backup"
HELP = "put a file of `backup` back, into an empty home or in the place of what is there"
GROUP = "move"
EXAMPLES = (
    ("restore-backup memory.tar", "show what is in it, and what it would replace"),
    ("restore-backup memory.tar --execute", "into a home without memories"),
    ("restore-backup memory.tar --replace --execute", "in the place of what is there, which is kept aside"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="what `backup` has written")
    parser.add_argument("--replace", action="store_true", help="even if there are memories; they are kept aside")
    parser.add_argument("--execute", action="store_true", help="really do it")


def run(args: argparse.Namespace) -> int:
    """Show the plan, or carry it out."""
    home: Path = (args.hermes_home or default_home()).expanduser().absolute()
    path = args.file.expanduser().absolute()
    with terminal.progress("checking", quiet=args.json):
        plan = restoring.plan(path, home)
    if not plan.is_empty and not args.replace:
        raise ConfigError(f"{_there(plan)}; to put the backup in its place, which keeps the old aside, add --replace")
    aside: list[Path] = []
    troubles: list[str] = []
    if args.execute:
        with terminal.progress("restoring", quiet=args.json) as bar:
            aside = restoring.carry_out(path, plan, bar.phase)
            troubles = restoring.settle(plan)
    if args.json:
        terminal.as_json(
            {
                "executed": args.execute,
                "home": str(plan.root),
                "made_at": plan.manifest.made_at,
                "homes": [each.home for each in plan.manifest.homes],
                "themes": {
                    theme: {"memories": one, "turns": two} for theme, (one, two) in sorted(plan.manifest.themes.items())
                },
                "replaces": not plan.is_empty,
                "aside": [str(each) for each in aside],
                "troubles": troubles,
            }
        )
        return 0
    _tell(plan, args)
    if args.execute:
        for each in aside:
            terminal.bullet("note", f"what was there before is in {each}", "delete it when you no longer need it")
        for trouble in troubles:
            terminal.bullet("warning", f"settings of the backup are not in force: {trouble}")
        terminal.bullet("ok", f"restored into {plan.root}", "next: hermes-pgvector up")
    return 0


def _there(plan: Plan) -> str:
    told = [
        f"{plan.root / home} has {terminal.count(memories, 'memory', 'memories')} and {terminal.count(turns, 'turn')}"
        for home, memories, turns in plan.held
    ]
    told += [f"the server in {plan.root / home} cannot be started, so it may hold anything" for home in plan.unread]
    told += [f"the journal of {plan.root / home} holds records" for home in plan.waiting]
    return "; ".join(told)


def _tell(plan: Plan, args: argparse.Namespace) -> None:
    manifest = plan.manifest
    terminal.say(f"Backup of {manifest.made_at[:19].replace('T', ' ')} UTC, made by version {manifest.version}")
    terminal.table(
        ("theme", "memories", "turns"),
        [(theme, terminal.number(one), terminal.number(two)) for theme, (one, two) in sorted(manifest.themes.items())],
        right=(1, 2),
    )
    if args.execute:
        return
    terminal.bullet(
        "warning",
        f"dry run, nothing is changed: would restore {terminal.count(len(manifest.homes), 'home')} into {plan.root}",
    )
    if not plan.is_empty:
        terminal.bullet("warning", f"{_there(plan)}; this would be kept aside")
    for user in plan.users:
        terminal.bullet("warning", f"{user} uses this memory; it has to be stopped first")
    words = ["restore-backup", str(args.file), *(["--replace"] if args.replace else []), "--execute"]
    terminal.bullet("note", "to do it", terminal.command(*words))
