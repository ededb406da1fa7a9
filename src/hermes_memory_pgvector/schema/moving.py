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
from hermes_memory_pgvector.schema import buckets, migrate, owner
from hermes_memory_pgvector.schema.model_tables import model_sql
from hermes_memory_pgvector.schema.owner import INSTALLATION

GATE_SECONDS = 90
TRANSACTION_TIMEOUT_SINCE = 170_000
THEME = "agent_identity"
MADE_BY_MIGRATE = (INSTALLATION, "embedding_models")
"""What an unused database may hold."""
REPORTED_ROWS = 1000
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
    schema: str | None
    user: str
    may_create: bool
    is_standby: bool


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

    def parts(self) -> Iterator[str]:
        """The schemas of the installation's tables and of each bucket, with names that mean the tables of each.

        With one bucket they are the same. For the time of a transaction.
        """
        main, schemas = owner.schema_to_migrate(self.connection), owner.buckets(self.connection)
        for schema in dict.fromkeys((main, *schemas)):
            owner.stay_within(self.connection, *dict.fromkeys((schema, main)))
            yield schema
        owner.stay_within(self.connection, main)

    def tables_of_part(self) -> list[str]:
        """The tables that move and lie in the schema that names mean just now."""
        lying = {str(name) for (name,) in self.connection.execute(admin_statement("moving/tables"))}
        return [name for name in self.tables() if name in lying]

    def models(self) -> list[tuple[int, int]]:
        """The number and the dimension of each embedding model."""
        rows = self.connection.execute(admin_statement("moving/models")).fetchall()
        return [(int(number), int(dim)) for number, dim in rows]

    def counts(self) -> dict[str, int]:
        """How many rows each table has, in all buckets."""
        counts: dict[str, int] = {}
        for name, rows in self._of_each_table("moving/count"):
            counts[name] = counts.get(name, 0) + int(rows)
        return counts

    def is_unused(self) -> bool:
        """Whether nothing was ever stored here."""
        return not any(has for name, has in self._of_each_table("moving/has_rows") if name not in MADE_BY_MIGRATE)

    def _of_each_table(self, query: str) -> list[tuple[str, Any]]:
        with self.connection.transaction():
            return [
                (name, owner.value(self.connection, admin_statement(query).format(table=sql.Identifier(name))))
                for _ in self.parts()
                for name in self.tables_of_part()
            ]

    def owns_tables(self) -> bool:
        """Whether this login may change the tables."""
        return bool(owner.value(self.connection, "moving/owner", ("conversations",)))

    def agents(self) -> int:
        """How many connections others have to this database."""
        return int(owner.value(self.connection, "moving/clients"))

    def has_approximate_index(self) -> bool:
        """Whether vectors have an index that finds neighbours without comparing all of them."""
        schemas = owner.buckets(self.connection)
        return bool(owner.value(self.connection, "moving/has_approximate_index", (schemas,)))

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
        """What every table holds, in numbers, in all buckets."""
        found: dict[str, dict[str, list[Any]]] = {}
        with self.connection.transaction():
            for _ in self.parts():
                for name in self.tables_of_part():
                    sums = found.setdefault(name, {})
                    for theme, (count, checksum) in self.sums_of(name).items() if name != INSTALLATION else ():
                        rows, total = sums.get(theme, (0, "0"))
                        sums[theme] = [rows + count, str(int(total) + int(checksum))]
        del found[INSTALLATION]
        return found

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

    def set_sequences_of(self, other: Side, names: list[str]) -> None:
        """Go on numbering the rows of these tables where the other side is."""
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
        yield side


