"""What the commands that correct the memory share: whose hand it is, and what they say before and after."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import entries, options, rows
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.changes import Correction, Hand
    from hermes_memory_pgvector.care.reversal import Blocked
    from hermes_memory_pgvector.values import Target

WORK_REMAINS = 3
FILES = {"memory": "MEMORY.md", "user": "USER.md"}


def add_execute(parser: argparse.ArgumentParser) -> None:
    """Add the option without which nothing is changed."""
    parser.add_argument("--execute", action="store_true", help="do it; without this, only show what would change")


def hand_of(args: argparse.Namespace) -> Hand:
    """Whoever runs the command, with the clock of the home."""
    from hermes_memory_pgvector.care.actor import operator
    from hermes_memory_pgvector.care.changes import Hand
    from hermes_memory_pgvector.clock import Clock

    home = options.home_of(args)
    settings = load(home).settings
    clock = Clock()
    return Hand(operator(home), clock.now, settings.embed_on_write, settings.memory_max_chars, settings.history_days)


def tell_dry_run(*command: str) -> None:
    """Say that nothing was changed, and how to change it."""
    terminal.bullet("warning", "dry run: nothing was changed", f"to do it: {terminal.command(*command, '--execute')}")


def tell_correction(args: argparse.Namespace, found: Correction, *command: str) -> int:
    """Print what goes and what comes back, and which files win; return the exit code."""
    if args.json:
        terminal.as_json(_document(found))
        return WORK_REMAINS if found.blocked else 0
    for change in found.changes:
        _tell_texts("-", change.remove, found.theme, change.target)
        _tell_texts("+", change.restore, found.theme, change.target)
    for target, blocked in found.blocked:
        tell_blocked(target, blocked)
    if found.executed:
        what = f"{terminal.count(found.removed, 'memory', 'memories')} removed, {found.restored} put back"
        terminal.bullet("ok", f"done: {what}")
    elif found.removed or found.restored:
        tell_dry_run(*command)
    elif not found.blocked:
        terminal.bullet("ok", "nothing to do: the memories are as they were then")
    return WORK_REMAINS if found.blocked else 0


def tell_blocked(target: Target, blocked: Blocked) -> None:
    """Say that a file wins, and what to write there."""
    file = FILES[target]
    homes = ", ".join(home[:8] for home in blocked.homes)
    terminal.bullet("warning", f"it stands in {file} of home {homes}, and the file wins")
    terminal.say(f"   in that file, {'change this line:' if blocked.instead else 'remove this line:'}")
    entries.tell_text(blocked.content, indent=5)
    if blocked.instead:
        terminal.say("   to this one:")
        entries.tell_text(blocked.instead, indent=5)


def tell_lines_to_add(found: Correction) -> None:
    """Say that what came back stands in no file, and what to add where agents should see it in their prompt."""
    for change in found.changes:
        if change.restore:
            terminal.say(
                f"   it is recalled, but stands in no {FILES[change.target]}; to have it in the prompt, add there:"
            )
            for content in change.restore:
                entries.tell_text(content, indent=5)


def blocked_document(target: Target, blocked: Blocked) -> dict[str, Any]:
    """A file that wins, for --json."""
    return {
        "file": FILES[target],
        "homes": list(blocked.homes),
        "line": blocked.content,
        "instead": blocked.instead,
    }


def _document(found: Correction) -> dict[str, Any]:
    return {
        "agent_identity": found.theme,
        "executed": found.executed,
        "event": None if found.event is None else rows.event_document(found.event),
        "counts": {"removed": found.removed, "restored": found.restored, "blocked": len(found.blocked)},
        "changes": [
            {"target": change.target, "remove": list(change.remove), "restore": list(change.restore)}
            for change in found.changes
        ],
        "files_win": [blocked_document(target, blocked) for target, blocked in found.blocked],
    }


def _tell_texts(sign: str, contents: Sequence[str], theme: str, target: str) -> None:
    for content in contents:
        terminal.wrap([rows.line(content)], 6, first=[f"  {sign} {theme}/{target}  "])
