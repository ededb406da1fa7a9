"""The schema of a home's database: whose login changes it, which model's tables it needs, and the migration itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.settings_file import load, secret
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseDenied, EmbeddingError, SchemaError
from hermes_memory_pgvector.ops import parts, password, profiles
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.amounts import count
from hermes_memory_pgvector.terminal.operation import Note, command

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.schema.migrate import Outcome
    from hermes_memory_pgvector.schema.model_tables import NewModel

ADMIN_VARIABLE = "HERMES_PGVECTOR_ADMIN_DSN"
DEFAULT_ROLE = "hermes"
EMBEDDER_SECONDS = 30.0
SERVER_SECONDS = 120.0
NO_PRIVILEGE = "42501"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The embedding model whose tables the database needs, or why we cannot tell now."""

    spec: NewModel | None
    problem: str = ""


def admin_dsn(home: Path, settings: Settings, given: str | None, *, may_create: bool = True) -> str:
    """The login that may change the schema; the embedded server is started for it, and created if allowed."""
    found = given or secret(home, ADMIN_VARIABLE)
    if found:
        return password.complete(found)
    return parts.logins(home, settings, Deadline.after(SERVER_SECONDS), may_create=may_create).owner


def role_for(settings: Settings, admin: str) -> str:
    """The role agents connect as: the one in the configured dsn unless that is the owner's own login."""
    from hermes_memory_pgvector.postgres.conninfo import user_of

    named = user_of(settings.dsn) if settings.dsn else ""
    return named if named and named != user_of(admin) else DEFAULT_ROLE


def wanted_model(home: Path, settings: Settings) -> Wanted:
    """The model of the configured embedder; where profiles share a database, that of the home it belongs to."""
    from hermes_memory_pgvector.schema.model_tables import NewModel

    whose = profiles.embedding_home(home)
    try:
        with parts.open_embedder(whose, settings if whose == home else load(whose).settings) as embedder:
            info = embedder.info(Deadline.after(EMBEDDER_SECONDS))
    except EmbeddingError as error:
        return Wanted(None, str(error))
    mean, sd = (info.scale.mean, info.scale.sd) if info.scale else (None, None)
    return Wanted(NewModel(info.name, info.dim, mean, sd))


@contextmanager
def explaining_denial(admin: str, what: str, remedy: str) -> Iterator[None]:
    """Turn "permission denied" into a sentence that names the login and the command to run with a better one."""
    from hermes_memory_pgvector.postgres.conninfo import brief

    try:
        yield
    except DatabaseDenied as error:
        if error.sqlstate != NO_PRIVILEGE:
            raise
        raise SchemaError(f"the login {brief(admin)} may not {what}; give the owner's: {remedy}") from None


def apply(
    admin: str,
    role: str,
    spec: NewModel | None,
    *,
    adopt_model: str,
    role_password: str | None = None,
    switches_model: bool = False,
    may_be_closed: bool = False,
    language: str | None = None,
    buckets: int | None = None,
) -> Outcome:
    """Run the migration; whoever waits for another one, or for the adoption of rows, sees so."""
    from hermes_memory_pgvector.schema import migrate

    remedy = "hermes-pgvector migrate --admin-dsn OWNER_DSN"
    with explaining_denial(admin, "change the schema", remedy), progress.shown("migrating") as bar:
        return migrate.apply(
            admin,
            runtime_role=role,
            runtime_password=role_password,
            model=spec,
            switches_model=switches_model,
            adopt_model=adopt_model,
            report=bar.phase,
            may_be_closed=may_be_closed,
            language=language,
            buckets=buckets,
        )


def told(outcome: Outcome, wanted: Wanted) -> Iterator[Note]:
    """What was done and what is left to do."""
    if outcome.adopted_memories + outcome.adopted_turns:
        counts = (
            count(outcome.adopted_memories, "memory", "memories"),
            count(outcome.adopted_turns, "turn"),
            count(outcome.adopted_vectors, "vector"),
        )
        yield Note("ok", f"adopted {counts[0]}, {counts[1]} and {counts[2]}")
    yield Note("ok", "the tables were made" if outcome.applied else "the tables are as they should be")
    if outcome.kept_model is None and wanted.spec is not None:
        yield Note("ok", f"vectors: {wanted.spec.name}, {wanted.spec.dim} dimensions")
    if outcome.dealt:
        yield Note("ok", f"themes are dealt to {count(outcome.dealt, 'bucket')}")
    if outcome.handed_out:
        yield Note("ok", f"workers have taken {count(outcome.handed_out, 'bucket')}")
    for notice in outcome.notices:
        yield Note("note", notice)
    if outcome.vectors_wanted:
        text = f"{count(outcome.vectors_wanted, 'row')} will be embedded in the background"
        yield Note("note", text, "to do it now", command("reembed"))
    yield from left(outcome, wanted)


def left(outcome: Outcome, wanted: Wanted) -> Iterator[Note]:
    """What keeps the vectors waiting, or their model as it is."""
    if outcome.kept_model is not None:
        assert wanted.spec is not None
        text = (
            f"the database keeps its model, {outcome.kept_model}: with {wanted.spec.name} ({wanted.spec.dim}), as the "
            "settings name it, recall would find rows by keywords only until all are embedded anew"
        )
        yield Note("warning", text, "to change it without an outage", command("reembed"))
        yield Note("note", "to switch at once all the same", then=command("migrate", "--switch-model"))
    if wanted.problem:
        hint = "everything else is ready; when the endpoint answers, run"
        yield Note("warning", f"vectors have to wait: {wanted.problem}", hint, command("migrate"))
