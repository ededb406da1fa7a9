"""Why recall answered as it did: from the log of its answers, with the texts as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hermes_memory_pgvector.care import themes
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import recall_log
from hermes_memory_pgvector.store.recall_log import Caller, LoggedAnswer
from hermes_memory_pgvector.values import Kind


@dataclass(frozen=True, slots=True)
class Why:
    """The last answers of a session."""

    theme: str
    session_id: str | None
    answers: tuple[LoggedAnswer, ...]
    contents: Mapping[tuple[Kind, int], str]
    """The texts of the hits that are still stored."""


def why(
    connection: Connection,
    theme: str,
    *,
    session_id: str | None = None,
    caller: Caller | None = None,
    limit: int = 5,
) -> Why:
    """The last answers of a session, or of the session that asked last in a theme."""
    themes.require(connection, theme)
    found = recall_log.newest(connection, theme, session_id=session_id, caller=caller, limit=limit)
    if session_id is None and found:
        session_id = found[0].session_id
        found = recall_log.newest(connection, theme, session_id=session_id, caller=caller, limit=limit)
    hits = [hit for answer in found for hit in answer.hits]
    return Why(theme, session_id, tuple(found), recall_log.contents(connection, hits))
