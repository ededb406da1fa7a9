"""What a full journal had to refuse, and its recovery: turns from the host's own session store, memories from here.

Should the process end first, the mirror still finds the memories in MEMORY.md and USER.md, though not who wrote them.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.capture import Said, is_noise, transcript, with_ordinals
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.model import AddTurn, MemoryOperation, Moment, WriteItem

logger = logging.getLogger(__name__)

MAX_SESSIONS = 10_000
MAX_OPERATIONS = 2_000
READ_SECONDS = 1.0
SLACK_SECONDS = 3600.0
"""A turn begins well before it is reported: its question may have been stored by the host an hour earlier."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A session of which turns were refused, and when the first was."""

    theme: str
    session_id: str
    since: float


class Refusals:
    """Remembers what was refused until it has been recovered."""

    def __init__(self, home: Path, *, max_chars: int, min_chars: int) -> None:
        self._path = home / "state.db"
        self._max_chars = max_chars
        self._min_chars = min_chars
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, str], Refused] = {}
        self.turns = 0
        self.memories = 0
        self.overflowed = 0
        self._operations: deque[WriteItem] = deque(maxlen=MAX_OPERATIONS)
        """Refused operations on memories and undone turns, oldest first."""

    def note(self, items: Sequence[WriteItem]) -> bool:
        """These were refused; True when they are the first since the last recovery."""
        with self._lock:
            first = not self.waits
            for item in items:
                if isinstance(item, AddTurn):
                    self._note_turn(item)
                else:
                    self._operations.append(item)
                    self.memories += isinstance(item, MemoryOperation)
            return first

    def _note_turn(self, turn: AddTurn) -> None:
        self.turns += 1
        key = (turn.theme, turn.session_id)
        if key in self._sessions or len(self._sessions) < MAX_SESSIONS:
            self._sessions.setdefault(key, Refused(turn.theme, turn.session_id, turn.when.wall_us / 1e6))
        else:
            self.overflowed += 1

    @property
    def waits(self) -> bool:
        """Whether anything is to be recovered."""
        return bool(self._sessions or self._operations)

    def recover(self, append: Callable[[list[WriteItem], Urgency], None]) -> int:
        """Append what was refused, turns as found in the host's store; return how many items there were.

        An error of `append` ends the recovery: what it has not taken waits for the next one.
        """
        found = 0
        with self._lock:
            sessions, operations = list(self._sessions.values()), list(self._operations)
        for operation in operations:
            append([operation], Urgency.MEMORY)
            found += 1
            with self._lock:
                self._operations.remove(operation)
        for refused in sessions:
            items = self._turns_of(refused)
            if items:
                append(items, Urgency.TURN)
            found += len(items)
            with self._lock:
                self._sessions.pop((refused.theme, refused.session_id), None)
        if sessions or operations:
            logger.warning("the journal has room again; %d refused writes were recovered", found)
        return found

    def _turns_of(self, refused: Refused) -> list[WriteItem]:
        rows = self._rows(refused.session_id)
        said_at: dict[tuple[Said, int], float] = {}
        turns: list[Said] = []
        for role, content, tool_calls, at in rows:
            message = {"role": role, "content": content, "tool_calls": tool_calls}
            for said in transcript([message], self._max_chars):
                turns.append(said)
                said_at[said, turns.count(said)] = at
        return [
            AddTurn(
                refused.theme, refused.session_id, said.role, said.content, ordinal,
                Moment(int(said_at[said, ordinal] * 1e6), int(said_at[said, ordinal] * 1e6)), is_live=False,
            )
            for said, ordinal in with_ordinals(turns)
            if said_at[said, ordinal] >= refused.since - SLACK_SECONDS and not is_noise(said.content, self._min_chars)
        ]  # fmt: skip

    def _rows(self, session_id: str) -> list[tuple[str, str, str | None, float]]:
        try:
            with sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=READ_SECONDS) as store:
                return store.execute(
                    "SELECT role, content, tool_calls, timestamp FROM messages"
                    " WHERE session_id = ? AND active = 1 AND content IS NOT NULL ORDER BY id",
                    (session_id,),
                ).fetchall()
        except sqlite3.Error as error:
            logger.warning("the host's session store cannot be read (%s)", type(error).__name__)
            return []
