"""The hooks' way into the journal; what it refuses waits in memory while the process lives, and is told at its end."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.runtime import refusals
from hermes_memory_pgvector.runtime.refusals import LeftBehind
from hermes_memory_pgvector.values import AddTurn, MemoryOperation, WriteItem

logger = logging.getLogger(__name__)

MAX_CHARS = 8 * 1024 * 1024
MAX_ITEMS = 20_000
ITEM_CHARS = 200
"""What an item takes besides its words."""
TELL_SECONDS = 600.0


class Recorder:
    """Writes items in the order they come; shared by the parts of a home that follow each other; thread-safe."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.warn_user: Callable[[str], None] | None = None
        """How to reach the user when writes are refused."""
        self.turns = self.memories = 0
        """How many were refused."""
        self.recovered = self.lost = 0
        """How many of them were recovered, and dropped because there was no room in memory either."""
        self._journal = journal
        self._folder = folder
        self._lock = threading.Lock()
        self._refused: dict[Urgency, deque[WriteItem]] = {urgency: deque() for urgency in Urgency}
        self._chars = 0
        self._told_at = float("-inf")
        self._recovered_since_log = 0
        self._dropped: list[tuple[str, float]] = []

    @property
    def waiting(self) -> int:
        """How many refused writes wait to be recovered."""
        return sum(map(len, self._refused.values()))

    def record(self, items: Sequence[WriteItem], urgency: Urgency) -> bool:
        """Append items; never raises: a refusal is noted. True when items wait behind refused ones."""
        if self._refused[urgency]:
            self._keep(items, urgency)
            return True
        portions = codec.portions(items)
        for number, portion in enumerate(portions):
            try:
                self._journal.append(codec.encode(portion), urgency)
            except (JournalError, OSError) as error:
                # From the first portion that is refused on, they wait together.
                self.refuse([item for later in portions[number:] for item in later], urgency, error)
                break
        return False

    def append(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Append items, or raise JournalError: for a caller that can be told, so that nothing has to wait."""
        try:
            for portion in codec.portions(items):
                self._journal.append(codec.encode(portion), urgency)
        except OSError as error:
            raise JournalError(f"the journal cannot be written ({reason_of(error)})") from None

    def refuse(self, items: Sequence[WriteItem], urgency: Urgency, error: Exception) -> None:
        """Keep items that the journal did not take, and say so when it is the first refusal for a while."""
        self._keep(items, urgency)
        now = time.monotonic()
        is_news, self._told_at = now - self._told_at >= TELL_SECONDS, now
        if is_news:
            text = f"memory writes are being refused ({reason_of(error)}); they wait while this process lives"
            logger.error("%s", text)
            if self.warn_user is not None:
                self.warn_user(text)

    def leave_out(self, turns: int, at: float) -> None:
        """Turns that cannot be written down because it is not known whose they are."""
        with self._lock:
            self.turns += turns
            self.lost += turns
            self._dropped += [("turn", at)] * turns

    def recover(self) -> int:
        """Append what was refused until the journal says no again; how many memory operations were among it."""
        memories = 0
        for urgency in Urgency:
            while (item := self._recover_one(urgency)) is not None:
                memories += isinstance(item, MemoryOperation)
        if self._recovered_since_log and not self.waiting:
            logger.warning("the journal has room again; %d refused writes were recovered", self._recovered_since_log)
            self._recovered_since_log = 0
        return memories

    def leave(self) -> None:
        """The process ends: say how many writes from when to when are not written down, and how to get them back."""
        with self._lock:
            found = [(_kind(item), item.when.wall_us / 1e6) for queue in self._refused.values() for item in queue]
            found += self._dropped
            for queue in self._refused.values():
                queue.clear()
            self._dropped, self._chars = [], 0
        if found:
            kinds, times = [kind for kind, _ in found], [at for _, at in found]
            turns, memories, others = map(kinds.count, ("turn", "memory", "other"))
            ours = LeftBehind(turns, memories, others, min(times), max(times))
            logger.error("%s", refusals.sentence(ours))
            refusals.leave(self._folder, ours)

    def _keep(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        with self._lock:
            for item in items:
                is_memory = isinstance(item, MemoryOperation)
                self.memories += is_memory
                self.turns += not is_memory
                if self._chars + _size(item) > MAX_CHARS or self.waiting >= MAX_ITEMS:
                    self.lost += 1
                    self._dropped.append((_kind(item), item.when.wall_us / 1e6))
                else:
                    self._refused[urgency].append(item)
                    self._chars += _size(item)

    def _recover_one(self, urgency: Urgency) -> WriteItem | None:
        """Append what has waited longest; None when there is nothing, or still no room."""
        waiting = self._refused[urgency]
        with self._lock:
            if not waiting:
                return None
            try:
                self._journal.append(codec.encode([waiting[0]]), urgency)
            except (JournalError, OSError):
                return None
            item = waiting.popleft()
            self._chars -= _size(item)
            self.recovered += 1
            self._recovered_since_log += 1
            return item


def reason_of(error: Exception) -> str:
    """Why the journal refuses, without paths or content."""
    return str(error) if isinstance(error, JournalError) else type(error).__name__


def _kind(item: WriteItem) -> str:
    if isinstance(item, MemoryOperation):
        return "memory"
    return "turn" if isinstance(item, AddTurn) and item.role in ("user", "assistant") else "other"


def _size(item: WriteItem) -> int:
    return ITEM_CHARS + len(getattr(item, "content", "")) + len(getattr(item, "old_text", ""))
