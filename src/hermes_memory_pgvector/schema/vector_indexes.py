"""Approximate indexes, which pay off only at size: one over all themes, and one for each very large theme.

For administrators: nothing at run time imports this module. Indexes are created and dropped CONCURRENTLY, so agents
keep writing. An interrupted build leaves an index that Postgres calls invalid and never reads; the next attempt
replaces it. Searches use a theme's index while it is listed in `theme_indexes`: it is listed once it is complete and
unlisted before it is dropped.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, class_row

from hermes_memory_pgvector.errors import ConfigError, DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres.errors import MIGRATE_COMMAND, translated
from hermes_memory_pgvector.schema.index_progress import Watch, watched
from hermes_memory_pgvector.schema.statements import admin_statement
from hermes_memory_pgvector.store import schema
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.values import EmbeddingModel, is_private_theme

Connection = psycopg.Connection[TupleRow]

LARGE = 150_000
"""Vectors above which an approximate index is faster than reading every code."""
MOST_THEMES = 24
"""How many themes may have an index of their own: each adds planning time to every statement on the table."""
MOST_MEMORY_MB = 1024
"""The most memory a build takes by default."""
LOCK_KEY = 0x6865726D65736978
# What a build needs per vector, beside its code.
NODE_BYTES = 1000

PUBLIC_ROWS: LiteralString = "NOT hermes_is_private(agent_identity)"
_IS_PUBLIC = re.compile(
    r"USING hnsw \(code [\w.]*bit_hamming_ops\).* WHERE \(NOT [\w.]*hermes_is_private\(agent_identity\)\)$"
)


@dataclass(frozen=True, slots=True)
class Index:
    """An approximate index as the catalogue knows it."""

    name: str
    table: str
    is_valid: bool
    is_building: bool
    size_bytes: int
    definition: str

    @property
    def is_public(self) -> bool:
        """Whether it covers all shared themes, whoever created it."""
        return _IS_PUBLIC.search(self.definition) is not None


@dataclass(frozen=True, slots=True)
class ThemeVectors:
    """A theme that is large, or has an index."""

    theme: str
    vectors: int
    index: Index | None


@dataclass(frozen=True, slots=True)
class Survey:
    """The indexes and large themes of the current model."""

    model: EmbeddingModel
    public_vectors: int
    shared: tuple[Index, ...]
    themes: tuple[ThemeVectors, ...]
    """The largest first."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was created, found or dropped."""

    name: str
    is_new: bool
    seconds: float
    size_bytes: int
    replaced: int = 0
    """How many unfinished indexes of interrupted builds it replaced."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """An index to create."""

    name: str
    table: str
    rows: sql.Composable
    memory_mb: int
    watch: Watch


def theme_index_name(model_id: int, theme: str) -> str:
    """The name of a theme's index."""
    return f"turn_vectors_{model_id}_theme_{hashlib.sha256(theme.encode()).hexdigest()[:16]}"


