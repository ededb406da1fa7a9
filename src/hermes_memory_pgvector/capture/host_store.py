"""The host's own session store, `state.db`, read only.

Whoever reads a whole past gets each column that this host's version has, in short statements: a reader that stays in
one would keep the host from tidying up its log.
"""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.text.clean import text_of

FILE_NAME = "state.db"
READ_SECONDS = 1.0
PAGE_ROWS = 500
MAX_ANCESTORS = 100
_JSON_MARK = "\x00json:"
_PICTURE = "[screenshot]"
"""What some hosts store in place of a picture."""
_PICTURE_TYPES = ("image_url", "input_image")

CleanUser = Callable[[str], str | None]
_SESSION_COLUMNS = (
    "id", "source", "parent_session_id", "session_key", "chat_id", "chat_type", "thread_id", "user_id", "started_at",
    "ended_at", "end_reason", "model_config",
)  # fmt: skip
_MESSAGE_COLUMNS = (
    "id", "role", "content", "tool_calls", "tool_call_id", "timestamp", "active", "compacted", "observed",
)  # fmt: skip
_OWN_PROMPT = "Your memory theme is '"


class HostStoreUnreadable(MemoryPluginError):
    """The store is missing, locked, damaged or of an unknown format."""


@dataclass(frozen=True, slots=True)
class HostSession:
    """A row of the host's `sessions`; what its version does not have is empty."""

    id: str
    source: str
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


class HostMessage(NamedTuple):
    """A row of the host's `messages`."""

    id: int
    role: str
    content: Any
    """As the host had it: text, or a list of parts."""
    tool_calls: str
    tool_call_id: str
    at: float
    is_rewound: bool
    """The user has taken it back."""
    is_hidden: bool
    """It is rewound, or summarised in place: the agent no longer sees it."""
    is_observed: bool
    """Somebody said it in a room, but not to the agent."""


class HostStore:
    """A host's store, opened for reading; every method is one or more short statements."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._sessions = self._columns("sessions")
        self._messages = self._columns("messages")

    def size(self) -> tuple[int, int]:
        """How many messages of user and assistant it holds, and in how many sessions."""
        row = self._rows(
            "SELECT count(*), count(DISTINCT session_id) FROM messages WHERE role IN ('user', 'assistant')"
        )[0]
        return int(row[0]), int(row[1])

    def sessions(self) -> list[HostSession]:
        """All sessions that have messages, oldest first."""
        if not self._sessions:
            # A host of before the table: its messages are all there is.
            return [HostSession(_text(each), "") for (each,) in self._rows("SELECT DISTINCT session_id FROM messages")]
        wanted = ", ".join(name if name in self._sessions else "NULL" for name in _SESSION_COLUMNS)
        prompt = "NULL"
        if "system_prompt" in self._sessions:
            start = f"instr(system_prompt, '{_OWN_PROMPT.replace(chr(39), 2 * chr(39))}')"
            prompt = f"CASE WHEN {start} > 0 THEN substr(system_prompt, {start}, 100) END"
        rows = self._rows(
            f"SELECT {wanted}, {prompt} FROM sessions"  # noqa: S608 - column names of our own
            " WHERE id IN (SELECT session_id FROM messages) ORDER BY started_at, id"
        )
        return [_session(row) for row in rows]

    def messages(self, session_id: str) -> Iterator[HostMessage]:
        """The messages of a session in the order they were written."""
        ids = [row[0] for row in self._rows("SELECT id FROM messages WHERE session_id = ? ORDER BY id", session_id)]
        for start in range(0, len(ids), PAGE_ROWS):
            yield from self.messages_by_id(ids[start : start + PAGE_ROWS])

    def messages_by_id(self, ids: Sequence[int]) -> list[HostMessage]:
        """These messages, in the order of their ids."""
        wanted = ", ".join(name if name in self._messages else "NULL" for name in _MESSAGE_COLUMNS)
        places = ", ".join("?" * len(ids))
        rows = self._rows(
            f"SELECT {wanted} FROM messages WHERE id IN ({places}) ORDER BY id",  # noqa: S608 - column names of our own
            *ids,
        )
        return [_message(row) for row in rows]

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._rows(f"PRAGMA table_info({table})")}

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._store.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise _unreadable(error) from None


@contextmanager
def reading(path: Path, *, wait_seconds: float) -> Iterator[HostStore]:
    """A host's store for the length of the block; waits that long for a lock."""
    try:
        store = opened(path, wait_seconds)
    except (sqlite3.Error, OSError) as error:
        raise _unreadable(error) from None
    with closing(store):
        yield HostStore(store)


