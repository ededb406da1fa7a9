"""A host without a store of its own, for tests of the writer alone."""

from __future__ import annotations

from pathlib import Path

from hermes_memory_pgvector.capture.rewinds import Rewinds
from hermes_memory_pgvector.store.undone import UndoneTurns


def no_undo() -> UndoneTurns:
    """Nobody takes anything back."""
    return UndoneTurns(Rewinds(Path("/nonexistent"), 1000), "home", wants_vectors=False)
