"""What the host keeps in its `state.db`, read only and in short statements: a reader that stays in one would keep the
host from tidying up its log. Each column is taken that this host's version has."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hermes_memory_pgvector.capture import host_store
from hermes_memory_pgvector.errors import ConfigError

WAIT_SECONDS = 15.0
PAGE_ROWS = 500
_SESSION_COLUMNS = (
    "id", "source", "parent_session_id", "session_key", "chat_id", "chat_type", "thread_id", "user_id", "started_at",
    "ended_at", "end_reason", "model_config",
)  # fmt: skip
_MESSAGE_COLUMNS = ("id", "role", "content", "tool_calls", "timestamp", "active", "compacted", "observed")
_OWN_PROMPT = "Your memory theme is '"


@dataclass(frozen=True, slots=True)
class PastSession:
    """A row of the host's `sessions`; what its version does not have is empty."""

    id: str
    source: str = ""
    parent_id: str = ""
    key: str = ""
    """The gateway's session key; the API server keeps none."""
    chat_id: str = ""
    chat_type: str = ""
    thread_id: str = ""
    user_id: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    end_reason: str = ""
    branched_from: str = ""
    delegated_from: str = ""
    named_theme: str = ""
    """The theme that our own words in its system prompt name."""


class PastMessage(NamedTuple):
    """A row of the host's `messages`."""

    id: int
    role: str
    content: Any
    """As the host had it: text, or a list of parts."""
    tool_calls: str
    at: float
    is_rewound: bool
    """The user has taken it back."""
    is_observed: bool
    """Somebody said it in a room, but not to the agent."""


class HostPast:
    """A host's store, opened for reading."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._sessions = self._columns("sessions")
        self._messages = self._columns("messages")

    def size(self) -> tuple[int, int]:
        """How many messages of user and assistant it holds, and in how many sessions."""
        row = self._store.execute(
            "SELECT count(*), count(DISTINCT session_id) FROM messages WHERE role IN ('user', 'assistant')"
        ).fetchone()
        return int(row[0]), int(row[1])

    def sessions(self) -> list[PastSession]:
        """All sessions that have messages, oldest first."""
        if not self._sessions:
            # A host of before the table: its messages are all there is.
            rows = self._store.execute("SELECT DISTINCT session_id FROM messages").fetchall()
            return [PastSession(_text(name)) for (name,) in rows]
        wanted = ", ".join(name if name in self._sessions else "NULL" for name in _SESSION_COLUMNS)
        prompt = "NULL"
        if "system_prompt" in self._sessions:
            start = f"instr(system_prompt, '{_OWN_PROMPT.replace(chr(39), 2 * chr(39))}')"
            prompt = f"CASE WHEN {start} > 0 THEN substr(system_prompt, {start}, 100) END"
        rows = self._store.execute(
            f"SELECT {wanted}, {prompt} FROM sessions"  # noqa: S608 - column names of our own
            " WHERE id IN (SELECT session_id FROM messages) ORDER BY started_at, id"
        ).fetchall()
        return [_session(row) for row in rows]

    def messages(self, session_id: str) -> Iterator[PastMessage]:
        """The messages of a session in the order they were written."""
        wanted = ", ".join(name if name in self._messages else "NULL" for name in _MESSAGE_COLUMNS)
        last = -1
        while page := self._store.execute(
            f"SELECT {wanted} FROM messages WHERE session_id = ? AND id > ? ORDER BY id LIMIT {PAGE_ROWS}",  # noqa: S608
            (session_id, last),
        ).fetchall():
            last = page[-1][0]
            yield from map(_message, page)

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._store.execute(f"PRAGMA table_info({table})").fetchall()}


@contextmanager
def reading(path: Path, wait_seconds: float = 0.0) -> Iterator[sqlite3.Connection]:
    """A SQLite file that somebody else may be writing to, for the length of the block; ConfigError for what fails."""
    try:
        with closing(host_store.opened(path, wait_seconds or WAIT_SECONDS)) as store:
            yield store
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}") from None
    except (sqlite3.Error, OSError) as error:
        if host_store.is_locked(error):
            raise ConfigError(f"{path} is locked by another program") from None
        reason = getattr(error, "sqlite_errorname", type(error).__name__)
        raise ConfigError(f"{path} cannot be read ({reason})") from None


def tables(path: Path) -> set[str]:
    """The tables of a SQLite file."""
    with reading(path) as store:
        return {str(name) for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _session(row: Sequence[Any]) -> PastSession:
    *_, started_at, ended_at, reason, config, prompt = row
    id_, source, parent, key, chat_id, chat_type, thread_id, user_id = map(_text, row[:8])
    marks = _json_object(config)
    named, is_whole, _ = _text(prompt)[len(_OWN_PROMPT) :].partition("'")
    return PastSession(
        id_, source, parent, key, chat_id, chat_type, thread_id, user_id, _time(started_at),
        None if ended_at is None else _time(ended_at), _text(reason), _text(marks.get("_branched_from")),
        _text(marks.get("_delegate_from")), named if is_whole else "",
    )  # fmt: skip


def _message(row: Sequence[Any]) -> PastMessage:
    id_, role, content, tool_calls, at, active, compacted, observed = row
    # Summarised in place, a message is not active either: it was said all the same.
    is_rewound = active is not None and not active and not compacted
    return PastMessage(
        id_, _text(role), host_store.decoded(content), _text(tool_calls), _time(at), is_rewound, bool(observed)
    )  # fmt: skip


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _time(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value - value == 0 else 0.0


def _json_object(value: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}