def wordings(role: Literal["user", "assistant"], content: Any, clean_user: CleanUser) -> tuple[str, ...]:
    """The forms in which the host may have reported this content, the usual one first; empty when there is none."""
    forms = [form for form in _wordings(role, content, None) if form]
    if role == "user":
        forms = [*((clean_user(form) or "") for form in reversed(forms)), *forms]
        if not forms or not forms[0]:
            return ()
    else:
        forms.reverse()
    return tuple(dict.fromkeys(form for form in forms if form))


def _unreadable(error: Exception) -> HostStoreUnreadable:
    if isinstance(error, FileNotFoundError):
        return HostStoreUnreadable(f"there is no {FILE_NAME}")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return HostStoreUnreadable(f"the host's {FILE_NAME} is locked by another program")
    reason = getattr(error, "sqlite_errorname", type(error).__name__)
    return HostStoreUnreadable(f"the host's {FILE_NAME} cannot be read ({reason})")


def _session(row: Sequence[Any]) -> HostSession:
    id_, source, parent, key, chat_id, chat_type, thread_id, user_id, started_at, ended_at, reason, config, prompt = row
    marks = _json_object(config)
    named, is_whole, _ = _text(prompt)[len(_OWN_PROMPT) :].partition("'")
    return HostSession(
        _text(id_),
        _text(source),
        parent_id=_text(parent),
        key=_text(key),
        chat_id=_text(chat_id),
        chat_type=_text(chat_type),
        thread_id=_text(thread_id),
        user_id=_text(user_id),
        started_at=_time(started_at),
        ended_at=None if ended_at is None else _time(ended_at),
        end_reason=_text(reason),
        branched_from=_text(marks.get("_branched_from")),
        delegated_from=_text(marks.get("_delegate_from")),
        named_theme=named if is_whole else "",
    )


def _message(row: Sequence[Any]) -> HostMessage:
    id_, role, content, tool_calls, tool_call_id, at, active, compacted, observed = row
    is_hidden = active is not None and not active
    return HostMessage(
        id_, _text(role), decoded(content), _text(tool_calls), _text(tool_call_id), _time(at),
        is_hidden and not compacted, is_hidden, bool(observed),
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


def opened(path: Path, wait_seconds: float = READ_SECONDS) -> sqlite3.Connection:
    """A store for reading; an OSError or sqlite3.Error where there is none that can be read."""
    if not stat.S_ISREG(path.stat().st_mode):
        # Opening a named pipe would wait for somebody to write to it.
        raise HostStoreUnreadable(f"the host's {FILE_NAME} is not a file")
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _checked(address, wait_seconds)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or _has_log(path):
            raise
        # Reading a store in WAL mode creates files beside it, which a full or read-only disk does not allow. With an
        # empty log they are not needed.
        return _checked(f"{address}&immutable=1", wait_seconds)


def _checked(address: str, wait_seconds: float) -> sqlite3.Connection:
    store = sqlite3.connect(address, uri=True, timeout=wait_seconds)
    try:
        store.text_factory = lambda raw: raw.decode("utf-8", "replace")
        store.execute("SELECT session_id, role, content FROM messages LIMIT 1").fetchall()
    except BaseException:
        store.close()
        raise
    return store


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def decoded(content: Any) -> Any:
    """A message's content as the host had it: a list of parts is stored as marked JSON."""
    if not isinstance(content, str) or not content.startswith(_JSON_MARK):
        return content
    try:
        return json.loads(content[len(_JSON_MARK) :])
    except (ValueError, RecursionError):
        return ""


def _wordings(role: Literal["user", "assistant"], content: Any, clean_user: CleanUser | None) -> Iterator[str]:
    """The forms in which the host may report this content to a memory provider."""
    text = text_of(content)
    forms = [text]
    if isinstance(content, list):
        pictures = sum(isinstance(part, dict) and part.get("type") in _PICTURE_TYPES for part in content)
        forms.append(_with_pictures(text, pictures))
    elif _PICTURE in text:
        lines = text.split("\n")
        kept = "\n".join(line for line in lines if line != _PICTURE)
        forms.append(_with_pictures(kept.strip(), lines.count(_PICTURE)))
    for form in forms:
        yield form
        if role == "user" and clean_user is not None and form:
            yield clean_user(form) or ""


def _with_pictures(text: str, count: int) -> str:
    note = f"[{count} image{'s' if count != 1 else ''}]"
    return f"{note} {text}".strip() if count else text
