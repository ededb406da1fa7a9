"""The block for this turn: what is relevant to the current question, minus what the session has already been given."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import UTC, datetime

from hermes_memory_pgvector.capture import clean
from hermes_memory_pgvector.model import Hit, Kind, Question, Session
from hermes_memory_pgvector.render import prefetch_block
from hermes_memory_pgvector.sessions import Sessions
from hermes_memory_pgvector.settings import Settings

TURN_SHARE = 3
"""Past turns offered beside the memories, at most."""


def block(
    query: str,
    session: Session,
    settings: Settings,
    sessions: Sessions,
    *,
    search: Callable[[Question], list[Hit]],
    floor: float,
    shown_by_host: Container[str],
) -> str:
    """Text to inject before this turn; nothing rather than noise."""
    text = clean(query).strip()[: settings.query_max_chars] if isinstance(query, str) else ""
    if not text:
        return ""
    key = (session.theme, session.session_id)
    memories = _ask(text, Kind.MEMORY, session, settings, search, floor)
    memories = [hit for hit in memories if hit.content not in shown_by_host]
    hits = _fresh(memories, key, sessions, settings.prefetch_limit)
    if settings.prefetch_sources == "both":
        turns = _ask(text, Kind.TURN, session, settings, search, floor)
        turns = [hit for hit in turns if hit.session_id != session.session_id]
        hits += _fresh(turns, key, sessions, min(TURN_SHARE, settings.prefetch_limit))
    rendered, placed = prefetch_block(hits, settings.prefetch_max_chars)
    sessions.note_shown(key, [_name(hit) for hit in placed])
    return rendered


def _ask(
    text: str,
    kind: Kind,
    session: Session,
    settings: Settings,
    search: Callable[[Question], list[Hit]],
    floor: float,
) -> list[Hit]:
    # Some of the best hits may have been shown before: ask for more than will be used.
    limit = min(50, settings.prefetch_limit * 3)
    return search(
        Question(
            text=text,
            kind=kind,
            theme=session.theme,
            session_id=session.session_id,
            limit=limit,
            now=datetime.now(UTC),
            min_similarity=floor,
        )
    )


def _fresh(hits: list[Hit], key: tuple[str, str], sessions: Sessions, limit: int) -> list[Hit]:
    new = sessions.not_shown(key, [_name(hit) for hit in hits])
    return [hit for hit in hits if _name(hit) in new][:limit]


def _name(hit: Hit) -> str:
    return f"{hit.kind.value}:{hit.id}"
