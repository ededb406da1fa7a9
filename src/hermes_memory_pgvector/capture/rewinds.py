"""What the user has taken back, as the host's own store tells: rows that are no longer active and were not summarised.

Hosts before 0.16 keep no such marks, and a store may be missing or locked: then there is nothing to tell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Literal, cast

from hermes_memory_pgvector.capture import host_store
from hermes_memory_pgvector.capture.transcript import turn_of
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.store.undone import Rewound, Saying, SessionTold, State

ASKED_AT_ONCE = 500
"""Older SQLite takes no more than 999 values."""
UNREADABLE = (sqlite3.Error, OSError, MemoryPluginError)
_REWOUND = (
    "SELECT id, rewind_count, (SELECT count(*) FROM messages WHERE session_id = sessions.id AND active = 0"
    " AND {compacted} = 0) FROM sessions WHERE rewind_count > 0 AND id IN ({ids})"
)
_SAID = (
    "SELECT role, content, timestamp, active, {compacted} FROM messages"
    " WHERE session_id = ? AND role IN ('user', 'assistant') AND content IS NOT NULL ORDER BY id"
)
_PARENT = (
    "SELECT parent.id FROM sessions JOIN sessions AS parent ON parent.id = sessions.parent_session_id"
    " WHERE sessions.id = ? AND parent.end_reason = 'compression'"
)


class Rewinds:
    """Reads a home's store in short statements."""

    def __init__(self, home: Path, max_chars: int) -> None:
        self._path = home / host_store.FILE_NAME
        self._max_chars = max_chars

    def rewound(self, session_ids: Collection[str]) -> dict[str, Rewound]:
        """Those of these sessions that were ever rewound, and how far."""
        asked = list(session_ids)
        found: dict[str, Rewound] = {}
        try:
            with closing(host_store.opened(self._path)) as store:
                mark = _compacted(store)
                for start in range(0, len(asked), ASKED_AT_ONCE):
                    part = asked[start : start + ASKED_AT_ONCE]
                    statement = _REWOUND.format(compacted=mark, ids=", ".join("?" * len(part)))
                    rows = store.execute(statement, part)
                    found |= {str(id_): Rewound(int(times), int(undone)) for id_, times, undone in rows}
        except UNREADABLE:
            return {}
        return found

    def told(self, session_id: str) -> SessionTold | None:
        """What a session and those it goes on from have said, oldest first; None where nobody can tell."""
        try:
            with closing(host_store.opened(self._path)) as store:
                if not self._is_known(store, session_id):
                    return None
                lineage = list(_lineage(store, session_id))
                states: list[State] = ["active" if each == session_id else "replaced" for each in lineage]
                said = (self._said(store, *each) for each in reversed(list(zip(lineage, states, strict=True))))
                return SessionTold(tuple(lineage), tuple(chain.from_iterable(said)))
        except UNREADABLE:
            return None

    def _is_known(self, store: sqlite3.Connection, session_id: str) -> bool:
        return store.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None

    def _said(self, store: sqlite3.Connection, session_id: str, state: State) -> Iterator[Saying]:
        """A session's messages; what goes on in another session is replaced by what stands there."""
        rows = store.execute(_SAID.format(compacted=_compacted(store)), (session_id,))
        for role, content, at, is_active, is_compacted in rows:
            digests = self._digests(role, host_store.decoded(content))
            if digests and isinstance(at, int | float):
                now: State = state if is_active else "replaced" if is_compacted else "undone"
                yield Saying(digests, int(at * 1e6), now)

    def _digests(self, role: str, content: object) -> frozenset[str]:
        spoken = cast(Literal["user", "assistant"], role)
        forms = host_store.wordings(spoken, content)
        turns = (turn_of(spoken, form, self._max_chars) for form in forms)
        return frozenset(turn.digest for turn in turns if turn is not None)


def _compacted(store: sqlite3.Connection) -> str:
    """Whether a message was summarised; hosts before 0.18 leave such messages as they are."""
    columns = store.execute("PRAGMA table_info(messages)").fetchall()
    return "coalesce(compacted, 0)" if any(column[1] == "compacted" for column in columns) else "0"


def _lineage(store: sqlite3.Connection, session_id: str) -> Iterator[str]:
    """The session and those it goes on from since they were compressed, the nearest first."""
    seen: set[str] = set()
    current = session_id
    while current not in seen and len(seen) < host_store.MAX_ANCESTORS:
        yield current
        seen.add(current)
        row = store.execute(_PARENT, (current,)).fetchone()
        current = str(row[0]) if row else current
