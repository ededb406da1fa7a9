"""The meaning of memory operations: a state of entries, and what each operation makes of it. Pure.

Everything that decides what happens to an entry is here, so that the writer, the late-arrival repair and the tests
apply the same rules. A state holds the entries of one theme and target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hermes_memory_pgvector.values import (
    AddMemory,
    MemoryOperation,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
)


class Hold(NamedTuple):
    """How a home came to hold an entry, and since when."""

    origin: Origin
    since_us: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory, and the homes that hold it with how each came to hold it."""

    content: str
    homes: Mapping[str, Hold]
    created_us: int
    updated_us: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: int | None = None
    """Its row, when it has one; an entry that is replaced keeps it."""
    hidden_by: int | None = None
    """The rule that hides it from recall; its next words are hidden, too."""
    origin: RowOrigin | None = None
    """What wrote these words first; None where nobody said."""
    home_id: str = ""
    untrusted: bool = False


State = dict[str, Entry]
"""Entries by content: within a theme and target the same content exists once."""


_EMPTY: Mapping[str, Entry] = {}

Touched = dict[str, Entry | None]
"""What a state held under the contents that an operation concerns, before it; None where it held nothing."""


def fold(
    operations: Iterable[MemoryOperation], hidden: Mapping[str, int] | None = None, base: Mapping[str, Entry] = _EMPTY
) -> State:
    """The state after all operations, given in their order.

    `hidden` says which contents which rule hides; `base` is what no operation has put there.
    """
    state: State = dict(base)
    for operation in operations:
        for content in apply(state, operation):
            if hidden and content in hidden and content in state:
                state[content] = replace(state[content], hidden_by=hidden[content])
    return state


def apply(state: State, operation: MemoryOperation) -> Touched:
    """Change the state as the operation says; nothing but what the answer names has changed."""
    entry = None if isinstance(operation, AddMemory) else select(state, operation)
    touched: Touched = {} if entry is None else {entry.content: entry}
    if not isinstance(operation, RemoveMemory):
        touched[operation.content] = state.get(operation.content)
    match operation:
        case AddMemory():
            _hold(state, operation)
        case RemoveMemory():
            if entry is not None:
                _drop(state, entry, operation.home_id)
        case ReplaceMemory():
            _replace(state, operation, entry)
    return touched


def select(state: State, operation: ReplaceMemory | RemoveMemory) -> Entry | None:
    """The one entry an operation means: held by its home or by no home, named exactly or by a literal substring."""
    if operation.previous:
        exact = state.get(operation.previous)
        if exact is not None and (not exact.homes or operation.home_id in exact.homes):
            return exact
    wanted = operation.old_text.strip()
    if not wanted:
        return None
    matching = [entry for entry in state.values() if wanted in entry.content]
    mine = [entry for entry in matching if operation.home_id in entry.homes]
    candidates = mine or [entry for entry in matching if not entry.homes]
    return candidates[0] if len(candidates) == 1 else None


def _hold(state: State, operation: AddMemory | ReplaceMemory) -> None:
    known = state.get(operation.content)
    if known is None:
        state[operation.content] = Entry(
            operation.content,
            _held_by(operation),
            operation.when.wall_us,
            operation.when.wall_us,
            operation.metadata,
            origin=operation.written_by,
            home_id=operation.home_id,
            untrusted=operation.untrusted,
        )
        return
    before = known.homes.get(operation.home_id)
    if before is None or before.origin is not Origin.TOOL:
        state[operation.content] = replace(known, homes={**known.homes, **_held_by(operation)})


def _held_by(operation: AddMemory | ReplaceMemory) -> dict[str, Hold]:
    home = operation.home_id
    return {home: Hold(operation.origin, operation.when.wall_us)} if home else {}


def _drop(state: State, entry: Entry, home_id: str) -> None:
    homes = {home: held for home, held in entry.homes.items() if home != home_id}
    if homes:
        state[entry.content] = replace(entry, homes=homes)
    else:
        del state[entry.content]


def _replace(state: State, operation: ReplaceMemory, entry: Entry | None) -> None:
    if entry is None:
        _hold(state, operation)
        return
    if entry.content == operation.content:
        return
    is_shared = any(home != operation.home_id for home in entry.homes)
    if is_shared or operation.content in state:
        is_new = operation.content not in state
        _drop(state, entry, operation.home_id)
        _hold(state, operation)
        if is_new:
            state[operation.content] = replace(state[operation.content], hidden_by=entry.hidden_by)
        return
    del state[entry.content]
    state[operation.content] = replace(
        entry,
        content=operation.content,
        homes=_held_by(operation),
        updated_us=operation.when.wall_us,
        metadata={**{key: value for key, value in entry.metadata.items() if key != "tools"}, **operation.metadata},
        origin=operation.written_by,
        home_id=operation.home_id,
        untrusted=operation.untrusted,
    )
