"""A history of memory operations without what was forgotten, and with the same entries otherwise. Pure.

Operations name entries by a part of their text, so leaving one out can change what another means: a removal that was
void because two entries matched would take the one that is left. So each operation that no longer means by itself what
it meant is written down with the entry it meant, and one that only made something into what is forgotten becomes a
removal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hermes_memory_pgvector.store.memory_state import Entry, State, apply, select
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, RemoveMemory, ReplaceMemory

IsForgotten = Callable[[str, MemoryOperation], bool]
"""Whether a text is forgotten, as something that this operation says."""
Quotes = Callable[[str], bool]
"""Whether a text is, or may be, part of something forgotten."""


def without(
    operations: Iterable[MemoryOperation], is_forgotten: IsForgotten, quotes: Quotes
) -> list[MemoryOperation | None]:
    """What each operation becomes, in their order; None for one that is left out."""
    before: State = {}
    after: State = {}
    found: list[MemoryOperation | None] = []
    for operation in operations:
        meant = None if isinstance(operation, AddMemory) else select(before, operation)
        new = _rewritten(operation, meant, after, is_forgotten, quotes)
        apply(before, operation)
        if new is not None:
            apply(after, new)
        found.append(new)
    return found


def pinned(operation: MemoryOperation, state: State, *, is_forgotten: bool) -> MemoryOperation | None:
    """A late operation as it applies to the state at its place, quoting only what is there; None for a void one.

    `is_forgotten`: so is what it says, and all that is left of it is what it took away.
    """
    if isinstance(operation, AddMemory):
        return None if is_forgotten else operation
    meant = select(state, operation)
    if isinstance(operation, ReplaceMemory) and is_forgotten:
        return None if meant is None else removed(operation, meant.content)
    if meant is not None:
        return replace(operation, old_text="", previous=meant.content)
    return added(operation) if isinstance(operation, ReplaceMemory) else None


def added(operation: ReplaceMemory) -> AddMemory:
    """A replacement of something that is not there: an addition."""
    return AddMemory(
        operation.theme,
        operation.target,
        operation.content,
        operation.when,
        operation.home_id,
        operation.origin,
        operation.metadata,
        operation.written_by,
        operation.trust,
    )


def removed(operation: ReplaceMemory, previous: str | None, old_text: str = "") -> RemoveMemory:
    """A replacement by something that is forgotten: a removal."""
    return RemoveMemory(
        operation.theme,
        operation.target,
        old_text,
        operation.when,
        operation.home_id,
        previous,
        operation.origin,
        operation.metadata,
    )


def _rewritten(
    operation: MemoryOperation, meant: Entry | None, after: State, is_forgotten: IsForgotten, quotes: Quotes
) -> MemoryOperation | None:
    if isinstance(operation, AddMemory):
        return None if is_forgotten(operation.content, operation) else operation
    is_there = meant is not None and meant.content in after
    if isinstance(operation, ReplaceMemory) and is_forgotten(operation.content, operation):
        return removed(operation, meant.content) if meant is not None and is_there else None
    means_now = select(after, operation)
    is_same = (None if means_now is None else means_now.content) == (
        meant.content if meant is not None and is_there else None
    )
    told = quotes(operation.old_text) or quotes(operation.previous or "")
    if is_same and not told and (meant is None or is_there):
        return operation
    if meant is not None and is_there:
        return replace(operation, old_text="", previous=meant.content)
    return added(operation) if isinstance(operation, ReplaceMemory) else None
