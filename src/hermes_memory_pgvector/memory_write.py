"""What the host announces of the memory tool, as an operation on our rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory_pgvector.capture import capped, metadata_of, target_of, text_of
from hermes_memory_pgvector.model import AddMemory, MemoryOperation, Moment, RemoveMemory, ReplaceMemory

ACTIONS = ("add", "replace", "remove")
_NOT_KEPT = frozenset({"old_text", "previous_content"})


def operation(
    action: Any,
    target: Any,
    content: Any,
    metadata: Any,
    *,
    theme: str,
    when: Moment,
    home_id: str,
    max_chars: int,
) -> MemoryOperation | None:
    """The operation behind an announcement; None for an unknown action or target, or when it says nothing."""
    kind = target_of(target)
    verb = action.strip().lower() if isinstance(action, str) else ""
    if kind is None or verb not in ACTIONS:
        return None
    given: Mapping[Any, Any] = metadata if isinstance(metadata, Mapping) else {}
    text = capped(text_of(content), max_chars)
    old = text_of(given.get("old_text"))
    exact = capped(text_of(given.get("previous_content")), max_chars) or None
    common: dict[str, Any] = {
        "when": when,
        "home_id": home_id,
        "metadata": metadata_of({key: value for key, value in given.items() if key not in _NOT_KEPT}),
    }
    if verb == "remove":
        # Hosts that name no old text give the entry itself.
        wanted = old or text
        return RemoveMemory(theme, kind, wanted, previous=exact, **common) if wanted or exact else None
    if not text:
        return None
    if verb == "add":
        return AddMemory(theme, kind, text, **common)
    return ReplaceMemory(theme, kind, text, old, previous=exact, **common)
