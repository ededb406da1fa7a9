"""What a conversation tells, as write items: a turn that is complete, a session's transcript, an exchange taken back.

The host shows a transcript beside a turn, and when a session ends or is compressed: it is the backstop of the hooks,
and after an undo it alone shows what is left of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hermes_memory_pgvector import capture
from hermes_memory_pgvector.capture import Said
from hermes_memory_pgvector.engine import Engine
from hermes_memory_pgvector.model import AddTurn, ForgetTurns, Session, TrimSession, WriteItem
from hermes_memory_pgvector.sessions import Spoken

CleanUser = Callable[[str], str | None]
"""Recovers what a user typed from what the host made of it."""
ASKED_CHARS = 200
"""How much of a question tells turns apart while they are under way."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def begun(engine: Engine, session: Session, message: Any) -> None:
    """A turn begins: note what was asked, so that an undo knows whether it was ever stored."""
    engine.sessions.begin((session.theme, session.session_id), capture.text_of(message)[:ASKED_CHARS])


def exchange(
    engine: Engine,
    session: Session,
    user_content: Any,
    assistant_content: Any,
    messages: Any,
    turn_author: Any,
    spoken_before: Spoken,
    clean_user: CleanUser | None,
) -> list[WriteItem]:
    """A turn is complete: what is worth keeping of both sides, and new."""
    settings = engine.settings
    now = engine.clock.now()
    asked = capture.spoken("user", user_content, settings.turn_max_chars)
    answer = capture.spoken("assistant", assistant_content, settings.turn_max_chars)
    sides = (asked, answer)
    transcript, trims = None, []
    if messages is not None:
        transcript = _transcript(messages, settings.turn_max_chars, clean_user)
        trims = _after_undo(engine, session, transcript, [side for side in sides if side is not None])
    new = engine.sessions.announce(
        (session.theme, session.session_id),
        [said for said in sides if said is not None and not capture.is_noise(said[1], settings.turn_min_chars)],
        transcript,
        now_us=now.wall_us,
        window_us=int(settings.turn_retry_window * 1e6),
        spoken_before=spoken_before,
        asked=asked.content[:ASKED_CHARS] if asked is not None else "",
    )
    author = capture.metadata_of(turn_author) if turn_author else None
    items: list[WriteItem] = [
        tuple.__new__(AddTurn, (
            session.theme, session.session_id, said[0], said[1], ordinal, now, True,
            session.parent_session_id, {"author": author} if author and said is asked else _NOTHING,
        ))
        for said, ordinal in new
    ]  # fmt: skip
    return [*trims, *items] if trims else items


def unreported(
    engine: Engine,
    session: Session,
    messages: Any,
    left: tuple[str, str] | None,
    not_before: float,
    clean_user: CleanUser | None,
) -> list[WriteItem]:
    """What a transcript holds that no turn has reported; nothing when it is that of the session just `left`."""
    settings = engine.settings
    told = capture.transcript(messages, settings.turn_max_chars, clean_user=clean_user, not_before=not_before)
    worth = [said for said in told if not capture.is_noise(said.content, settings.turn_min_chars)]
    key = (session.theme, session.session_id)
    if engine.sessions.belongs_elsewhere(key, left, worth):
        return []
    now = engine.clock.now()
    trims = _after_undo(engine, session, told, [])
    items = [
        AddTurn(session.theme, session.session_id, said.role, said.content, ordinal, now, False,
                session.parent_session_id)
        for said, ordinal in engine.sessions.read_transcript(key, worth, now_us=now.wall_us)
    ]  # fmt: skip
    return [*trims, *items]


def undone(engine: Engine, session: Session, session_id: str) -> list[ForgetTurns]:
    """The last exchange of the session that now has this id was taken back: forget its turns."""
    turns, said_us = engine.sessions.undo((session.theme, session_id))
    if not turns or not session.may_write:
        return []
    now = engine.clock.now()
    # A clock that was set back meanwhile must not make the undo older than what it takes back.
    when = now._replace(wall_us=max(now.wall_us, said_us))
    return [ForgetTurns(session.theme, session_id, turns, when)]


def _transcript(messages: Any, max_chars: int, clean_user: CleanUser | None) -> list[Said] | None:
    """What was said, as far as the host shows it; None when it does not."""
    if not isinstance(messages, list | tuple):
        return None
    return capture.transcript(messages, max_chars, clean_user=clean_user)


def _after_undo(engine: Engine, session: Session, shown: list[Said] | None, new: list[Said]) -> list[TrimSession]:
    """After an undo, the next transcript shows what is left of the session; its `new` end was said since."""
    key = (session.theme, session.session_id)
    if shown is None or not engine.sessions.take_rewound(key):
        return []
    kept = shown[: len(shown) - len(new)] if new else shown
    still = engine.sessions.keep_only(key, kept)
    return [TrimSession(session.theme, session.session_id, tuple(still), engine.clock.now())]
