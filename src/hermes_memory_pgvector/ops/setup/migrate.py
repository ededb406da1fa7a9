"""`migrate`: bring the database to the schema this package needs, as its owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.ops import migration
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import amounts, parse, progress
from hermes_memory_pgvector.terminal.fields import aside
from hermes_memory_pgvector.terminal.operation import WORK_REMAINS, Facts, Note, Operation, Option, Raw

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Migrated(Facts):
    """What a migration did, and what it left."""

    applied: tuple[str, ...]
    adopted_memories: int
    adopted_turns: int
    adopted_vectors: int
    model_id: int | None
    vectors_wanted: int
    kept_model: str | None
    notices: tuple[str, ...]
    runtime_role: str
    vectors_wait: str | None
    index: str | None
    notes: tuple[Note, ...] = aside(())

    @property
    def exit_code(self) -> int:
        """3 when the vector tables wait for the embedding endpoint, or the model for `reembed`."""
        return WORK_REMAINS if self.vectors_wait or self.kept_model else 0


@dataclass(frozen=True, slots=True)
class Script(Raw):
    """The SQL of a new database."""

    sql: str

    def as_text(self) -> str:
        """As psql reads it."""
        return self.sql


def migrate(
    memory: Memory, *, admin_dsn: str | None, runtime_role: str | None, index: str | None, drop: bool,
    switch_model: bool, adopt_model: str, language: str | None, buckets: int | None, **printing: bool,
) -> Facts:  # fmt: skip
    """Migrate, or show the SQL."""
    if drop and not index:
        raise UsageError("--drop goes with --index")
    home, settings = memory.home, memory.parsed.settings
    if printing["print"]:
        return Script("".join(f"{part}\n" for part in _script(home, settings, runtime_role or migration.DEFAULT_ROLE)))
    admin = migration.admin_dsn(home, settings, admin_dsn)
    role = runtime_role or migration.role_for(settings, admin)
    wanted = migration.wanted_model(home, settings)
    done = migration.apply(
        admin,
        role,
        wanted.spec,
        adopt_model=adopt_model,
        switches_model=switch_model,
        language=language,
        buckets=buckets,
    )
    built = None
    if index and done.model_id is not None:
        from hermes_memory_pgvector.schema import vector_indexes

        with progress.shown("index over all themes"):
            found = vector_indexes.drop(admin) if drop else vector_indexes.create(admin)
        built = ", ".join(f"{each.name}, {amounts.size(each.size_bytes)}" for each in found) or "none"
    what = "dropped" if drop else "index over all themes"
    told = [*migration.told(done, wanted), *([Note("ok", f"{what}: {built}")] if built else [])]
    return Migrated(
        tuple(done.applied), done.adopted_memories, done.adopted_turns, done.adopted_vectors, done.model_id,
        done.vectors_wanted, done.kept_model, tuple(done.notices), role, wanted.problem or None, built, tuple(told),
    )  # fmt: skip


def _script(home: Path, settings: Settings, role: str) -> Iterator[str]:
    """The SQL of a new database; the model's part only when its dimension is known without a connection."""
    from hermes_memory_pgvector.schema.migrate import script

    known = settings.uses_local_model or settings.embed_dim is not None
    wanted = migration.wanted_model(home, settings) if known else migration.Wanted(None)
    yield from script(wanted.spec, role)
    if wanted.spec is None:
        yield "-- vector tables left out: the embedding endpoint knows their dimension; set embed_dim to see them"


MIGRATE: Final = Operation(
    "migrate",
    "create or update the database schema (needs the owner's login)",
    (
        Option("--admin-dsn", f"login of the tables' owner (default: ${migration.ADMIN_VARIABLE}, the embedded "
               "server's owner, or dsn)", metavar="DSN"),
        Option("--runtime-role", "role the agents connect as (default: the one named in dsn, else "
               f"{migration.DEFAULT_ROLE})", metavar="ROLE"),
        Option("--print", "show the SQL and connect to nothing", is_flag=True),
        Option("--index", "also build the approximate index over all themes, which pays off for scope 'all' from "
               "150,000 vectors on; agents go on writing", choices=("all",)),
        Option("--drop", "with --index: drop it instead", is_flag=True),
        Option("--language", "take words apart by this text search configuration of the server, such as german "
               "(default: as before, at first english); every row's words are made anew", metavar="NAME"),
        Option("--buckets", "deal the themes to so many schemas, once and for all: 4 for each server you expect; "
               "agents' writes wait meanwhile. Workers of a Citus coordinator take them over", parse=parse.positive,
               metavar="N"),
        Option("--switch-model", "switch to the configured embedding model at once, however many rows are embedded "
               "again (see reembed)", is_flag=True),
        Option("--adopt-model", "model that made the vectors of an earlier installation (default: nomic-embed-text)",
               default="nomic-embed-text", metavar="NAME"),
    ),
    migrate,
    (
        ("migrate", "update the schema of the database in use"),
        ("migrate --admin-dsn postgresql://owner@db.example.com/hermes", "as the owner of the tables"),
        ("migrate --language german", "find German words in every inflection"),
        ("migrate --buckets 16", "make the database ready for several servers"),
        ("migrate --print", "only show the SQL"),
    ),
    group="set up",
    on_page=False,
    aliases={"index": {"index": "all"}},
)  # fmt: skip
