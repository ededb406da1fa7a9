"""`migrate`: bring the database to the schema this package needs, as its owner."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import data_folder, load, secret
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseDenied, EmbeddingError, Held, SchemaError
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.admin.migrate import Outcome
    from hermes_memory_pgvector.admin.model_tables import ModelSpec
    from hermes_memory_pgvector.config.settings import Settings

NAME = "migrate"
HELP = "create or update the database schema (needs the owner's login)"

DEFAULT_ROLE = "hermes"
ASK_SECONDS = 30.0
SERVER_SECONDS = 120.0
NO_PRIVILEGE = "42501"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The embedding model whose tables are to exist, or why that cannot be told now."""

    spec: ModelSpec | None
    problem: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument(
        "--admin-dsn",
        metavar="DSN",
        help=f"login of the tables' owner (default: ${options.ADMIN_VARIABLE}, the embedded server's owner, or dsn)",
    )
    parser.add_argument(
        "--runtime-role",
        metavar="ROLE",
        help=f"role the agents connect as (default: the one named in dsn, else {DEFAULT_ROLE})",
    )
    parser.add_argument("--print", action="store_true", dest="print_sql", help="show the SQL and connect to nothing")
    parser.add_argument(
        "--adopt-model",
        metavar="NAME",
        default="nomic-embed-text",
        help="model behind the vectors of an earlier installation's tables (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Migrate; 3 when the vector tables have to wait for the embedding endpoint."""
    home = options.home_of(args)
    settings = load(home).settings
    if args.print_sql:
        return print_script(home, settings, args.runtime_role or DEFAULT_ROLE)
    admin = admin_dsn(home, settings, args.admin_dsn)
    role = args.runtime_role or role_for(settings, admin)
    wanted = wanted_model(home, settings)
    outcome = apply(admin, role, wanted.spec, adopt_model=args.adopt_model, quiet=args.json)
    if args.json:
        terminal.as_json({**asdict(outcome), "runtime_role": role, "vectors_wait": wanted.problem or None})
    else:
        tell(outcome, wanted)
    return 3 if wanted.problem else 0


def print_script(home: Path, settings: Settings, role: str) -> int:
    """The SQL of a new database; the model's part only when its dimension is known without asking."""
    from hermes_memory_pgvector.admin.migrate import script

    known = settings.uses_local_model or settings.embed_dim is not None
    wanted = wanted_model(home, settings) if known else Wanted(None)
    for part in script(wanted.spec, role):
        terminal.say(part)
    if wanted.spec is None:
        terminal.say(
            "-- vector tables: their dimension is asked of the embedding endpoint; set embed_dim to see them here"
        )
    return 0


def admin_dsn(home: Path, settings: Settings, given: str | None) -> str:
    """The login that may change the schema; an embedded server is made and started for it."""
    found = given or secret(home, options.ADMIN_VARIABLE)
    if found:
        return found
    if settings.hold:
        raise Held(settings.hold)
    if settings.dsn:
        return settings.dsn
    options.keep_from_embedded(home)
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    return EmbeddedPostgres(data_folder(home)).ensure_running(Deadline.after(SERVER_SECONDS)).owner_dsn


def role_for(settings: Settings, admin: str) -> str:
    """The role agents connect as: the one in the configured dsn unless that is the owner's own login."""
    from hermes_memory_pgvector.store.conninfo import user_of

    named = user_of(settings.dsn) if settings.dsn else ""
    return named if named and named != user_of(admin) else DEFAULT_ROLE


def wanted_model(home: Path, settings: Settings) -> Wanted:
    """What the embedder says of its model."""
    from hermes_memory_pgvector.admin.model_tables import ModelSpec

    try:
        with options.open_embedder(home, settings) as embedder:
            info = embedder.info(Deadline.after(ASK_SECONDS))
    except EmbeddingError as error:
        return Wanted(None, str(error))
    return Wanted(ModelSpec(info.name, info.dim, info.min_similarity))


def apply(
    admin: str,
    role: str,
    spec: ModelSpec | None,
    *,
    password: str | None = None,
    adopt_model: str,
    quiet: bool,
    tells_steps: bool = True,
) -> Outcome:
    """Run the migration and tell what it adopts and, if wanted, each step."""
    from hermes_memory_pgvector.admin import migrate
    from hermes_memory_pgvector.store.conninfo import brief

    try:
        return migrate.apply(
            admin,
            runtime_role=role,
            runtime_password=password,
            model=spec,
            adopt_model=adopt_model,
            report=_note if tells_steps and not quiet else _keep_quiet,
            announce=_keep_quiet if quiet else _note,
        )
    except DatabaseDenied as error:
        if error.sqlstate != NO_PRIVILEGE:
            raise
        raise SchemaError(
            f"the login {brief(admin)} may not change the schema; give the owner's: "
            "hermes-pgvector migrate --admin-dsn OWNER_DSN"
        ) from None


def _note(text: str) -> None:
    terminal.bullet("note", text)


def _keep_quiet(_: str) -> None:
    pass


def tell(outcome: Outcome, wanted: Wanted) -> None:
    """What was done, and what is left to do."""
    adopted = outcome.adopted_memories + outcome.adopted_turns
    if adopted:
        terminal.bullet(
            "ok",
            f"adopted {terminal.count(outcome.adopted_memories, 'memory', 'memories')}, "
            f"{terminal.count(outcome.adopted_turns, 'turn')} and {terminal.count(outcome.adopted_vectors, 'vector')}",
        )
    applied = f"{terminal.count(len(outcome.applied), 'migration')} applied" if outcome.applied else "nothing to apply"
    terminal.bullet("ok", f"{applied}; the schema is up to date")
    if wanted.spec is not None:
        terminal.bullet("ok", f"vectors: {wanted.spec.name}, {wanted.spec.dim} dimensions")
    for notice in outcome.notices:
        terminal.bullet("note", notice)
    if outcome.vectors_wanted:
        waiting = terminal.count(outcome.vectors_wanted, "row")
        terminal.bullet("note", f"{waiting} will get a vector of this model", "hermes-pgvector backfill does it now")
    if wanted.problem:
        terminal.bullet(
            "warning",
            f"vectors wait: {wanted.problem}",
            "everything else is ready; when the endpoint answers, run again: hermes-pgvector migrate",
        )
