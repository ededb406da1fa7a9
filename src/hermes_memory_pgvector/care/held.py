"""What is in quarantine in one theme: the batches with their rules, and their rows in pages."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_memory_pgvector.care import quarantine, themes
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import held_rows
from hermes_memory_pgvector.store.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class Batch:
    """A quarantine, and how much of the theme it holds."""

    quarantine: Quarantine
    turns: int
    memories: int


def in_theme(connection: Connection, theme: str) -> list[Batch]:
    """The quarantines that hold rows of a theme, or are or were about it alone, the newest first."""
    themes.require(connection, theme)
    here = held_rows.counts(connection, theme)
    return [
        Batch(each, *here.get(each.id, (0, 0)))
        for each in quarantine.listed(connection)
        if each.id in here or each.rule.theme == theme
    ]
