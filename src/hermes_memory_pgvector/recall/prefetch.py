"""The block for this turn: what is relevant to the current question, minus what the session has already been given."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import UTC, datetime

from hermes_memory_pgvector.capture.session_ledger import Sessions
from hermes_memory_pgvector.capture.transcript import clean
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.recall.render import prefetch_block
from hermes_memory_pgvector.values import Hit, Kind, Question, Session

TURN_SHARE = 3
"""Past turns offered beside the memories, at most."""


def block(
    query: str,
    session: Session,
    settings: Settings,
    sessions: Sessions,
    *,
    search: Callable[[list[Question]], list[list[Hit]]],
    floor: float,
    shown_by_host: Container[str],
) -> str:
    """Text to inject before this turn; nothing rather than noise."""
    # Cut before it is cleaned: a question of megabytes is not read to its end.
    asked = query.lstrip()[: 2 * settings.query_max_chars] if isinstance(query, str) else ""
    text = clean(asked).strip()[: settings.query_max_chars]
    if not text:
        return ""
    kinds = [Kind.MEMORY, Kind.TURN] if settings.prefetch_sources == "both" else [Kind.MEMORY]
    found = search([_question(text, kind, session, settings, floor) for kind in kinds])
    key = (session.theme, session.session_id)
    memories = [hit for hit in found[0] if hit.content not in shown_by_host]
    hits = _fresh(memories, key, sessions, settings.prefetch_limit)
    for turns in found[1:]:
        earlier = [hit for hit in turns if hit.session_id != session.session_id]
        hits += _fresh(earlier, key, sessions, min(TURN_SHARE, settings.prefetch_limit))
    rendered, placed = prefetch_block(hits, settings.prefetch_max_chars)
    sessions.note_shown(key, [_name(hit) for hit in placed])
    return rendered


def _question(text: str, kind: Kind, session: Session, settings: Settings, floor: float) -> Question:
    return Question(
        text=text,
        kind=kind,
        theme=session.theme,
        session_id=session.session_id,
        # Some of the best hits may have been shown before: ask for more than will be used.
        limit=min(50, settings.prefetch_limit * 3),
        now=datetime.now(UTC),
        min_similarity=floor,
        is_ambient=True,
    )


def _fresh(hits: list[Hit], key: tuple[str, str], sessions: Sessions, limit: int) -> list[Hit]:
    new = sessions.not_shown(key, [_name(hit) for hit in hits])
    return [hit for hit in hits if _name(hit) in new][:limit]


def _name(hit: Hit) -> str:
    return f"{hit.kind.value}:{hit.id}"
