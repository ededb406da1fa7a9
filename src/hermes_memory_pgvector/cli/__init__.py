"""Commands that declare their own options; the others are operations."""

from __future__ import annotations

from hermes_memory_pgvector.cli import (
    backfill,
    forget,
    index,
    prune,
    reembed,
    scan,
)

COMMANDS = (forget, prune, scan, reembed, backfill, index)
