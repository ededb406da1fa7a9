"""`migrate`: bring the database to the schema this package needs, as its owner."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops.migration import DEFAULT_ROLE, Wanted
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings

NAME = "migrate"
HELP = "create or update the database schema (needs the owner's login)"
GROUP = "set up"
EXAMPLES = (
    ("migrate", "update the schema of the database in use"),
    ("migrate --admin-dsn postgresql://owner@db.example.com/hermes", "as the owner of the tables"),
    ("migrate --language german", "find German words in every inflection"),
    ("migrate --print", "only show the SQL"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    options.add_admin_dsn(parser)
    parser.add_argument(
        "--runtime-role",
        metavar="ROLE",
        help=f"role the agents connect as (default: the one named in dsn, else {DEFAULT_ROLE})",
    )
    parser.add_argument(
        "--switch-model",
        action="store_true",
        help="switch to the configured embedding model at once, however many rows are embedded again (see reembed)",
    )
    parser.add_argument(
        "--index",
        choices=("all",),
        help="also build the approximate index over all themes, which pays off for scope 'all' from 150,000 vectors on",
    )
    parser.add_argument(
        "--language",
        metavar="NAME",
        help="take words apart by this text search configuration of the server, such as german (default: as before, "
        "at first english); every row's words are made anew",
    )
    parser.add_argument("--print", action="store_true", dest="print_sql", help="show the SQL and connect to nothing")
    parser.add_argument(
        "--adopt-model",
        metavar="NAME",
        default="nomic-embed-text",
        help="model that made the vectors of an earlier installation (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Migrate; exit code 3 when the vector tables wait for the embedding endpoint, or the model for `reembed`."""
    home = options.home_of(args)
    settings = load(home).settings
    if args.print_sql:
        return _print_script(home, settings, args.runtime_role or DEFAULT_ROLE)
    admin = database.admin_dsn(home, settings, args.admin_dsn)
    role = args.runtime_role or database.role_for(settings, admin)
    wanted = database.wanted_model(home, settings)
    outcome = database.apply(
        admin,
        role,
        wanted.spec,
        adopt_model=args.adopt_model,
        switches_model=args.switch_model,
        quiet=args.json,
        language=args.language,
    )
    if args.index and outcome.model_id is not None:
        from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes

        with VectorIndexes.open(admin) as indexes:
            indexes.create()
    if args.json:
        terminal.as_json({**asdict(outcome), "runtime_role": role, "vectors_wait": wanted.problem or None})
    else:
        database.tell(outcome, wanted)
    return 3 if wanted.problem or outcome.kept_model else 0


def _print_script(home: Path, settings: Settings, role: str) -> int:
    """Print the SQL of a new database; the model's part only when its dimension is known without a connection."""
    from hermes_memory_pgvector.schema.migrate import script

    known = settings.uses_local_model or settings.embed_dim is not None
    wanted = database.wanted_model(home, settings) if known else Wanted(None)
    for part in script(wanted.spec, role):
        terminal.say(part)
    if wanted.spec is None:
        terminal.say(
            "-- vector tables left out: their dimension comes from the embedding endpoint; set embed_dim to see them"
        )
    return 0
