"""Write items without the secrets that people paste into a chat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.text.secrets import KEY_IN_METADATA, Masker
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    DistrustMemories,
    RemoveMemory,
    ReplaceMemory,
    UndoTurns,
    WriteItem,
)


def without_secrets(item: WriteItem, masker: Masker) -> WriteItem:
    """The same item with its secrets masked; its metadata counts them by kind."""
    counts: Counter[str] = Counter()

    def hide(text: str) -> str:
        masked = masker.mask(text)
        counts.update(masked.counts)
        return masked.text

    match item:
        case AddTurn():
            return mask_turn(item, masker)
        case AddMemory():
            content, metadata = hide(item.content), masker.mask_all(item.metadata, counts)
            return replace(item, content=content, metadata=_counted(metadata, counts)) if counts else item
        case ReplaceMemory():
            content, metadata = hide(item.content), masker.mask_all(item.metadata, counts)
            found = dict(counts)
            old_text, previous = hide(item.old_text), None if item.previous is None else hide(item.previous)
            if not counts:
                return item
            return replace(
                item, content=content, old_text=old_text, previous=previous, metadata=_counted(metadata, found)
            )
        case RemoveMemory():
            old_text, previous = hide(item.old_text), None if item.previous is None else hide(item.previous)
            metadata = masker.mask_all(item.metadata, counts)
            return replace(item, old_text=old_text, previous=previous, metadata=metadata) if counts else item
        case UndoTurns() | DistrustMemories():
            return item
        case _:
            assert_never(item)


def mask_turn(turn: AddTurn, masker: Masker) -> AddTurn:
    """The same turn without secrets; its digest is that of what was said, so that it is recognised when told again."""
    counts: Counter[str] = Counter()
    masked = masker.mask(turn.content)
    counts.update(masked.counts)
    metadata = masker.mask_all(turn.metadata, counts)
    if not counts:
        return turn
    return replace(
        turn,
        content=masked.text,
        metadata=_counted(metadata, counts),
        digest=turn.digest or turn_digest(turn.role, turn.content),
    )


def _counted(metadata: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    return {**metadata, **({KEY_IN_METADATA: dict(counts)} if counts else {})}
