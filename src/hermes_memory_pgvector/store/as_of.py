"""Memories of another time as rows of a theme of their own, within a transaction that is taken back afterwards.

So the search of the past is the search of the present: the same functions, the same ranking.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hermes_memory_pgvector.store.memory_state import State
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import model_statement, statement
from hermes_memory_pgvector.store.turns import time_of
from hermes_memory_pgvector.store.vectors import Wanting
from hermes_memory_pgvector.text.lexemes import memory_lexemes
from hermes_memory_pgvector.values import EmbeddingModel, Kind, Moment, Target


def muted(connection: Connection, theme: str, target: Target) -> set[str]:
    """The texts that are kept out of recall today."""
    rows: list[Any] = connection.execute(statement("as_of/muted"), {"theme": theme, "target": target}).fetchall()
    return {str(row[0]) for row in rows}


def put(
    connection: Connection, theme: str, former: str, states: Mapping[Target, State], model: EmbeddingModel | None
) -> list[Wanting]:
    """Make these memories rows of a theme; return those that the theme they come from has no vector for any more."""
    rows: dict[int, str] = {}
    for target, state in states.items():
        entries = list(state.values())
        values = {
            "theme": theme,
            "target": target,
            "contents": [entry.content for entry in entries],
            "created": [time_of(Moment(entry.created_us, 0)) for entry in entries],
            "updated": [time_of(Moment(entry.updated_us, 0)) for entry in entries],
            "metadata": ["{}" for _ in entries],
            "lexemes": [memory_lexemes(theme, entry.content) for entry in entries],
            "muted": [None for _ in entries],
            "origins": [entry.origin for entry in entries],
            "home_ids": [entry.home_id for entry in entries],
            "trusts": [entry.trust for entry in entries],
        }
        found: list[Any] = connection.execute(statement("memories/insert"), values).fetchall()
        rows |= {int(row_id): str(content) for content, row_id in found}
    if model is None:
        return []
    copied = connection.execute(
        model_statement("as_of/copy_vectors", model.id), {"theme": theme, "former": former}
    ).fetchall()
    known = {row[0] for row in copied}
    return [
        Wanting(theme, Kind.MEMORY, row_id, content, digest=hashlib.sha256(content.encode()).digest())
        for row_id, content in rows.items()
        if row_id not in known
    ]
