"""Commands that declare their own options; the others are operations."""

from __future__ import annotations

from hermes_memory_pgvector.cli import (
    backfill,
    edit,
    export,
    forget,
    import_,
    index,
    prune,
    reembed,
    restore,
    scan,
    undo,
)

COMMANDS = (undo, restore, edit, forget, prune, scan, import_, export, reembed, backfill, index)
