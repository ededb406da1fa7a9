"""The host's own session store, `state.db`, read only: where the text of turns is found that did not fit here.

A turn is found by the digest of its words, so a row need not be trusted: one that is torn, foreign, rewound or
summarised either has exactly these words or does not match. Only three columns are read, which every host has.
"""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from hermes_memory_pgvector.capture.transcript import Turn, turn_of
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.text.clean import text_of

FILE_NAME = "state.db"
READ_SECONDS = 1.0
MAX_ANCESTORS = 100
_JSON_MARK = "\x00json:"
_PICTURE = "[screenshot]"
"""What some hosts store in place of a picture."""
_PICTURE_TYPES = ("image_url", "input_image")

CleanUser = Callable[[str], str | None]


class HostStoreUnreadable(MemoryPluginError):
    """The store is missing, locked, damaged or of an unknown format."""


def find_words(
    home: Path, session_id: str, digests: Collection[str], *, max_chars: int, clean_user: CleanUser | None
) -> dict[str, str]:
    """The text behind these digests, as far as the session or one of its ancestors has it."""
    wanted = set(digests)
    found: dict[str, str] = {}
    try:
        with closing(_opened(home / FILE_NAME)) as store:
            for each in _lineage(store, session_id):
                for turn in _turns(store, each, max_chars, clean_user):
                    digest = turn.digest
                    if digest in wanted:
                        found[digest] = turn.content
                if len(found) == len(wanted):
                    break
    except sqlite3.Error as error:
        reason = getattr(error, "sqlite_errorname", type(error).__name__)
        raise HostStoreUnreadable(f"the host's {FILE_NAME} cannot be read ({reason})") from None
    except OSError as error:
        raise HostStoreUnreadable(f"the host's {FILE_NAME} cannot be read ({type(error).__name__})") from None
    return found


def _opened(path: Path) -> sqlite3.Connection:
    if not stat.S_ISREG(path.stat().st_mode):
        # Opening a named pipe would wait for somebody to write to it.
        raise HostStoreUnreadable(f"the host's {FILE_NAME} is not a file")
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _checked(address)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or _has_log(path):
            raise
        # Reading a store in WAL mode creates files beside it, which a full or read-only disk does not allow. With an
        # empty log they are not needed.
        return _checked(f"{address}&immutable=1")


def _checked(address: str) -> sqlite3.Connection:
    store = sqlite3.connect(address, uri=True, timeout=READ_SECONDS)
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


def _lineage(store: sqlite3.Connection, session_id: str) -> Iterator[str]:
    """The session and its ancestors, the nearest first: a turn may begin in one and end in the next."""
    seen: set[str] = set()
    current: Any = session_id
    while isinstance(current, str) and current and current not in seen and len(seen) < MAX_ANCESTORS:
        yield current
        seen.add(current)
        try:
            row = store.execute("SELECT parent_session_id FROM sessions WHERE id = ?", (current,)).fetchone()
        except sqlite3.OperationalError:
            # A host without lineage.
            return
        current = row[0] if row else None


def _turns(store: sqlite3.Connection, session_id: str, max_chars: int, clean_user: CleanUser | None) -> Iterator[Turn]:
    """Every form in which the rows of a session may have been reported."""
    rows = store.execute(
        "SELECT role, content FROM messages"
        " WHERE session_id = ? AND role IN ('user', 'assistant') AND content IS NOT NULL",
        (session_id,),
    )
    for role, content in rows:
        for text in _wordings(role, _decoded(content), clean_user):
            turn = turn_of(role, text, max_chars)
            if turn is not None:
                yield turn


def _decoded(content: Any) -> Any:
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