class VectorIndexes:
    """The approximate indexes of a database's current model."""

    def __init__(self, dsn: str, connection: Connection, model: EmbeddingModel) -> None:
        self.model = model
        self._dsn = dsn
        self._connection = connection
        self._turns = f"turn_vectors_{model.id}"
        self._memories = f"memory_vectors_{model.id}"

    @classmethod
    @contextmanager
    def open(cls, dsn: str, *, connect_seconds: int = 10) -> Iterator[VectorIndexes]:
        """Connect; SchemaError when there is nothing to index yet."""
        with translated():
            connection = psycopg.connect(
                dsn,
                autocommit=True,
                connect_timeout=connect_seconds,
                application_name="hermes-pgvector-index",
                prepare_threshold=None,
            )
        with connection, translated():
            schema.verify(connection)
            model = current_model(connection)
            if model is None:
                raise SchemaError(f"there are no vector tables yet; run: {MIGRATE_COMMAND}")
            # The login may have a time limit that suits agents; a build takes as long as it takes.
            connection.execute("SELECT set_config('statement_timeout', '0', false)")
            yield cls(dsn, connection, model)

    def survey(self, *, large: int = LARGE) -> Survey:
        """The existing indexes, and the large themes."""
        counts = self._counts()
        indexes = {index.name: index for index in self._find()}
        named = {theme: indexes.get(theme_index_name(self.model.id, theme)) for theme in counts}
        shown = [
            ThemeVectors(theme, count, named[theme])
            for theme, count in counts.items()
            if count >= large or named[theme] is not None
        ]
        return Survey(
            self.model,
            sum(count for theme, count in counts.items() if not is_private_theme(theme)),
            tuple(index for index in indexes.values() if index.is_public),
            tuple(sorted(shown, key=lambda each: (-each.vectors, each.theme))),
        )

    def create_all(self, *, memory_mb: int | None = None, watch: Watch = lambda _: None) -> list[Done]:
        """Create the indexes over all shared themes, for turns and for memories, where they are missing."""
        with self._alone():
            memory_mb = memory_mb or self._need_mb(sum(self._counts().values()))
            made = []
            for table in (self._turns, self._memories):
                present = [index for index in self._find() if index.table == table and index.is_public]
                plan = _Plan(f"{table}_all", table, sql.SQL(PUBLIC_ROWS), memory_mb, watch)
                made.append(self._ensure(plan, present))
            return made

    def create_theme(
        self,
        theme: str,
        *,
        force: bool = False,
        large: int = LARGE,
        most: int = MOST_THEMES,
        memory_mb: int | None = None,
        watch: Watch = lambda _: None,
    ) -> Done:
        """Create the index of one theme's turns and have searches use it; ConfigError when it would not pay off."""
        name = theme_index_name(self.model.id, theme)
        with self._alone():
            vectors = self._count(theme)
            if vectors == 0:
                raise ConfigError(f"no theme {theme!r} has vectors of {self.model.name}; see: hermes-pgvector status")
            if vectors < large and not force:
                raise ConfigError(
                    f"theme {theme!r} has {vectors:,} vectors; below {large:,} an index gains nothing and slows writes "
                    "(--force makes it all the same)"
                )
            others = [index.name for index in self._find() if index.name.startswith(f"{self._turns}_theme_")]
            if len(set(others) - {name}) >= most:
                raise ConfigError(
                    f"{most} themes have an index of their own already, and each costs every search planning time; "
                    "drop one first: hermes-pgvector index drop --theme NAME"
                )
            rows = sql.SQL("agent_identity = {}").format(sql.Literal(theme))
            present = [index for index in self._find() if index.name == name]
            done = self._ensure(_Plan(name, self._turns, rows, memory_mb or self._need_mb(vectors), watch), present)
            self._connection.execute(
                admin_statement("indexes/list_theme"), {"theme": theme, "model_id": self.model.id, "name": name}
            )
            return done

    def rebuild_keys(self, *, watch: Watch = lambda _: None) -> list[Done]:
        """Rebuild the keys and codes of the vector tables, whose pages end up half empty after large deletions."""
        with self._alone():
            keys: list[Any] = self._connection.execute(
                admin_statement("indexes/find_keys"), {"turns": self._turns, "memories": self._memories}
            ).fetchall()
            return [self._rebuild(name, leftovers, watch) for name, leftovers in keys]

    def _rebuild(self, name: str, leftovers: Sequence[str], watch: Watch) -> Done:
        started = time.monotonic()
        for leftover in leftovers:
            self._connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(leftover)))
        with watched(name, self._connection, self._dsn, watch):
            self._connection.execute(sql.SQL("REINDEX INDEX CONCURRENTLY {}").format(sql.Identifier(name)))
        row: Any = self._connection.execute("SELECT pg_relation_size(to_regclass(%s))", (name,)).fetchone()
        return Done(name, True, time.monotonic() - started, int(row[0]), len(leftovers))

    def drop_all(self) -> list[Done]:
        """Drop the indexes over all themes, including unfinished ones."""
        with self._alone():
            return [self._drop(index) for index in self._find() if index.is_public]

    def drop_theme(self, theme: str) -> Done:
        """Drop a theme's index; ConfigError when it has none."""
        name = theme_index_name(self.model.id, theme)
        with self._alone():
            listed = self._connection.execute(
                admin_statement("indexes/unlist_theme"), {"theme": theme, "model_id": self.model.id}
            )
            for index in self._find():
                if index.name == name:
                    return self._drop(index)
            if listed.rowcount == 0:
                raise ConfigError(f"theme {theme!r} has no index of its own; see: hermes-pgvector index")
            # Someone has dropped it by hand.
            return Done(name, False, 0.0, 0)

    def _ensure(self, plan: _Plan, present: Sequence[Index]) -> Done:
        """Create the index unless there is one; drop unfinished ones first."""
        started = time.monotonic()
        unfinished = [index for index in present if not index.is_valid]
        for index in unfinished:
            self._drop(index)
        for index in present:
            if index.is_valid:
                return Done(index.name, False, time.monotonic() - started, index.size_bytes, len(unfinished))
        made = sql.Identifier(plan.name)
        statement = admin_statement("indexes/create").format(
            name=made, table=sql.Identifier(plan.table), rows=plan.rows
        )
        self._connection.execute(admin_statement("indexes/raise_memory"), (plan.memory_mb * 1024,))
        if not schema.builds_in_parallel(schema.pgvector_version(self._connection)):
            self._build_alone()
        with watched(plan.name, self._connection, self._dsn, plan.watch):
            try:
                self._connection.execute(statement)
            except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
                # Parallel workers need shared memory, of which a container may have little; a single one needs none.
                self._connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(made))
                self._build_alone()
                self._connection.execute(statement)
        size = next(index.size_bytes for index in self._find() if index.name == plan.name)
        return Done(plan.name, True, time.monotonic() - started, size, len(unfinished))

    def _build_alone(self) -> None:
        self._connection.execute("SELECT set_config('max_parallel_maintenance_workers', '0', false)")

    def _drop(self, index: Index) -> Done:
        started = time.monotonic()
        if index.is_building:
            raise DatabaseUnavailable(f"another process is building index {index.name}; wait until it has finished")
        self._connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index.name)))
        return Done(index.name, False, time.monotonic() - started, index.size_bytes)

    def _need_mb(self, vectors: int) -> int:
        """The memory a build of that many vectors needs, up to a limit."""
        row: Any = self._connection.execute(admin_statement("indexes/code_bits"), (self._turns,)).fetchone()
        return min(MOST_MEMORY_MB, vectors * (int(row[0]) // 8 + NODE_BYTES) // 2**20)

    def _find(self) -> list[Index]:
        with self._connection.cursor(row_factory=class_row(Index)) as cursor:
            tables = {"turns": self._turns, "memories": self._memories}
            return cursor.execute(admin_statement("indexes/find"), tables).fetchall()

    def _counts(self) -> dict[str, int]:
        with self._connection.transaction():
            # Count from an index; the table is many times larger.
            self._connection.execute("SET LOCAL enable_seqscan = off")
            rows: list[Any] = self._connection.execute(
                admin_statement("indexes/theme_counts").format(turn_vectors=sql.Identifier(self._turns))
            ).fetchall()
        return {str(theme): int(count) for theme, count in rows}

    def _count(self, theme: str) -> int:
        counted = admin_statement("indexes/theme_count").format(turn_vectors=sql.Identifier(self._turns))
        row: Any = self._connection.execute(counted, (theme,)).fetchone()
        return int(row[0])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run one command at a time; a second one fails at once, as waiting inside Postgres would block the first."""
        row: Any = self._connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK_KEY,)).fetchone()
        if not row[0]:
            raise DatabaseUnavailable(
                "another `hermes-pgvector index` is running on this database; wait until it has finished"
            )
        try:
            yield
        finally:
            if not self._connection.closed:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK_KEY,))
