"""Moves everything that an installation holds to another database: one snapshot, read into one transaction.

Nobody writes to the source meanwhile: `Side.shut` has said where it moves to, which every writer reads behind the gate,
and their records wait in the journals. The target shows nothing before it has everything, compared by checksums; with
the rows it takes over the source's identity, and is in use from its commit on. So at any moment at most one of the two
databases is in use, and whoever is killed on the way runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import IsolationLevel, sql

from hermes_memory_pgvector.errors import CareError, SchemaError
from hermes_memory_pgvector.postgres.statements import admin_statement, read_sql, statement, vector_tables
from hermes_memory_pgvector.schema import migrate, owner
from hermes_memory_pgvector.schema.model_tables import model_sql
from hermes_memory_pgvector.schema.owner import INSTALLATION

GATE_SECONDS = 90
TRANSACTION_TIMEOUT_SINCE = 170_000
THEME = "agent_identity"
MADE_BY_MIGRATE = (INSTALLATION, "embedding_models")
"""What an unused database may hold."""
REPORTED_ROWS = 1000
TIDIED_ROWS = 2000
Sums = Mapping[str, Mapping[str, list[Any]]]
"""By table and theme, the number of rows and the sum of their checksums; tables without themes have one, ""."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a database says of itself."""

    id: str
    moved_to: str | None
    """Where the installation has moved to; None while it is here."""


@dataclass(frozen=True, slots=True)
class SideFacts:
    """A server, a database and a login."""

    version_number: int
    database: str
    schema: str | None
    encoding: str
    user: str
    may_create: bool
    is_standby: bool
    bytes: int


class Side:
    """The owner's connection to one of the two databases."""

    def __init__(self, connection: psycopg.Connection[Any], dsn: str) -> None:
        self.connection = connection
        self.dsn = dsn
        self.refresh()

    def refresh(self) -> None:
        """Look at what this is, and make names and texts mean the same as on the other side, without a time limit."""
        row: Any = self.connection.execute(admin_statement("moving/facts")).fetchone()
        self.facts = SideFacts(*row)
        if self.facts.schema is None:
            return
        self.connection.execute(admin_statement("moving/stay_within"), {"schema": self.facts.schema})
        if self.facts.version_number >= TRANSACTION_TIMEOUT_SINCE:
            self.connection.execute("SELECT set_config('transaction_timeout', '0', false)")

    def has_table(self, name: str) -> bool:
        """Whether the schema has a table of that name."""
        return owner.has_table(self.connection, name)

    def mark(self) -> Mark | None:
        """Which installation this is; None where our tables are not."""
        if not self.has_table(INSTALLATION):
            return None
        row: Any = self.connection.execute(admin_statement("moving/mark")).fetchone()
        return Mark(*row)

    def tables(self) -> list[str]:
        """Every table that moves, those that others refer to before these."""
        text = read_sql("installation.sql") + read_sql("base.sql")
        made = re.findall(r"^CREATE TABLE (\w+) \(", text, re.MULTILINE)
        vectors = [f"{name}_{model}" for model, _ in self.models() for name in ("memory_vectors", "turn_vectors")]
        return [*made, *vectors]

    def models(self) -> list[tuple[int, int]]:
        """The number and the dimension of each embedding model."""
        rows = self.connection.execute(admin_statement("moving/models")).fetchall()
        return [(int(number), int(dim)) for number, dim in rows]

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        return {
            name: int(owner.value(self.connection, admin_statement("moving/count").format(table=sql.Identifier(name))))
            for name in self.tables()
        }

    def is_unused(self) -> bool:
        """Whether nothing was ever stored here."""
        return not any(
            owner.value(self.connection, admin_statement("moving/has_rows").format(table=sql.Identifier(name)))
            for name in self.tables()
            if name not in MADE_BY_MIGRATE
        )

    def owns_tables(self) -> bool:
        """Whether this login may change the tables."""
        return bool(owner.value(self.connection, "moving/owner", ("conversations",)))

    def agents(self) -> int:
        """How many connections others have to this database."""
        return int(owner.value(self.connection, "moving/clients"))

    def has_approximate_index(self) -> bool:
        """Whether vectors have an index that finds neighbours without comparing all of them."""
        return bool(owner.value(self.connection, "moving/has_approximate_index"))

    def other_homes(self, homes: Sequence[str]) -> list[str]:
        """Homes that were heard of lately, except these."""
        rows = self.connection.execute(admin_statement("moving/other_homes"), {"homes": list(homes)}).fetchall()
        return [str(home) for (home,) in rows]

    def obstacle(self) -> str:
        """Why a server cannot take our tables; empty when it can."""
        facts = self.facts
        if facts.is_standby:
            return "the server is a standby, which takes no writes; name its primary"
        if facts.schema is None:
            return "the search_path of this login names no schema that exists; create the schema first"
        if not facts.may_create:
            return (
                f'"{facts.user}" may not create tables in schema "{facts.schema}"; give the owner\'s login: --admin-dsn'
            )
        try:
            migrate.check_server(self.connection)
        except SchemaError as error:
            return str(error)
        return ""

    def shut(self, moved_to: str) -> None:
        """Wait for the writers inside, and let nobody store anything from now on."""
        with self.connection.transaction():
            self.connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{GATE_SECONDS}s",))
            self.connection.execute(statement("gate/close"))
            self.connection.execute(admin_statement("moving/leave"), (moved_to,))

    def reopen(self) -> None:
        """Let writers in again."""
        self.connection.execute(admin_statement("moving/leave"), (None,))

    def sums(self) -> dict[str, dict[str, list[Any]]]:
        """What every table holds, in numbers."""
        return {name: self.sums_of(name) for name in self.tables() if name != INSTALLATION}

    def sums_of(self, name: str) -> dict[str, list[Any]]:
        """What a table holds, in numbers."""
        columns = self.columns(name)
        query = admin_statement("moving/sums").format(
            table=sql.Identifier(name),
            theme=sql.Identifier(THEME) if THEME in columns else sql.SQL("''::text"),
            columns=_listed(columns),
        )
        rows = self.connection.execute(query).fetchall()
        return {str(theme): [int(count), checksum] for theme, count, checksum in rows}

    def columns(self, name: str) -> list[str]:
        """The columns of a table that hold what was stored."""
        rows = self.connection.execute(admin_statement("moving/columns"), (name,)).fetchall()
        return [str(column) for (column,) in rows]

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

    def snapshot(self) -> str:
        """The name by which pg_dump sees what this transaction sees."""
        return str(owner.value(self.connection, sql.SQL("SELECT pg_export_snapshot()")))

    def tidy(self, rows: Mapping[str, int]) -> None:
        """Vacuum and analyse, so that the first searches are planned like later ones and read the index alone."""
        for name, count in rows.items():
            if count > TIDIED_ROWS:
                self.connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(name)))

    def set_sequences_of(self, other: Side) -> None:
        """Go on numbering where the other side is."""
        names = self.tables()
        rows = other.connection.execute(admin_statement("moving/sequences"), (names,)).fetchall()
        for (name,) in rows:
            read = admin_statement("moving/read_sequence").format(sequence=sql.Identifier(name))
            value: Any = other.connection.execute(read).fetchone()
            self.connection.execute(
                admin_statement("moving/set_sequence"), {"name": name, "value": value[0], "is_called": value[1]}
            )


