"""Takes over a database made by the seed's schema or by the published package, with every row and vector.

One transaction renames the old tables, creates the new ones and copies the rows. The old tables stay under their new
names until the operator drops them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres.statements import vector_tables
from hermes_memory_pgvector.schema.model_tables import ModelSpec, ensure_model
from hermes_memory_pgvector.schema.statements import admin_statement

PREFIX: LiteralString = "adopted_"
TABLES: tuple[LiteralString, ...] = ("memory_entries", "conversations")
OWN_COLUMN: LiteralString = "lexemes"
"""A column that only our tables have."""


@dataclass(slots=True)
class Adopted:
    """What was copied."""

    memories: int = 0
    turns: int = 0
    vectors: int = 0
    model_id: int | None = None
    notice: str = ""


@dataclass(slots=True)
class Adoption:
    """An earlier installation's tables in this database."""

    connection: psycopg.Connection
    tables: tuple[LiteralString, ...]

    @classmethod
    def find(cls, connection: psycopg.Connection) -> Adoption | None:
        """The tables of an earlier installation in this schema, when our own ledger is still empty."""
        if connection.execute("SELECT 1 FROM hermes_pgvector_migrations LIMIT 1").fetchone() is not None:
            return None
        present = tuple(name for name in TABLES if _exists(connection, name))
        if not present:
            return None
        if any(_has_column(connection, name, OWN_COLUMN) for name in present):
            raise SchemaError(
                "the tables in this schema are this package's own, but there is no record of their migrations "
                "(hermes_pgvector_migrations is empty); restore that table from your backup, "
                "then run: hermes-pgvector migrate"
            )
        if _exists(connection, PREFIX + "memory_entries") or _exists(connection, PREFIX + "conversations"):
            raise SchemaError(
                "tables of an earlier adoption (adopted_…) are in the way; rename or drop them, "
                "then run: hermes-pgvector migrate"
            )
        return cls(connection, present)

    def intention(self, schema: str) -> str:
        """A sentence for the operator about what is going to be adopted."""
        tables = " and ".join(f"{table} ({self._rows(table):,} rows)" for table in self.tables)
        return (
            f'adopting the tables of an earlier installation in schema "{schema}": {tables}; '
            f"every row is copied, and they stay there as {PREFIX}…"
        )

    def set_aside(self) -> None:
        """Rename the old tables and everything that would clash with the new ones."""
        for table in self.tables:
            for kind, name in self._dependents(table):
                old, new = sql.Identifier(name), sql.Identifier((PREFIX + name)[:63])
                self.connection.execute(sql.SQL("ALTER {} {} RENAME TO {}").format(sql.SQL(kind), old, new))
            self.connection.execute(
                sql.SQL("ALTER TABLE {} RENAME TO {}").format(sql.Identifier(table), sql.Identifier(PREFIX + table))
            )

    def carry_over(self, model_name: str, current_model: int | None) -> Adopted:
        """Copy all rows and vectors into the new tables."""
        adopted = Adopted(model_id=current_model)
        if "memory_entries" in self.tables:
            folded = sql.SQL("coalesce(nullif(lower(btrim(agent_identity)), ''), 'default')")
            for theme in (folded, sql.SQL("agent_identity")):
                adopted.memories += self._count(admin_statement("adoption/memories").format(theme=theme))
            self._verify("memory_entries")
            self.connection.execute(admin_statement("adoption/operations"))
        if "conversations" in self.tables:
            has_parent = _has_column(self.connection, "adopted_conversations", "parent_session_id")
            parent = sql.SQL("parent_session_id" if has_parent else "NULL")
            adopted.turns += self._count(admin_statement("adoption/turns").format(parent=parent))
            self._verify("conversations")
        self._carry_vectors(adopted, model_name)
        for table in self.tables:
            self.connection.execute(
                sql.SQL("SELECT setval({}, greatest((SELECT max(id) FROM {}), 1))").format(
                    sql.Literal(f"{table}_id_seq"), sql.Identifier(table)
                )
            )
        if _exists(self.connection, "memory_agent_edges"):
            self.connection.execute(admin_statement("adoption/delegations"))
        kept = ", ".join(PREFIX + table for table in self.tables)
        adopted.notice = f"the earlier tables are kept as {kept}; drop them when you are satisfied"
        return adopted

    def _carry_vectors(self, adopted: Adopted, model_name: str) -> None:
        copies = {"memory_entries": "adoption/memory_vectors", "conversations": "adoption/turn_vectors"}
        for table in self.tables:
            dim = self._dimension(PREFIX + table)
            if dim is None:
                continue
            model_id = ensure_model(self.connection, ModelSpec(model_name, dim), is_current=adopted.model_id is None)
            adopted.model_id = adopted.model_id or model_id
            names = vector_tables(model_id)
            adopted.vectors += self._count(admin_statement(copies[table]).format(**names, dim=sql.Literal(dim)))

    def _verify(self, table: LiteralString) -> None:
        old, new = self._rows(PREFIX + table), self._rows(table)
        if old != new:
            raise SchemaError(
                f"only {new} of {old} rows of {table} could be copied; nothing was changed. "
                "Please report this with the output of: hermes-pgvector migrate --print"
            )

    def _dimension(self, table: str) -> int | None:
        row = self.connection.execute(admin_statement("adoption/dimension"), (table,)).fetchone()
        return int(row[0]) if row is not None and int(row[0]) > 0 else None

    def _dependents(self, table: str) -> list[tuple[LiteralString, str]]:
        found: list[tuple[LiteralString, str]] = [
            ("INDEX", str(row[0])) for row in self.connection.execute(admin_statement("adoption/indexes"), (table,))
        ]
        row = self.connection.execute("SELECT pg_get_serial_sequence(%s, 'id')", (table,)).fetchone()
        if row is not None and row[0] is not None:
            found.append(("SEQUENCE", str(row[0]).rpartition(".")[2].strip('"')))
        return [(kind, name.rpartition(".")[2].strip('"')) for kind, name in found]

    def _rows(self, table: str) -> int:
        return self._count(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))

    def _count(self, query: sql.SQL | sql.Composed) -> int:
        row = self.connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def other_installations(connection: psycopg.Connection, schema: str) -> list[str]:
    """Other schemas of this database in which memories are kept, by this package or an earlier one."""
    rows = connection.execute(
        admin_statement("adoption/other_installations"), {"tables": list(TABLES), "schema": schema}
    )
    return [str(row[0]) for row in rows]


def _exists(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute(admin_statement("schema/table_exists"), (name,)).fetchone()
    return row is not None and bool(row[0])


def _has_column(connection: psycopg.Connection, table: str, column: str) -> bool:
    row = connection.execute(admin_statement("schema/column_exists"), (table, column)).fetchone()
    return row is not None and bool(row[0])
