"""What is in quarantine in a theme, by which rule, and bringing it back."""

from __future__ import annotations

from hermes_memory_pgvector.care import held, quarantine, see
from hermes_memory_pgvector.care.actor import operator
from hermes_memory_pgvector.care.held import Batch
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.web import access, documents
from hermes_memory_pgvector.web.asked import Asked, Document, plain
from hermes_memory_pgvector.web.changing import confirmed

PAGE = 10
MOST = 100
LAST_NUMBER = 2**62


def batches(asked: Asked) -> Document:
    """The quarantines that concern a theme."""
    with access.reading(asked.home) as connection:
        found = held.in_theme(connection, asked.needed("theme"))
    return {"batches": [_batch(each) for each in found]}


def rows(asked: Asked) -> Document:
    """The rows of a theme that one quarantine holds, newest first."""
    limit = asked.whole("limit", PAGE, 1, MOST)
    theme, number = asked.needed("theme"), _number(asked)
    with access.reading(asked.home) as connection:
        found = see.quarantined(connection, theme, number, page=asked.text("page") or None, limit=limit)
    return {"rows": [{**documents.row(each), "quarantined": True} for each in found.rows], "next": found.following}


def release(asked: Asked) -> Document:
    """End a quarantine, in every theme it holds rows of."""
    number, actor = _number(asked), operator(asked.home)

    def change(connection: Connection, execute: bool) -> Document:
        done = quarantine.undo(connection, number, actor, execute=execute)
        return {
            "executed": execute,
            "batch": done.id,
            "back": {"memories": done.memories, "turns": done.turns},
            "goes_on": done.rule.until is None and done.is_rule,
        }

    return confirmed(asked, "release", change)


def _number(asked: Asked) -> int:
    asked.needed("batch")
    return asked.whole("batch", 0, 1, LAST_NUMBER)


def _batch(each: Batch) -> Document:
    about = each.quarantine
    return {
        "batch": about.id,
        "at": plain(about.at),
        "by": about.actor,
        "rule": plain(about.rule),
        "is_rule": about.is_rule,
        "undone_at": plain(about.undone_at),
        "memories": each.memories,
        "turns": each.turns,
        "elsewhere": about.memories + about.turns - each.memories - each.turns,
    }
