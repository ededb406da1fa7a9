"""Makes the tables of one database equal to those of another, and shows that they are.

Both sides add up a checksum per block of rows; blocks that differ are copied anew with COPY, in portions that are
committed one by one. So it does not matter how far an earlier run came, or what was written meanwhile: running it again
copies what is missing. The source is read as it was at one moment, so rows always come after the rows they refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.schema.moving_tables import Table
from hermes_memory_pgvector.schema.statements import admin_statement

PORTION_BYTES = 8 * 1024 * 1024
# What a binary COPY begins and ends with.
HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
BY_BINARY = {"halfvec": "halfvec_send"}
"""Types whose binary form is a shorter text to take a checksum of."""
Sum = tuple[int, int]
"""A number of rows and their checksum."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a table holds, in numbers."""

    blocks: dict[int, Sum] = field(default_factory=dict)
    themes: dict[str, Sum] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(count for count, _ in self.themes.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """A theme that is not the same on both sides."""

    table: str
    theme: str
    here: int
    there: int


@dataclass(slots=True)
class Pass:
    """One comparison of all tables, and what it copied."""

    rows: dict[str, int] = field(default_factory=dict)
    """How many rows each table has."""
    copied: dict[str, int] = field(default_factory=dict)
    """How many rows were copied, by table."""

    @property
    def total(self) -> int:
        """How many rows were copied."""
        return sum(self.copied.values())


class Copying:
    """From one database to another; both connections are the owner's, with names that mean the same."""

    def __init__(
        self,
        source: psycopg.Connection,
        target: psycopg.Connection,
        *,
        is_binary: bool,
        begin: Callable[[str], None] = lambda _: None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`begin` hears the name of each table, `advance` how many rows are known to be the same now."""
        self._source = source
        self._target = target
        self._format = sql.SQL("binary" if is_binary else "text")
        self._is_binary = is_binary
        self._begin = begin
        self._advance = advance
        self._known: dict[str, Fingerprint] = {}

    def bring_in_line(self, tables: Sequence[Table]) -> Pass:
        """Copy what differs. The source is within a transaction that sees one moment."""
        done = Pass()
        for table in tables:
            self._begin(table.name)
            copied, done.rows[table.name] = self._table(table)
            if copied:
                done.copied[table.name] = copied
        return done

    def differences(self, tables: Sequence[Table]) -> list[Difference]:
        """Themes that are not the same on both sides, as the source was at the last pass."""
        found = []
        for table in tables:
            self._begin(table.name)
            columns = self._columns(table)
            here = self._known.get(table.name) or fingerprint(self._source, table, columns)
            there = fingerprint(self._target, table, columns)
            themes = sorted(theme for theme in {*here.themes, *there.themes} if _differ(here, there, theme))
            found += [
                Difference(table.name, theme, here.themes.get(theme, (0, 0))[0], there.themes.get(theme, (0, 0))[0])
                for theme in themes
            ]
        return found

    def _table(self, table: Table) -> tuple[int, int]:
        """Bring one table in line; how many rows were copied, and how many there are."""
        columns = self._columns(table)
        if not has_rows(self._target, table):
            self._known.pop(table.name, None)
            copied = self._stream(table, columns, None)
            return copied, copied
        with ThreadPoolExecutor(1) as other:
            asked = other.submit(fingerprint, self._target, table, columns)
            here = self._known[table.name] = fingerprint(self._source, table, columns)
            there = asked.result()
        differing = sorted(b for b in {*here.blocks, *there.blocks} if here.blocks.get(b) != there.blocks.get(b))
        self._advance(here.rows - sum(here.blocks.get(block, (0, 0))[0] for block in differing))
        if not differing:
            return 0, here.rows
        with self._changing(table):
            delete = admin_statement("moving/delete").format(table=table.identifier, rows=table.rows_of(differing))
            self._target.execute(delete)
        return self._stream(table, columns, differing), here.rows

    def _columns(self, table: Table) -> list[tuple[str, str]]:
        ours, theirs = (columns_of(side, table.name) for side in (self._source, self._target))
        if ours != theirs:
            raise SchemaError(
                f"table {table.name} has other columns there than here; bring both up to date: hermes-pgvector migrate"
            )
        return ours

    def _stream(self, table: Table, columns: Sequence[tuple[str, str]], blocks: Sequence[int] | None) -> int:
        names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
        parts = {"table": table.identifier, "columns": names, "format": self._format}
        take = admin_statement("moving/copy_in").format(**parts)
        total = 0
        for portion, rows in self._portions(
            admin_statement("moving/copy_out").format(**parts, rows=table.rows_of(blocks))
        ):
            with self._changing(table), self._target.cursor().copy(take) as into:
                into.write(portion)
            total += rows
            self._advance(rows)
        return total

    def _portions(self, query: sql.Composed) -> Iterator[tuple[bytes, int]]:
        """What the source sends, cut between rows."""
        head, tail = (HEADER, TRAILER) if self._is_binary else (b"", b"")
        buffer, rows, is_first = bytearray(head), 0, self._is_binary
        with self._source.cursor().copy(query) as out:
            for message in out:
                data = bytes(message)
                if is_first:
                    data, is_first = data[len(HEADER) :], False
                if self._is_binary and data == TRAILER:
                    continue
                buffer += data
                rows += 1
                if len(buffer) >= PORTION_BYTES:
                    yield bytes(buffer + tail), rows
                    buffer, rows = bytearray(head), 0
        if rows:
            yield bytes(buffer + tail), rows

    @contextmanager
    def _changing(self, table: Table) -> Iterator[None]:
        """A transaction that may change a closed table and stores rows as they are, uncounted and uncompleted."""
        with self._target.transaction():
            self._target.execute("SELECT set_config('hermes.moves', 'yes', true)")
            row: Any = self._target.execute(admin_statement("moving/minders"), (table.name,)).fetchone()
            if row[0]:
                self._target.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(table.identifier))
            yield
            if row[0]:
                self._target.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(table.identifier))


def fingerprint(connection: psycopg.Connection, table: Table, columns: Sequence[tuple[str, str]]) -> Fingerprint:
    """What a table holds, in numbers."""
    query = admin_statement("moving/fingerprint").format(
        table=table.identifier,
        block=table.block,
        theme=table.theme_of_row,
        columns=sql.SQL(", ").join(_summed(name, kind) for name, kind in columns),
    )
    found = Fingerprint()
    rows: list[Any] = connection.execute(query).fetchall()
    for is_block, block, theme, count, checksum in rows:
        if is_block:
            found.blocks[int(block)] = (int(count), int(checksum))
        else:
            found.themes[str(theme)] = (int(count), int(checksum))
    return found


def columns_of(connection: psycopg.Connection, table: str) -> list[tuple[str, str]]:
    """The names and types of a table's columns."""
    rows: list[Any] = connection.execute(admin_statement("moving/columns"), (table,)).fetchall()
    return [(str(name), str(kind)) for name, kind in rows]


def has_rows(connection: psycopg.Connection, table: Table) -> bool:
    """Whether a table has rows."""
    row: Any = connection.execute(admin_statement("moving/has_rows").format(table=table.identifier)).fetchone()
    return bool(row[0])


def count_rows(connection: psycopg.Connection, table: Table) -> int:
    """How many rows a table has."""
    row: Any = connection.execute(admin_statement("moving/count").format(table=table.identifier)).fetchone()
    return int(row[0])


def _summed(name: str, kind: str) -> sql.Composable:
    send = BY_BINARY.get(kind.partition("(")[0].rpartition(".")[2])
    column = sql.Identifier(name)
    return column if send is None else sql.SQL("{}({})").format(sql.Identifier(send), column)


def _differ(here: Fingerprint, there: Fingerprint, theme: str) -> bool:
    return here.themes.get(theme) != there.themes.get(theme)
