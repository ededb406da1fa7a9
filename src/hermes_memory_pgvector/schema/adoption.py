"""Takes over a database made by the seed's schema or by the published package, with every row and vector.

One transaction renames the old tables, creates the new ones and copies the rows. The old tables stay under their new
names until the operator drops them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres.statements import admin_statement, vector_tables
from hermes_memory_pgvector.schema.model_tables import NewModel, ensure_model
from hermes_memory_pgvector.schema.owner import has_table, value

PREFIX: LiteralString = "adopted_"
TABLES: tuple[LiteralString, ...] = ("memory_entries", "conversations")
OWN_COLUMN: LiteralString = "lexemes"
"""A column that only our tables have."""
COLUMNS: Final = {
    "memory_entries": (
        "id", "agent_identity", "target", "content", "embedding", "created_at", "updated_at", "metadata",
    ),
    "conversations": (
        "id", "session_id", "agent_identity", "role", "content", "ts", "embedding", "metadata", "parent_session_id",
    ),
    "memory_agent_edges": (
        "id", "parent_identity", "child_identity", "parent_session_id", "child_session_id", "kind", "ts", "attrs",
    ),
}  # fmt: skip
"""What is adopted of the published package's tables, up to its version 1.0."""
LATER_COLUMNS: Final = {"conversations.parent_session_id"}
"""What the first of its versions did not have."""
LEFT_TABLES: Final = ("memory_agents", "memory_maintenance_log")
"""Its tables of which nothing is adopted."""
ELSEWHERE: Final = "bring the rows into another database: hermes-pgvector import postgresql://…"


@dataclass(slots=True)
class Adopted:
    """What was copied."""

    memories: int = 0
    turns: int = 0
    vectors: int = 0
    model_id: int | None = None


class EarlierTables:
    """An earlier installation's tables in this database."""

    def __init__(self, connection: psycopg.Connection[Any], names: tuple[LiteralString, ...]) -> None:
        self._connection = connection
        self.names = names

    @classmethod
    def find(cls, connection: psycopg.Connection[Any]) -> EarlierTables | None:
        """The tables of an earlier installation in this schema, when our own ledger is still empty."""
        if value(connection, sql.SQL("SELECT 1 FROM hermes_pgvector_migrations LIMIT 1")) is not None:
            return None
        found = cls(connection, tuple(name for name in TABLES if has_table(connection, name)))
        if any(found._has_column(name, OWN_COLUMN) for name in found.names):
            raise SchemaError(
                "the tables in this schema are this package's own, but there is no record of their migrations "
                "(hermes_pgvector_migrations is empty); restore that table from your backup, "
                "then run: hermes-pgvector migrate"
            )
        if found.names:
            found._check_columns()
            found._check_tables()
        return found if found.names else None

    def intention(self, schema: str) -> str:
        """A sentence for the operator about what is going to be adopted."""
        tables = " and ".join(f"{table} ({self._rows(table):,} rows)" for table in self.names)
        return (
            f'adopting the tables of an earlier installation in schema "{schema}": {tables}; '
            f"every row is copied, and they stay there as {PREFIX}…"
        )

    def set_aside(self) -> None:
        """Rename the old tables and everything that would clash with the new ones."""
        for table in self.names:
            for (name,) in self._connection.execute(admin_statement("adoption/names"), {"table": table}).fetchall():
                # What is said of a table holds for its indexes and sequences.
                renamed = sql.SQL("ALTER TABLE {} RENAME TO {}")
                new = sql.Identifier((PREFIX + name)[:63])
                self._connection.execute(renamed.format(sql.Identifier(name), new))

    def carry_over(self, model_name: str, current_model: int | None) -> Adopted:
        """Copy all rows and vectors into the new tables."""
        adopted = Adopted(model_id=current_model)
        if "memory_entries" in self.names:
            folded = sql.SQL("coalesce(nullif(lower(btrim(agent_identity)), ''), 'default')")
            for theme in (folded, sql.SQL("agent_identity")):
                adopted.memories += self._count(admin_statement("adoption/memories").format(theme=theme))
            self._connection.execute(admin_statement("adoption/operations"))
        if "conversations" in self.names:
            has_parent = self._has_column("adopted_conversations", "parent_session_id")
            parent = sql.SQL("parent_session_id" if has_parent else "NULL")
            adopted.turns = self._count(admin_statement("adoption/turns").format(parent=parent))
        copies = {"memory_entries": "adoption/memory_vectors", "conversations": "adoption/turn_vectors"}
        for table in self.names:
            old, new = self._rows(PREFIX + table), self._rows(table)
            if old != new:
                raise SchemaError(f"only {new} of {old} rows of {table} could be copied; nothing was changed")
            dim = value(self._connection, "adoption/dimension", (PREFIX + table,))
            if dim is not None and dim > 0:
                spec, is_first = NewModel(model_name, int(dim)), adopted.model_id is None
                model_id = ensure_model(self._connection, spec, is_current=is_first)
                adopted.model_id = adopted.model_id or model_id
                copy = admin_statement(copies[table]).format(**vector_tables(model_id), dim=sql.Literal(int(dim)))
                adopted.vectors += self._count(copy)
            number = sql.SQL("SELECT setval({}, greatest((SELECT max(id) FROM {}), 1))")
            self._connection.execute(number.format(sql.Literal(f"{table}_id_seq"), sql.Identifier(table)))
        if has_table(self._connection, "memory_agent_edges"):
            self._connection.execute(admin_statement("adoption/delegations"))
        return adopted

    @property
    def notice(self) -> str:
        """Where they are afterwards."""
        kept = ", ".join(PREFIX + table for table in self.names)
        return f"the earlier tables are kept as {kept}; drop them when you are satisfied"

    def _has_column(self, table: str, column: str) -> bool:
        return bool(value(self._connection, "schema/column_exists", (table, column)))

    def _check_columns(self) -> None:
        """SchemaError where a table is not as a published version that we know has made it."""
        known, there = set[str](), set[str]()
        for table in COLUMNS:
            if has_table(self._connection, table):
                known.update(f"{table}.{column}" for column in COLUMNS[table])
                rows = self._connection.execute(admin_statement("adoption/columns"), (table,))
                there.update(f"{table}.{column}" for (column,) in rows)
        if there - known:
            raise SchemaError(
                f"the tables in this schema have columns that this version does not know ({_listed(there - known)}), "
                "so a later version of the published package has made them; nothing was changed. Upgrade this package, "
                f"or {ELSEWHERE}"
            )
        missing = known - there - LATER_COLUMNS
        if missing:
            raise SchemaError(
                f"the tables in this schema lack columns that every published version has ({_listed(missing)}); "
                "nothing was changed. Restore them from your backup, then run: hermes-pgvector migrate"
            )

    def _check_tables(self) -> None:
        """SchemaError where there is a table that looks like the published package's, and we do not know it."""
        known = [*COLUMNS, *LEFT_TABLES]
        unknown = {name for (name,) in self._connection.execute(admin_statement("adoption/other_tables"), (known,))}
        if unknown:
            raise SchemaError(
                f"this schema has tables that this version does not know ({_listed(unknown)}) beside those of an "
                "earlier installation, so a later version of the published package may have made them; nothing was "
                "changed. Upgrade this package; if they are your own, move them: ALTER TABLE … SET SCHEMA …; or "
                f"{ELSEWHERE}"
            )

    def _rows(self, table: str) -> int:
        return self._count(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))

    def _count(self, query: sql.SQL | sql.Composed) -> int:
        return int(value(self._connection, query))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
