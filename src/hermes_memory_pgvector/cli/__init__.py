"""Commands that declare their own options; the others are operations."""

from __future__ import annotations

from hermes_memory_pgvector.cli import backfill, index, reembed

COMMANDS = (reembed, backfill, index)
