"""One side of a move to another database: what kind of server it is, whether it is in use, and how it is closed.

Of the two databases of a move, at most one is in use at any moment. The new one is closed until it has everything; the
old one is closed for good before the new one opens. Closed means that a trigger on every table refuses to change rows,
whoever asks; who reads goes on reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.postgres.statements import vector_tables
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.copying import count_rows, has_rows
from hermes_memory_pgvector.schema.model_tables import model_sql
from hermes_memory_pgvector.schema.moving_tables import MADE_BY_MIGRATE, MODELS, TABLES, Table, vector_tables_of
from hermes_memory_pgvector.schema.sql_functions import model_functions
from hermes_memory_pgvector.schema.statements import admin_statement

CONNECT_SECONDS = 10
LOCK_SECONDS = 30
LOCK_TRIES = 20
TRANSACTION_TIMEOUT_SINCE = 170_000
WATERMARKS = "journal_writers"
APPLICATION_NAME = "hermes-pgvector-promote"


@dataclass(frozen=True, slots=True)
class Mark:
    """What a database says of itself."""

    id: str
    moved_to: str | None
    """Where the installation has moved to; None while it is here."""
    filled_from: str | None
    """The id of the installation that is being copied to here; None when nothing is."""

    @property
    def is_in_use(self) -> bool:
        """Whether agents may write here."""
        return self.moved_to is None and self.filled_from is None


@dataclass(frozen=True, slots=True)
class Facts:
    """A server, a database and a login."""

    version: str
    version_number: int
    database: str
    schema: str | None
    encoding: str
    user: str
    may_create: bool
    is_standby: bool
    bytes: int
    pgvector: str | None
    """The version in this database; None when the extension is not there yet."""


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model and its id."""

    id: int
    name: str
    dim: int


class Side:
    """The owner's connection to one of the two databases."""

    def __init__(self, connection: psycopg.Connection, dsn: str) -> None:
        self.connection = connection
        self.dsn = dsn
        self.facts = _facts(connection)
        self._settle()

    def refresh(self) -> None:
        """The tables are there now: look again at what this is."""
        self.facts = _facts(self.connection)
        self._settle()

    def _settle(self) -> None:
        """Make names and texts mean the same as on the other side, without a time limit."""
        if self.facts.schema is None:
            return
        self.connection.execute(admin_statement("moving/stay_within"), {"schema": self.facts.schema})
        if self.facts.version_number >= TRANSACTION_TIMEOUT_SINCE:
            self.connection.execute("SELECT set_config('transaction_timeout', '0', false)")

    # What is there.

    def has_table(self, name: str) -> bool:
        """Whether the schema has a table of that name."""
        row: Any = self.connection.execute(admin_statement("schema/table_exists"), (name,)).fetchone()
        return bool(row[0])

    def version(self) -> int:
        """The version of our schema; 0 where there is none."""
        if not self.has_table("hermes_pgvector_migrations"):
            return 0
        row: Any = self.connection.execute("SELECT max(version) FROM hermes_pgvector_migrations").fetchone()
        return int(row[0] or 0)

    def mark(self) -> Mark:
        """Which installation this is, and whether it is in use here."""
        row: Any = self.connection.execute(admin_statement("moving/mark")).fetchone()
        return Mark(*row)

    def mark_if_known(self) -> Mark | None:
        """As `mark`; None for tables of a version that has no such marks."""
        row: Any = self.connection.execute(admin_statement("moving/can_be_marked")).fetchone()
        return self.mark() if row[0] else None

    def theme_count(self) -> int:
        """How many themes there are."""
        row: Any = self.connection.execute(admin_statement("moving/themes")).fetchone()
        return int(row[0])

    def approximate_indexes(self) -> list[str | None]:
        """The themes that have an index of their own; None stands for the index over all themes."""
        rows: list[Any] = self.connection.execute(admin_statement("moving/theme_indexes")).fetchall()
        return [theme for (theme,) in rows]

    def models(self) -> list[Model]:
        """The embedding models."""
        rows: list[Any] = self.connection.execute(admin_statement("moving/models")).fetchall()
        return [Model(int(number), str(name), int(dim)) for number, name, dim in rows]

    def tables(self) -> list[Table]:
        """Every table that moves."""
        return [*TABLES, *(table for model in self.models() for table in vector_tables_of(model.id))]

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        return {table.name: count_rows(self.connection, table) for table in self.tables()}

    def is_unused(self) -> bool:
        """Whether nothing was ever stored here."""
        content = (table for table in TABLES if table.name not in MADE_BY_MIGRATE)
        return not any(self.has_table(table.name) and has_rows(self.connection, table) for table in content)

    def owns_tables(self) -> bool:
        """Whether this login may close the tables."""
        row: Any = self.connection.execute(admin_statement("moving/owner"), ("conversations",)).fetchone()
        return row is not None and bool(row[0])

    def agents(self) -> int:
        """How many connections others have to this database."""
        row: Any = self.connection.execute(admin_statement("moving/clients")).fetchone()
        return int(row[0])

    def other_homes(self, homes: Sequence[str]) -> list[str]:
        """Homes that have written here lately, except these."""
        rows: list[Any] = self.connection.execute(
            admin_statement("moving/other_homes"), {"homes": list(homes)}
        ).fetchall()
        return [str(home) for (home,) in rows]

    # Opening and closing.

    def set_mark(self, mark: Mark) -> None:
        """Say which installation this is, and close or open its tables accordingly."""
        statement = admin_statement("moving/open_table" if mark.is_in_use else "moving/close_table")
        for table in self.tables():
            if self.has_table(table.name):
                self.connection.execute(statement.format(table=table.identifier))
        values = {"id": mark.id, "moved_to": mark.moved_to, "filled_from": mark.filled_from}
        self.connection.execute(admin_statement("moving/set_mark"), values)

    def make_models(self, wanted: Sequence[Model]) -> bool:
        """Make the vector tables of these models, under the same numbers, and drop those of others; True for a change.

        Others can only be left from an earlier time of the same installation.
        """
        present = self.models()
        for model in present:
            if model not in wanted:
                for table in vector_tables(model.id).values():
                    self.connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(table))
        made = [model for model in wanted if model not in present]
        for model in made:
            self.connection.execute(model_sql(model.id, model.dim))
            self.connection.execute(model_functions(model.id))
        return bool(made) or len(present) != len(wanted)

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """A transaction that sees the database as it is now."""
        self.connection.isolation_level = IsolationLevel.REPEATABLE_READ
        try:
            with self.connection.transaction():
                yield
        finally:
            if not self.connection.closed:
                self.connection.isolation_level = None

    @contextmanager
    def held_still(self) -> Iterator[None]:
        """A transaction in which nobody else writes; it sees what was written before."""
        for _ in range(LOCK_TRIES):
            with self.connection.transaction(force_rollback=False) as transaction:
                if not self._lock():
                    raise psycopg.Rollback(transaction)
                yield
                return
        raise DatabaseUnavailable("the old database is never still: something keeps writing for a long time; try again")

    def _lock(self) -> bool:
        self.connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{LOCK_SECONDS}s",))
        # A writer's transaction begins with its watermark: whoever has got past that is waited for, and nobody else
        # gets in between.
        tables = sorted(self.tables(), key=lambda table: table.name != WATERMARKS)
        names = sql.SQL(", ").join(table.identifier for table in tables)
        try:
            with self.connection.transaction():
                self.connection.execute(admin_statement("moving/lock").format(tables=names))
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return False
        self.connection.execute("SELECT set_config('lock_timeout', '0', true)")
        return True

    def sequences(self) -> dict[str, tuple[int, bool]]:
        """How far the numbering of rows is."""
        names = [table.name for table in self.tables()]
        found: dict[str, tuple[int, bool]] = {}
        rows: list[Any] = self.connection.execute(admin_statement("moving/sequences"), (names,)).fetchall()
        for (name,) in rows:
            read = admin_statement("moving/read_sequence").format(sequence=sql.Identifier(name))
            row: Any = self.connection.execute(read).fetchone()
            found[str(name)] = (int(row[0]), bool(row[1]))
        return found

    def set_sequences(self, values: dict[str, tuple[int, bool]]) -> None:
        """Go on numbering from there."""
        for name, (value, is_called) in values.items():
            self.connection.execute(
                admin_statement("moving/set_sequence"), {"name": name, "value": value, "is_called": is_called}
            )

    def tidy(self, tables: Sequence[str]) -> None:
        """Vacuum and analyse, so that the first searches are planned like later ones and read the index alone."""
        for name in tables:
            self.connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(name)))