@contextmanager
def open_side(dsn: str) -> Iterator[Side]:
    """Connect as the owner; errors are ours."""
    with owner.connected(dsn, "hermes-pgvector-move") as connection:
        side = Side(connection, dsn)
        if side.facts.schema is not None and side.has_table(INSTALLATION) and len(owner.buckets(connection)) > 1:
            raise CareError("a database of several buckets is not moved this way; pg_dump and pg_restore take it along")
        yield side


def move(source: Side, target: Side, begin: Callable[[str], None], advance: Callable[[int], None]) -> dict[str, int]:
    """Replace all that the target holds by what the source holds, and return how many rows each table has.

    The target has our tables, and nothing in them that anybody uses. CareError when both sides do not compare.
    """
    rows: dict[str, int] = {}
    with source.one_moment(), target.connection.transaction():
        _claim(source, target)
        _make_models(source, target)
        names = source.tables()
        everything = sql.SQL(", ").join(map(sql.Identifier, names))
        target.connection.execute(sql.SQL("TRUNCATE {}").format(everything))
        for name in names:
            begin(name)
            rows[name] = _copy(source, target, name, advance)
        for name in names:
            begin(f"comparing {name}")
            _compare(source, target, name)
        target.set_sequences_of(source)
        target.connection.execute(admin_statement("moving/leave"), (None,))
        migrate.make_views_and_grants(target.connection, migrate.fleet_roles(target.connection))
    target.tidy(rows)
    return rows


def differences(before: Sums, after: Sums) -> list[str]:
    """Where two databases differ, as table and theme; empty when they hold the same."""
    return [
        f"{table}, {theme}" if theme else table
        for table in sorted({*before, *after})
        for theme in sorted({*before.get(table, {}), *after.get(table, {})})
        if list(before.get(table, {}).get(theme, [])) != list(after.get(table, {}).get(theme, []))
    ]


def _claim(source: Side, target: Side) -> None:
    """Keep others out of the target until the end of the transaction. CareError where somebody came first."""
    held = sql.SQL(", ").join(map(sql.Identifier, target.tables()))
    target.connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(held))
    here, there = source.mark(), target.mark()
    is_left = here is not None and there is not None and here.id == there.id and there.moved_to is not None
    if not is_left and not target.is_unused():
        raise CareError(
            f'schema "{target.facts.schema}" has come into use meanwhile, and what is there stays; nothing was changed'
        )


def _make_models(source: Side, target: Side) -> None:
    """Give the target the vector tables of the source's models, under the same numbers, and no others."""
    wanted, present = source.models(), target.models()
    for model, _ in present:
        if (model, _) not in wanted:
            for table in vector_tables(model).values():
                target.connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(table))
    for model, dim in wanted:
        if (model, dim) not in present:
            target.connection.execute(model_sql(model, dim, target.facts.schema or ""))


def _copy(source: Side, target: Side, name: str, advance: Callable[[int], None]) -> int:
    columns = source.columns(name)
    if columns != target.columns(name):
        raise SchemaError(f"table {name} has other columns there than here; run for both: hermes-pgvector migrate")
    parts = {"table": sql.Identifier(name), "columns": _listed(columns)}
    rows = 0
    with (
        source.connection.cursor().copy(admin_statement("moving/copy_out").format(**parts)) as out,
        target.connection.cursor().copy(admin_statement("moving/copy_in").format(**parts)) as into,
    ):
        # A server sends each row as a message.
        for rows, message in enumerate(out, start=1):
            into.write(message)
            if rows % REPORTED_ROWS == 0:
                advance(REPORTED_ROWS)
    advance(rows % REPORTED_ROWS)
    return rows


def _compare(source: Side, target: Side, name: str) -> None:
    here, there = source.sums_of(name), target.sums_of(name)
    differing = sorted(theme for theme in {*here, *there} if here.get(theme) != there.get(theme))
    if differing:
        first = differing[0]
        counts = [side.get(first, [0])[0] for side in (here, there)]
        raise CareError(
            f"{name} differs after copying in {len(differing)} themes; {first or 'all of it'} has {counts[0]} rows "
            f"here and {counts[1]} there; nothing was changed"
        )


def _listed(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
