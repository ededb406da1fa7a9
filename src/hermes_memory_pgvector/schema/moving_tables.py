"""The tables that move when an installation moves to another database, in an order that foreign keys accept.

A table is compared and copied by blocks of neighbouring rows, so that a copy that was interrupted, or that others have
written past, costs only the blocks that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

BLOCK_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Table:
    """A table, the number that its rows are counted by, and the column that holds the theme."""

    name: str
    number: str | None = None
    """None for a table that is small enough to be one block."""
    theme: str | None = None

    @property
    def identifier(self) -> sql.Identifier:
        """Its name in SQL."""
        return sql.Identifier(self.name)

    @property
    def block(self) -> sql.Composable:
        """The block that a row belongs to."""
        if self.number is None:
            return sql.SQL("0::bigint")
        return sql.SQL("{} / {}").format(sql.Identifier(self.number), sql.Literal(BLOCK_ROWS))

    @property
    def theme_of_row(self) -> sql.Composable:
        """The theme that a row belongs to."""
        return sql.SQL("''::text") if self.theme is None else sql.Identifier(self.theme)

    def rows_of(self, blocks: Sequence[int] | None) -> sql.Composable:
        """The rows of these blocks; None for all."""
        if blocks is None:
            return sql.SQL("true")
        return sql.SQL("{} = ANY ({}::bigint[])").format(self.block, sql.Literal(list(blocks)))


THEME = "agent_identity"
MODELS = Table("embedding_models")
TABLES = (
    MODELS,
    Table("reembedding"),
    Table("memory_entries", "id", THEME),
    Table("conversations", "id", THEME),
    Table("memory_sources", "entry_id", THEME),
    Table("memory_operations", "id", THEME),
    Table("memory_files"),
    Table("delegations", "id", THEME),
    Table("theme_aliases"),
    Table("quarantines", "id"),
    Table("quarantined_turns", "id", THEME),
    Table("quarantined_memories", "id", THEME),
    Table("hidden", "id"),
    Table("receipts", "id"),
    Table("forgotten", "receipt"),
    Table("homes"),
    Table("processes"),
    Table("lexeme_statistics"),
    Table("recall_log", "id", THEME),
    Table("agents", None, THEME),
    Table("agent_processes"),
    Table("past_processes"),
    Table("audit_log", "id"),
    Table("erasure_key"),
    Table("erasure_receipts", "id"),
    Table("tombstones", "receipt_id"),
    Table("dead_letters", "id"),
    Table("pending_vectors", "id", THEME),
    Table("journal_writers"),
    Table("journals_ended"),
)
"""All but the vector tables, of which each model has two."""
STAYING = ("hermes_pgvector_migrations", "hermes_pgvector_installation", "theme_indexes")
"""What every database has for itself: indexes of themes are built anew."""
MADE_BY_MIGRATE = ("embedding_models", "erasure_key", "lexeme_statistics")
"""What an unused database may hold."""


def vector_tables_of(model_id: int) -> tuple[Table, Table]:
    """The tables of one model's vectors."""
    return Table(f"memory_vectors_{model_id}", "id", THEME), Table(f"turn_vectors_{model_id}", "id", THEME)