@contextmanager
def open_side(dsn: str) -> Iterator[Side]:
    """Connect as the owner; errors are ours."""
    given = conninfo_to_dict(dsn)
    whole = make_conninfo(dsn, application_name=given.get("application_name") or APPLICATION_NAME)
    with translated():
        connection = psycopg.connect(whole, autocommit=True, connect_timeout=CONNECT_SECONDS, prepare_threshold=None)
    with connection, translated():
        conventions.keep_for_good(connection)
        yield Side(connection, dsn)


def obstacle(side: Side) -> str:
    """Why a server cannot take our tables; empty when it can."""
    facts = side.facts
    if facts.is_standby:
        return "the server is a standby, which takes no writes; name its primary"
    if facts.encoding != "UTF8":
        return (
            f'database "{facts.database}" has the encoding {facts.encoding}, which cannot hold every text; make one: '
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    if facts.schema is None:
        return "the search_path of this login names no schema that exists; create the schema first"
    if not facts.may_create:
        return f'login "{facts.user}" may not create tables in schema "{facts.schema}"; give the owner\'s: --admin-dsn'
    try:
        migrate.check_server(side.connection)
    except SchemaError as error:
        return str(error)
    return ""


def copies_binary(source: Side, target: Side) -> bool:
    """Whether both servers write values in the same binary form."""
    versions = [(side.facts.pgvector or "").split(".")[:2] for side in (source, target)]
    return versions[0] == versions[1]


def copy_models(source: Side, target: Side) -> bool:
    """Give the target the vector tables that the source has; True when that changed anything."""
    wanted = source.models()
    if target.models() == wanted:
        return False
    with target.connection.transaction():
        target.connection.execute("SELECT set_config('hermes.moves', 'yes', true)")
        target.make_models(wanted)
        target.connection.execute(
            admin_statement("moving/delete").format(table=MODELS.identifier, rows=sql.SQL("true"))
        )
        for model in wanted:
            target.connection.execute(
                admin_statement("moving/insert_model"), {"id": model.id, "name": model.name, "dim": model.dim}
            )
    return True


def _facts(connection: psycopg.Connection) -> Facts:
    row: Any = connection.execute(admin_statement("moving/facts")).fetchone()
    return Facts(*row)
