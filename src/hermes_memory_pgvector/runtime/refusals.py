"""What ended processes of a home could not write down: how much, from when to when, and how to get it back.

There is no second queue on disk: what the host keeps itself, turns in its state.db and entries in MEMORY.md, is read
from there when an operator asks for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector import files

FILE_NAME = "refused.json"


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What ended processes of a home could not write down."""

    turns: int = 0
    """Of user and assistant: the host has them in its state.db."""
    memories: int = 0
    """The host has their entries in MEMORY.md and USER.md, which are compared anyway."""
    others: int = 0
    """Nobody else has them."""
    since: float = 0.0
    until: float = 0.0

    @property
    def count(self) -> int:
        """All of them."""
        return self.turns + self.memories + self.others


def leave(folder: Path, found: LeftBehind) -> None:
    """A process ends: note what it leaves behind, beside what others have left."""
    before = left(folder)
    if before is not None:
        found = LeftBehind(
            found.turns + before.turns, found.memories + before.memories, found.others + before.others,
            min(found.since, before.since), max(found.until, before.until),
        )  # fmt: skip
    with contextlib.suppress(OSError):
        files.replace(folder / FILE_NAME, json.dumps(dataclasses.asdict(found)).encode(), is_durable=False)


def left(folder: Path) -> LeftBehind | None:
    """What ended processes of a home could not write down; None when there is nothing."""
    try:
        return LeftBehind(**json.loads(files.look(folder / FILE_NAME).data))
    except (ValueError, TypeError):
        return None


def settle(folder: Path, since: float) -> None:
    """The host's own copies from then on have been read: nothing is left behind any more."""
    found = left(folder)
    if found is not None and since <= found.since:
        (folder / FILE_NAME).unlink(missing_ok=True)


def command(found: LeftBehind) -> str:
    """What brings the turns back."""
    return f"import state --since {_time(found.since)} --execute" if found.turns else ""


def sentence(found: LeftBehind) -> str:
    """What was not written down, and what has a second copy."""
    told = [f"{found.count} refused writes between {_time(found.since)} and {_time(found.until)} were not stored"]
    if found.turns:
        told.append(f"{found.turns} turns are in the host's state.db: hermes-pgvector {command(found)}")
    if found.memories:
        told.append(f"{found.memories} changes of memories are found by comparing MEMORY.md and USER.md")
    if found.others:
        told.append(f"{found.others} finished delegations are lost")
    return "; ".join(told)


def _time(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
