"""Commands that declare their own options; the others are operations."""

from __future__ import annotations

from hermes_memory_pgvector.cli import (
    backfill,
    edit,
    forget,
    index,
    prune,
    reembed,
    restore,
    scan,
    undo,
)

COMMANDS = (undo, restore, edit, forget, prune, scan, reembed, backfill, index)
