"""`homes`: which homes hold memories in this database, and how one takes over the entries of another.

An entry disappears when the last home that held it drops it. A home that no longer exists drops nothing, so the
operator has to say that it is gone. Its heir then holds its entries, and drops those that are not in its own files.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.cli import options, tree
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import parts, terminal
from hermes_memory_pgvector.store.reach import OPERATOR, OVERVIEW

NAME = "homes"
HELP = "list the homes that hold memories here; take over the entries of one that is gone"
GROUP = "see"
EXAMPLES = (
    ("homes list", "which homes hold memories here, and when each was last seen"),
    ("homes adopt 3f0c9a1e --execute", "take over the entries of a home that is gone"),
)

READ_SECONDS = 15.0
ADOPT_SECONDS = 120.0

Held = tuple[str, int, datetime | None]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    actions = tree.actions_of(parser, "homes_action")
    tree.add_action(
        actions,
        "list",
        "list them, and when each was last seen",
        options.add_common,
        example=("homes list", "which homes hold memories here"),
    )
    adopt = tree.add_action(
        actions,
        "adopt",
        "take over the entries of a home that is gone (a dry run without --execute)",
        options.add_common,
        example=("homes adopt 3f0c9a1e --execute", "this home now holds the entries of that one"),
    )
    adopt.add_argument("id", metavar="ID", help="the id of the home that is gone")
    adopt.add_argument("--execute", action="store_true", help="really do it")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    if args.homes_action is None:
        args.homes_action_parser.print_help()
        return 2
    home = options.home_of(args)
    if args.homes_action == "list":
        return _list(home, json=args.json)
    return _adopt(home, args.id, execute=args.execute, json=args.json)


def _list(home: Path, *, json: bool) -> int:
    from hermes_memory_pgvector.config.home import home_id

    own, found = home_id(home), _homes(home)
    if json:
        terminal.as_json(
            [{"home": each, "entries": entries, "heard_of": at, "own": each == own} for each, entries, at in found]
        )
    elif not found:
        terminal.bullet("ok", "no home holds a memory here yet")
    else:
        rows = [
            (each, terminal.number(entries), terminal.ago(at), "this home" if each == own else "")
            for each, entries, at in found
        ]
        terminal.table(("home", "entries", "last seen", ""), rows, right=(1,))
    return 0


def _adopt(home: Path, former: str, *, execute: bool, json: bool) -> int:
    from hermes_memory_pgvector.config.home import home_id

    own = home_id(home)
    if former == own:
        raise ConfigError(f"{former} is this home")
    entries = next((entries for each, entries, _ in _homes(home) if each == former), None)
    if entries is None:
        raise ConfigError(f"no home {former} holds memories here; see: hermes-pgvector homes list")
    if execute:
        entries = _take_over(home, former, own)
    if json:
        terminal.as_json({"home": former, "heir": own, "entries": entries, "adopted": execute, "executed": execute})
        return 0
    counted = terminal.count(entries, "entry", "entries")
    if execute:
        terminal.bullet("ok", f"this home now holds {counted} of home {former}")
    else:
        terminal.bullet(
            "note",
            f"would take over {counted} of home {former}; entries missing from this home's files go when those change",
            f"to do it: hermes-pgvector homes adopt {former} --execute",
        )
    return 0


def _homes(home: Path) -> list[Held]:
    from hermes_memory_pgvector.store import overview

    with (
        parts.open_pool(home, load(home).settings) as pool,
        pool.transaction(Deadline.after(READ_SECONDS), reach=OVERVIEW) as connection,
    ):
        return overview.homes(connection)


def _take_over(home: Path, former: str, heir: str) -> int:
    from hermes_memory_pgvector.care import actor, audit
    from hermes_memory_pgvector.clock import Clock
    from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
    from hermes_memory_pgvector.mirror.mirror import take_over
    from hermes_memory_pgvector.store import gate
    from hermes_memory_pgvector.store.current_model import current_model

    clock = Clock.of_home(data_folder(home))
    with (
        parts.open_pool(home, load(home).settings) as pool,
        pool.transaction(Deadline.after(ADOPT_SECONDS), reach=OPERATOR) as connection,
    ):
        # Before any home: a writer that is inside waits for the home, and whoever erases for that writer.
        gate.enter(connection)
        model: Any = current_model(connection)
        model_id = None if model is None else model.id
        taken = sum(take_over(connection, clock.now(), former, heir, target, model_id) for target in FILE_NAMES)
        audit.record(
            connection, actor.operator(home), "homes adopt", subject=f"home {former}", counts={"memories": taken}
        )
        return taken
