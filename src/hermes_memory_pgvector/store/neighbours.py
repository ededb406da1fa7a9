"""The turns beside those found: asked for in one statement, each within its own session and theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

import psycopg

from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.values import Hit, Neighbour

Connection = psycopg.Connection[tuple[object, ...]]

SETTINGS: LiteralString = """\
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true)"""
NEIGHBOUR_CHARS = 2000
"""How much of a neighbour is read: nobody shows more of it."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Hits whose neighbours are on their way."""

    hits: Sequence[Hit]
    cursor: psycopg.Cursor[Any]

    def receive(self) -> list[Hit]:
        """The same hits in the same order, with the neighbours that exist."""
        hits = list(self.hits)
        with self.cursor:
            for place, side, role, ts, content in self.cursor.fetchall():
                found = Neighbour(role, ts, content)
                hit = hits[place - 1]
                hits[place - 1] = replace(hit, before=found) if side == "before" else replace(hit, after=found)
        return hits


def add_neighbours(connection: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Turns found, with the turns beside them; the connection must be in a transaction."""
    return send(connection, hits).receive() if hits else []


def send(connection: Connection, hits: Sequence[Hit]) -> Pending:
    """Ask for the neighbours of turns; the connection must be in a transaction."""
    # However small the table is, and whatever is known of it, a session is read from its timeline.
    connection.execute(SETTINGS)
    values = {
        "themes": [hit.theme for hit in hits],
        "session_ids": [hit.session_id for hit in hits],
        "ts": [hit.ts for hit in hits],
        "ids": [hit.id for hit in hits],
        "chars": NEIGHBOUR_CHARS,
    }
    return Pending(hits, connection.cursor().execute(statement("turns_beside"), values))
