"""A state.db as hermes writes it, for tests that need more of a past than a host can be driven through."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SESSIONS = (
    "id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,"
    " thread_id TEXT, model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL,"
    " ended_at REAL, end_reason TEXT, title TEXT, rewind_count INTEGER NOT NULL DEFAULT 0"
)
MESSAGES = (
    "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,"
    " tool_call_id TEXT, tool_calls TEXT, timestamp REAL NOT NULL, observed INTEGER DEFAULT 0,"
    " active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0"
)
OLD_SESSIONS = (
    "id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, parent_session_id TEXT, started_at REAL NOT NULL"
)
OLD_MESSAGES = (
    "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,"
    " tool_calls TEXT, timestamp REAL NOT NULL"
)


@dataclass(slots=True)
class HostState:
    """A store under construction; times run on by a second per message."""

    connection: sqlite3.Connection
    clock: float = 1_790_000_000.0
    started: dict[str, float] = field(default_factory=dict)
    is_now: bool = False

    def session(self, id_: str, source: str = "cli", *, marks: Mapping[str, Any] | None = None, **columns: Any) -> None:
        """Add a session; `marks` is its model_config."""
        values = {"id": id_, "source": source, "started_at": self.clock, **columns}
        if marks is not None:
            values["model_config"] = json.dumps(marks)
        self._insert("sessions", values)

    def say(self, session_id: str, role: str, content: Any, **columns: Any) -> None:
        """Add a message."""
        self.clock = time.time() if self.is_now else self.clock + 1.0
        if isinstance(content, list):
            content = "\x00json:" + json.dumps(content)
        values = {"session_id": session_id, "role": role, "content": content, "timestamp": self.clock, **columns}
        self._insert("messages", values)

    def exchange(self, session_id: str, question: str, answer: str, **columns: Any) -> None:
        """Add a question and its answer."""
        self.say(session_id, "user", question, **columns)
        self.say(session_id, "assistant", answer, **columns)

    def rewind(self, session_id: str, exchanges: int = 1) -> None:
        """Take back the last exchanges of a session, as the host does."""
        asked = self.connection.execute(
            "SELECT id FROM messages WHERE session_id = ? AND role = 'user' AND active = 1 ORDER BY id DESC LIMIT ?",
            [session_id, exchanges],
        ).fetchall()
        for (first,) in asked[-1:]:
            self.run(
                "UPDATE messages SET active = 0 WHERE session_id = ? AND active = 1 AND id >= ?", session_id, first
            )
        self.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", session_id)

    def compact(self, session_id: str, *kept: tuple[str, str]) -> None:
        """Summarise what a session holds, in place: some of it is written once more behind the summary."""
        self.run("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", session_id)
        for role, content in (("user", "[CONTEXT COMPACTION — REFERENCE ONLY] What was said before."), *kept):
            self.say(session_id, role, content)

    def run(self, statement: str, *values: Any) -> None:
        """Change what is there, as the host does."""
        self.connection.execute(statement, values)

    def _insert(self, table: str, values: Mapping[str, Any]) -> None:
        names, places = ", ".join(values), ", ".join("?" * len(values))
        self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(values.values()))


@contextmanager
def host_state(home: Path, *, is_old: bool = False, is_now: bool = False) -> Iterator[HostState]:
    """A state.db in this home, in WAL mode; what the block adds is committed at its end; `is_now`: it is said now."""
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "state.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"CREATE TABLE IF NOT EXISTS sessions ({OLD_SESSIONS if is_old else SESSIONS})")
        connection.execute(f"CREATE TABLE IF NOT EXISTS messages ({OLD_MESSAGES if is_old else MESSAGES})")
        connection.execute("CREATE INDEX IF NOT EXISTS idx_messages_session ON messages (session_id, timestamp)")
        connection.commit()
        row = connection.execute("SELECT max(timestamp) FROM messages").fetchone()
        yield HostState(connection, row[0] or 1_790_000_000.0, is_now=is_now)
        connection.commit()


def fill(home: Path, sessions: int, exchanges: int) -> int:
    """A past of so many sessions with so many exchanges each; returns how many messages it has."""
    with host_state(home) as state:
        for number in range(sessions):
            name = f"20260101_{number:06d}"
            state.session(name)
            for place in range(exchanges):
                state.exchange(
                    name,
                    f"What does ledger {number} say about shipment {place} of the harbour company in spring?",
                    f"Ledger {number} says that shipment {place} left the harbour with {place * 7} crates of tea.",
                )
    return 2 * sessions * exchanges
