"""`index`: the approximate index over all themes, as the tables' owner; it pays off only for very many vectors."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.schema.vector_indexes import Done, Survey

NAME = "index"
HELP = "list, create and drop the index over all themes, for scope 'all' (needs the owner's login)"
GROUP = "run"
EXAMPLES = (
    ("index", "whether there is one, and whether it would pay off"),
    ("index create", "build it; agents keep writing"),
)
ACTIONS = ("list", "create", "drop")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do (default: list)")
    parser.add_argument(
        "--memory", type=options.positive, metavar="MB", help="memory a build may use (default: as needed, up to 1024)"
    )
    options.add_admin_dsn(parser)


def run(args: argparse.Namespace) -> int:
    """List, create or drop."""
    from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes

    home = options.home_of(args)
    dsn = database.admin_dsn(home, load(home).settings, args.admin_dsn, may_create=False)
    remedy = f"hermes-pgvector index {args.action} --admin-dsn OWNER_DSN"
    with database.explaining_denial(dsn, "create or drop indexes", remedy), VectorIndexes.open(dsn) as indexes:
        if args.action == "list":
            return _list(indexes.survey(), json=args.json)
        done = indexes.create(memory_mb=args.memory) if args.action == "create" else indexes.drop()
    if args.json:
        terminal.as_json([asdict(each) for each in done])
        return 0
    for each in done:
        terminal.bullet("ok", _told(each, args.action))
    if not done:
        terminal.say("There is no such index.")
    return 0


def _told(done: Done, action: str) -> str:
    if action == "drop":
        return f"{done.name} dropped, {terminal.size(done.size_bytes)}"
    how = f"built in {terminal.seconds(done.seconds)}" if done.is_new else "is there already"
    return f"{done.name} {how}, {terminal.size(done.size_bytes)}"


def _list(survey: Survey, *, json: bool) -> int:
    from hermes_memory_pgvector.schema.vector_indexes import LARGE

    if json:
        terminal.as_json({**asdict(survey), "large": LARGE})
        return 0
    terminal.say(
        f"{terminal.count(survey.shared_vectors, 'vector')} of shared themes, by {survey.model.name}. "
        "A theme's own search compares all of its vectors and needs no index."
    )
    for index in survey.indexes:
        state = "being built" if index.is_building else "ready" if index.is_valid else "unfinished: create it again"
        terminal.bullet("ok" if index.is_valid else "note", f"{index.name}: {state}, {terminal.size(index.size_bytes)}")
    if not survey.indexes and survey.shared_vectors >= LARGE:
        terminal.bullet("note", "scope 'all' would be faster with one", "hermes-pgvector index create")
    elif not survey.indexes:
        terminal.say(f"There is none; it pays off from some {LARGE:,} on, for scope 'all'.")
    return 0