def move(source: Side, target: Side, begin: Callable[[str], None], advance: Callable[[int], None]) -> dict[str, int]:
    """Replace all that the target holds by what the source holds, and return how many rows each table has.

    The target has our tables, and nothing in them that anybody uses. CareError when both sides do not compare.
    """
    rows: dict[str, int] = {}
    with source.one_moment(), target.connection.transaction():
        _claim(source, target)
        _make_buckets(source, target)
        schemas = [schema for schema in owner.buckets(target.connection) if schema != target.facts.schema]
        for _, schema in zip(source.parts(), target.parts(), strict=True):
            names = _copy_part(source, target, schema, rows, begin, advance)
            target.set_sequences_of(source, names)
        target.connection.execute(admin_statement("moving/leave"), (None,))
        target.connection.execute(admin_statement("buckets/set_buckets"), (schemas,))
        migrate.make_views_and_grants(target.connection)
    buckets.tidy(target.connection)
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
    for _ in target.parts():
        held = sql.SQL(", ").join(map(sql.Identifier, target.tables_of_part()))
        target.connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(held))
    here, there = source.mark(), target.mark()
    is_left = here is not None and there is not None and here.id == there.id and there.moved_to is not None
    if not is_left and not target.is_unused():
        raise CareError(
            f'schema "{target.facts.schema}" has come into use meanwhile, and what is there stays; nothing was changed'
        )


def _make_buckets(source: Side, target: Side) -> None:
    """Give the target as many buckets as the source has."""
    wanted, present = len(owner.buckets(source.connection)), len(owner.buckets(target.connection))
    if present not in (1, wanted):
        raise CareError(
            f"the database there has {present} buckets and this one has {wanted}: deal this one first, with "
            f"`hermes-pgvector migrate --buckets {present}`, or name a database without buckets; nothing was changed"
        )
    if present != wanted:
        buckets.deal(target.connection, wanted, lambda _: None)


def _copy_part(
    source: Side, target: Side, schema: str, rows: dict[str, int], begin: Callable[[str], None],
    advance: Callable[[int], None],
) -> list[str]:  # fmt: skip
    """Copy and compare the tables that names mean just now; which they are."""
    names = source.tables_of_part()
    if "embedding_models" in names:
        _make_models(source, target, schema)
    everything = sql.SQL(", ").join(map(sql.Identifier, names))
    target.connection.execute(sql.SQL("TRUNCATE {}").format(everything))
    for name in names:
        begin(name)
        _copy(source, target, name, advance)
    for name in names:
        begin(f"comparing {name}")
        rows[name] = rows.get(name, 0) + _compare(source, target, name)
    return names


def _make_models(source: Side, target: Side, schema: str) -> None:
    """Give the target the vector tables of the source's models, under the same numbers, and no others."""
    wanted, present = source.models(), target.models()
    for model, _ in present:
        if (model, _) not in wanted:
            for table in vector_tables(model).values():
                target.connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(table))
    for model, dim in wanted:
        if (model, dim) not in present:
            target.connection.execute(model_sql(model, dim, schema))


def _copy(source: Side, target: Side, name: str, advance: Callable[[int], None]) -> None:
    columns = source.columns(name)
    if columns != target.columns(name):
        raise SchemaError(f"table {name} has other columns there than here; run for both: hermes-pgvector migrate")
    parts = {"table": sql.Identifier(name), "columns": _listed(columns)}
    sent = 0
    with (
        source.connection.cursor().copy(admin_statement("moving/copy_out").format(**parts)) as out,
        target.connection.cursor().copy(admin_statement("moving/copy_in").format(**parts)) as into,
    ):
        # A server sends each row as a message, and one more at the end.
        for sent, message in enumerate(out):
            into.write(message)
            if sent and sent % REPORTED_ROWS == 0:
                advance(REPORTED_ROWS)
    advance(sent % REPORTED_ROWS)


def _compare(source: Side, target: Side, name: str) -> int:
    """How many rows both sides hold; CareError where they do not hold the same."""
    here, there = source.sums_of(name), target.sums_of(name)
    differing = sorted(theme for theme in {*here, *there} if here.get(theme) != there.get(theme))
    if differing:
        first = differing[0]
        counts = [side.get(first, [0])[0] for side in (here, there)]
        raise CareError(
            f"{name} differs after copying in {len(differing)} themes; {first or 'all of it'} has {counts[0]} rows "
            f"here and {counts[1]} there; nothing was changed"
        )
    return sum(int(count) for count, _ in here.values())


def _listed(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
