"""The host's own session store, `state.db`: opened for reading, and what it means by a message's content."""

from __future__ import annotations

import json
import sqlite3
import stat
from pathlib import Path
from typing import Any, Literal

from hermes_memory_pgvector.capture.scaffolding import typed_by_user
from hermes_memory_pgvector.text.clean import text_of

FILE_NAME = "state.db"
READ_SECONDS = 1.0
MAX_ANCESTORS = 100
_JSON_MARK = "\x00json:"
_PICTURE = "[screenshot]"
"""What some hosts store in place of a picture."""
_PICTURE_TYPES = ("image_url", "input_image")


def opened(path: Path, wait_seconds: float = READ_SECONDS) -> sqlite3.Connection:
    """A store for reading; an OSError or sqlite3.Error where there is none that can be read."""
    if not stat.S_ISREG(path.stat().st_mode):
        # Opening a named pipe would wait for somebody to write to it.
        raise OSError(f"{path.name} is not a file")
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _checked(address, wait_seconds)
    except sqlite3.OperationalError as error:
        log = path.with_name(f"{path.name}-wal")
        if is_locked(error) or (log.exists() and log.stat().st_size):
            raise
        # Reading a store in WAL mode creates files beside it, which a full or read-only disk does not allow. With an
        # empty log they are not needed.
        return _checked(f"{address}&immutable=1", wait_seconds)


def is_locked(error: Exception) -> bool:
    """Whether another program has the store for itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def decoded(content: Any) -> Any:
    """A message's content as the host had it: a list of parts is stored as marked JSON."""
    if not isinstance(content, str) or not content.startswith(_JSON_MARK):
        return content
    try:
        return json.loads(content[len(_JSON_MARK) :])
    except (ValueError, RecursionError):
        return ""


def wordings(role: Literal["user", "assistant"], content: Any) -> tuple[str, ...]:
    """The forms in which the host may have reported this content, the usual one first; empty when there is none."""
    text = text_of(content)
    forms = [text]
    if isinstance(content, list):
        pictures = sum(isinstance(part, dict) and part.get("type") in _PICTURE_TYPES for part in content)
        forms.insert(0, _with_pictures(text, pictures))
    elif _PICTURE in text:
        lines = text.split("\n")
        kept = "\n".join(line for line in lines if line != _PICTURE)
        forms.insert(0, _with_pictures(kept.strip(), lines.count(_PICTURE)))
    forms = [form for form in forms if form]
    if role == "user":
        typed = [typed_by_user(form) or "" for form in forms]
        forms = [*typed, *forms] if typed and typed[0] else []
    return tuple(dict.fromkeys(form for form in forms if form))


def _with_pictures(text: str, count: int) -> str:
    note = f"[{count} image{'s' if count != 1 else ''}]"
    return f"{note} {text}".strip() if count else text


def _checked(address: str, wait_seconds: float) -> sqlite3.Connection:
    store = sqlite3.connect(address, uri=True, timeout=wait_seconds)
    try:
        store.text_factory = lambda raw: raw.decode("utf-8", "replace")
        store.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except BaseException:
        store.close()
        raise
    return store
