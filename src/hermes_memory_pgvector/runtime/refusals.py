"""Writes that the journal did not take: they wait in memory while the process lives, are counted, and told at its end.

There is no second queue on disk: what the host keeps itself, turns in its state.db and entries in MEMORY.md, is read
from there when an operator asks for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.values import AddTurn, MemoryOperation, WriteItem

logger = logging.getLogger(__name__)

FILE_NAME = "refused.json"
MAX_CHARS = 8 * 1024 * 1024
MAX_ITEMS = 20_000
ITEM_CHARS = 200
"""What an item takes besides its words."""
TELL_SECONDS = 600.0

Append = Callable[[Sequence[WriteItem], Urgency], None]


@dataclass(frozen=True, slots=True)
class RefusalStatus:
    """How many writes were refused, and what became of them."""

    turns: int = 0
    memories: int = 0
    waiting: int = 0
    recovered: int = 0
    lost: int = 0
    """Dropped because there was no room in memory either."""


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


class Refusals:
    """The writes that wait, in the order they were made; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._lock = threading.Lock()
        self._waiting: dict[Urgency, deque[WriteItem]] = {urgency: deque() for urgency in Urgency}
        self._chars = 0
        self._told_at = float("-inf")
        self._recovered_since_log = 0
        self._left: list[tuple[str, float]] = []
        """What was dropped, kept as kind and time until the process ends."""
        self.turns = self.memories = self.recovered = self.lost = 0

    @property
    def waits(self) -> bool:
        """Whether anything waits."""
        return any(self._waiting.values())

    def holds_back(self, urgency: Urgency) -> bool:
        """Whether what comes now would overtake what waits."""
        return bool(self._waiting[urgency])

    def add(self, items: Sequence[WriteItem], urgency: Urgency, *, is_refusal: bool = True) -> bool:
        """Keep items, as far as there is room; whether this is the first refusal for a while."""
        with self._lock:
            for item in items:
                is_memory = isinstance(item, MemoryOperation)
                self.memories += is_memory
                self.turns += not is_memory
                size = _size(item)
                if self._chars + size > MAX_CHARS or sum(map(len, self._waiting.values())) >= MAX_ITEMS:
                    self.lost += 1
                    self._left.append((_kind(item), item.when.wall_us / 1e6))
                else:
                    self._waiting[urgency].append(item)
                    self._chars += size
            now = time.monotonic()
            is_news = is_refusal and now - self._told_at >= TELL_SECONDS
            if is_refusal:
                self._told_at = now
            return is_news

    def leave_out(self, turns: int, at: float) -> None:
        """Turns that cannot be written down because it is not known whose they are."""
        with self._lock:
            self.turns += turns
            self.lost += turns
            self._left += [("turn", at)] * turns

    def recover(self, append: Append) -> int:
        """Append what waits until the journal says no again; return how many memory operations were among it."""
        memories = 0
        for urgency in Urgency:
            while (item := self._recover_one(urgency, append)) is not None:
                memories += isinstance(item, MemoryOperation)
        if self._recovered_since_log and not self.waits:
            logger.warning("the journal has room again; %d refused writes were recovered", self._recovered_since_log)
            self._recovered_since_log = 0
        return memories

    def _recover_one(self, urgency: Urgency, append: Append) -> WriteItem | None:
        """Append what has waited longest; None when there is nothing, or still no room."""
        waiting = self._waiting[urgency]
        with self._lock:
            if not waiting:
                return None
            try:
                append([waiting[0]], urgency)
            except (JournalError, OSError):
                return None
            item = waiting.popleft()
            self._chars -= _size(item)
            self.recovered += 1
            self._recovered_since_log += 1
            return item

    def status(self) -> RefusalStatus:
        """A snapshot for status and doctor."""
        waiting = sum(map(len, self._waiting.values()))
        return RefusalStatus(self.turns, self.memories, waiting, self.recovered, self.lost)

    def leave(self) -> None:
        """The process ends: say how many writes from when to when are not written down, and how to get them back."""
        with self._lock:
            found = [(_kind(item), item.when.wall_us / 1e6) for queue in self._waiting.values() for item in queue]
            found += self._left
            for queue in self._waiting.values():
                queue.clear()
            self._left, self._chars = [], 0
        if not found:
            return
        times = [at for _, at in found]
        kinds = [kind for kind, _ in found]
        turns, memories, others = map(kinds.count, ("turn", "memory", "other"))
        ours = LeftBehind(turns, memories, others, min(times), max(times))
        logger.error("%s", sentence(ours))
        before = left(self._path.parent)
        if before is not None:
            ours = LeftBehind(
                ours.turns + before.turns, ours.memories + before.memories, ours.others + before.others,
                min(ours.since, before.since), max(ours.until, before.until),
            )  # fmt: skip
        with contextlib.suppress(OSError):
            files.replace(self._path, json.dumps(dataclasses.asdict(ours)).encode(), is_durable=False)


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


def _kind(item: WriteItem) -> str:
    if isinstance(item, MemoryOperation):
        return "memory"
    return "turn" if isinstance(item, AddTurn) and item.role in ("user", "assistant") else "other"


def _size(item: WriteItem) -> int:
    return ITEM_CHARS + len(getattr(item, "content", "")) + len(getattr(item, "old_text", ""))
