"""Memories that lie in files of a home: MEMORY.md and USER.md, and the facts of the Holographic memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.capture.transcript import metadata_of
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES, read
from hermes_memory_pgvector.text.clean import capped, text_of
from hermes_memory_pgvector.values import RowOrigin

HOLOGRAPHIC_NAME = "memory_store.db"
WAIT_SECONDS = 15.0
PAGE_ROWS = 500
Line = tuple[int, dict[str, Any]]


def entries(home: Path, theme: str, max_chars: int) -> Iterator[Line]:
    """The entries of a home's MEMORY.md and USER.md as lines of an export, as old as their file."""
    for target, name in FILE_NAMES.items():
        path = home / "memories" / name
        if not path.is_file():
            continue
        found = read(path, max_chars)
        if found is None:
            raise ConfigError(f"{path} cannot be read")
        at = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
        for number, content in enumerate(found, start=1):
            yield (
                number,
                {
                    "kind": "memory", "theme": theme, "target": target, "content": content, "created_at": at,
                    "updated_at": at, "metadata": {"imported_from": name},
                    "origin": RowOrigin.IMPORT.value,
                },
            )  # fmt: skip


def facts(path: Path, theme: str, max_chars: int) -> Iterator[Line]:
    """The facts of a Holographic memory as lines of an export; what it learnt of the user belongs to the user."""
    if not path.is_file():
        raise ConfigError(f"there is no {path}; name the file of the Holographic memory")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_SECONDS)) as store:
            last = -1
            while page := store.execute(
                "SELECT fact_id, content, category, tags, trust_score, created_at, updated_at FROM facts"
                " WHERE fact_id > ? ORDER BY fact_id LIMIT ?",
                (last, PAGE_ROWS),
            ).fetchall():
                for fact_id, content, category, tags, trust, created, updated in page:
                    last = fact_id
                    kept = {"category": category, "tags": tags, "trust_score": trust}
                    words = capped(text_of(content), max_chars)
                    if not words:
                        continue
                    yield (
                        fact_id,
                        {
                            "kind": "memory", "theme": theme,
                            "target": "user" if str(category).startswith("user") else "memory", "content": words,
                            "created_at": str(created or updated), "updated_at": str(updated or created),
                            "metadata": metadata_of(
                                {"imported_from": "holographic", **{key: each for key, each in kept.items() if each}}
                            ),
                            "origin": RowOrigin.IMPORT.value,
                        },
                    )  # fmt: skip
    except sqlite3.Error as error:
        reason = getattr(error, "sqlite_errorname", type(error).__name__)
        raise ConfigError(f"{path} cannot be read as a Holographic memory ({reason})") from None
