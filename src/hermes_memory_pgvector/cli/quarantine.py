"""`quarantine`: take a poisoned batch out of every recall at once, and bring it back."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import correcting, dry_run, options, reach, rows, times
from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.setup import terminal
from hermes_memory_pgvector.text.names import session_name, theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.quarantine import Planned
    from hermes_memory_pgvector.store.quarantine import Quarantine, Rule

NAME = "quarantine"
HELP = "take a poisoned batch out of every recall, or bring it back"
GROUP = "correct"
EXAMPLES = (
    ("quarantine --session 20261116_065810_897385", "show what a session has left behind"),
    ("quarantine --origin web --since 2d --execute", "take out what turns that read the web brought in two days"),
    ("quarantine --list", "what is in quarantine"),
    ("quarantine --undo 3 --execute", "bring batch 3 back"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--session", metavar="ID", help="what this session wrote, and what it writes from now on")
    options.add_origin(parser)
    times.add_range(parser)
    parser.add_argument("--theme", metavar="THEME", help="only in this theme")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--undo", type=options.positive, metavar="N", help="bring this batch back")
    other.add_argument("--list", action="store_true", dest="lists", help="show all batches")
    correcting.add_execute(parser)


def run(args: argparse.Namespace) -> int:
    """Quarantine, bring back or list."""
    from hermes_memory_pgvector.care import quarantine

    if (args.lists or args.undo is not None) and any((args.session, args.origin, args.since, args.until, args.theme)):
        raise UsageError("--list and --undo take no other choice of rows")
    if args.lists:
        with reach.reading(args) as connection:
            found = quarantine.listed(connection)
        return _tell_list(args, list(found))
    if args.undo is not None:
        with reach.changing(args) as connection:
            undone = quarantine.undo(connection, args.undo, correcting.hand_of(args).actor, execute=args.execute)
        return _tell_undone(args, undone)
    from hermes_memory_pgvector.store.quarantine import Rule

    rule = Rule(
        None if args.session is None else options.named("--session", session_name(args.session)),
        args.origin,
        args.since,
        args.until,
        None if args.theme is None else options.named("--theme", theme_name(args.theme)),
    )
    with reach.changing(args) as connection:
        planned = quarantine.plan(connection, rule, correcting.hand_of(args).actor, execute=args.execute)
    return _tell(args, planned)


def _tell(args: argparse.Namespace, planned: Planned) -> int:
    made = planned.made
    told = dry_run.DryRun(
        "quarantine",
        [("memories", planned.memories), ("turns", planned.turns)],
        [
            dry_run.Sample(f"{times.shown(row.at)}  {row.theme}/{row.whose}", row.content, _sample(row))
            for row in planned.samples
        ],
        execute=shlex.join(["hermes-pgvector", "quarantine", *_named(args), "--execute"]),
        executed=made is not None,
        done="quarantined",
    )
    if args.json:
        terminal.as_json(
            {
                **told.document(),
                "batch": None if made is None else made.id,
                "rule": _rule(planned.rule),
                "themes": [
                    {
                        "theme": each.theme, "memories": each.memories, "turns": each.turns, "held": each.held,
                        "in_files": each.in_files,
                    }
                    for each in planned.themes
                ],
            }
        )  # fmt: skip
        return 0
    told.tell()
    if planned.in_files:
        terminal.bullet(
            "warning",
            f"{terminal.count(planned.in_files, 'memory', 'memories')} of these stand in a MEMORY.md or USER.md, which"
            " the host shows its agents by itself: remove the lines there",
        )
    if made is not None:
        again = terminal.command("quarantine", "--undo", str(made.id), "--execute")
        terminal.say(f"  batch {made.id}; to bring it back: {again}")
    return 0


def _tell_undone(args: argparse.Namespace, undone: Quarantine) -> int:
    executed = undone.undone_at is not None
    if args.json:
        terminal.as_json({"action": "undo", "executed": executed, **_document(undone)})
        return 0
    dry_run.DryRun(
        "bring back",
        [("memories", undone.memories), ("turns", undone.turns)],
        execute=shlex.join(["hermes-pgvector", "quarantine", "--undo", str(undone.id), "--execute"]),
        executed=executed,
        done="brought back",
    ).tell()
    return 0


def _tell_list(args: argparse.Namespace, found: list[Quarantine]) -> int:
    if args.json:
        terminal.as_json({"batches": [_document(each) for each in found]})
        return 0
    if not found:
        terminal.say("Nothing was ever quarantined.")
        return 0
    terminal.table(
        ("batch", "since (UTC)", "by", "what", "memories", "turns"),
        [
            (
                str(each.id),
                times.shown(each.at),
                each.actor,
                _told(each),
                terminal.number(each.memories),
                terminal.number(each.turns),
            )
            for each in found
        ],
        right=(4, 5),
    )
    return 0


def _told(each: Quarantine) -> str:
    """What a batch is about, in words."""
    from hermes_memory_pgvector.store.quarantine import IMPORTED

    rule = each.rule
    named = [f"{name} {value}" for name, value in (("session", rule.session_id), ("origin", rule.origin)) if value]
    if rule.since:
        named.append(f"since {times.shown(rule.since)}")
    if rule.until:
        named.append(f"until {times.shown(rule.until)}")
    if rule.theme:
        named.append(f"in {rule.theme}")
    if not each.is_rule:
        named = ["brought by an import" if each.actor == IMPORTED else "forgotten since"]
    told = ", ".join(named)
    return f"{told}; undone {times.shown(each.undone_at)}" if each.undone_at else told


def _document(each: Quarantine) -> dict[str, Any]:
    return {
        "batch": each.id, "at": each.at, "actor": each.actor, "rule": _rule(each.rule), "undone_at": each.undone_at,
        "counts": {"memories": each.memories, "turns": each.turns},
    }  # fmt: skip


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "theme": rule.theme, "session_id": rule.session_id, "origin": rule.origin, "since": rule.since,
        "until": rule.until,
    }  # fmt: skip


def _sample(row: Any) -> dict[str, Any]:
    return rows.row_document(row)


def _named(args: argparse.Namespace) -> list[str]:
    given = (("--session", args.session), ("--origin", args.origin), ("--theme", args.theme))
    found = [part for name, value in given if value for part in (name, value)]
    for name, at in (("--since", args.since), ("--until", args.until)):
        found += [name, at.isoformat()] if at else []
    return found
