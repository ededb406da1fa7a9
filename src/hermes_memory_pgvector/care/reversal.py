"""What has to be done so that a theme's memories are again as they were. Pure.

MEMORY.md and USER.md win: an entry that stands in a home's file cannot be taken away from here, because the mirror
would bring it back. Such an entry is blocked, and whoever asked learns which line of which home's file to change. What
is put back belongs to no home, so no mirror takes it away again; the agent's prompt has it only if somebody adds it to
the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hermes_memory_pgvector.care.timeline import Effect
from hermes_memory_pgvector.store.memory_state import Entry, State
from hermes_memory_pgvector.store.mirror_files import digest_of
from hermes_memory_pgvector.values import (
    AddMemory,
    MemoryOperation,
    Moment,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
)

Files = Mapping[str, frozenset[bytes]]
"""The digests of the entries of each home's file."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """An entry that stands in files, which win."""

    content: str
    homes: tuple[str, ...]
    instead: str | None = None
    """What should stand there instead; None when the entry should go."""


@dataclass(frozen=True, slots=True)
class Reversal:
    """What goes and what comes back."""

    remove: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    mirrored: frozenset[str] = frozenset()
    """The homes whose files are compared: what one of them holds and its file does not, its mirror takes away."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be done."""
        return not self.remove and not self.restore


def revert(effect: Effect, now: State, files: Files) -> Reversal:
    """What undoes one operation, as far as what it changed is still so; all of it or, where a file wins, nothing."""
    remove = tuple(content for content in effect.came if content in now)
    restore = tuple(content for content in effect.gone if content not in now)
    return _whole(remove, restore, now, files)


def exchange(old: str, new: str, now: State, files: Files) -> Reversal:
    """What gives an entry other words."""
    return _whole((old,), () if new in now else (new,), now, files)


def toward(wanted: Collection[str], now: State, files: Files) -> Reversal:
    """What makes the memories those that are wanted; entries that stand in files stay."""
    surplus = [content for content in now if content not in wanted]
    blocked = _blocked(surplus, now, files)
    held = {each.content for each in blocked}
    return Reversal(
        tuple(content for content in surplus if content not in held),
        tuple(content for content in wanted if content not in now),
        tuple(blocked),
        frozenset(files),
    )


def operations(
    reversal: Reversal,
    now: State,
    former: State,
    *,
    theme: str,
    target: Target,
    when: Moment,
    metadata: Mapping[str, Any],
) -> list[MemoryOperation]:
    """The operations that do it; an entry that only gets other words keeps its row.

    What comes back is trusted no further than it was, and still comes from the session that wrote it: `former` knows
    every entry as it was last.
    """
    common: dict[str, Any] = {"when": when, "written_by": RowOrigin.OPERATOR}
    if len(reversal.remove) == len(reversal.restore) == 1:
        (old,), (new,) = reversal.remove, reversal.restore
        homes = list(now[old].homes)
        if len(homes) <= 1 and reversal.mirrored.isdisjoint(homes):
            home = homes[0] if homes else ""
            marks = _marks(former.get(new), metadata)
            return [ReplaceMemory(theme, target, new, "", home_id=home, previous=old, **marks, **common)]
    made: list[MemoryOperation] = [
        RemoveMemory(theme, target, "", home_id=home, previous=content, metadata=metadata, **common)
        for content in reversal.remove
        for home in list(now[content].homes) or [""]
    ]
    return made + [
        AddMemory(theme, target, content, home_id="", **_marks(former.get(content), metadata), **common)
        for content in reversal.restore
    ]


def _marks(entry: Entry | None, metadata: Mapping[str, Any]) -> dict[str, Any]:
    if entry is None:
        return {"metadata": metadata}
    kept = {name: entry.metadata[name] for name in ("session_id", "tools") if name in entry.metadata}
    return {"metadata": {**kept, **metadata}, "trust": entry.trust}


def homes_of(contents: Iterable[str], now: State) -> tuple[str, ...]:
    """The homes that hold any of these entries."""
    return tuple(sorted({home for content in contents if content in now for home in now[content].homes}))


def _whole(remove: tuple[str, ...], restore: tuple[str, ...], now: State, files: Files) -> Reversal:
    blocked = _blocked(remove, now, files, instead=restore[0] if len(restore) == 1 else None)
    return Reversal(blocked=tuple(blocked)) if blocked else Reversal(remove, restore, mirrored=frozenset(files))


def _blocked(contents: Iterable[str], now: State, files: Files, instead: str | None = None) -> list[Blocked]:
    found = []
    for content in contents:
        homes = _standing(now[content], files)
        if homes:
            found.append(Blocked(content, homes, instead))
    return found


def _standing(entry: Entry, files: Files) -> tuple[str, ...]:
    digest = digest_of(entry.content)
    return tuple(sorted(home for home in entry.homes if digest in files.get(home, ())))
