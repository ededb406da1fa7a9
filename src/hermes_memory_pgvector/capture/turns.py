"""What a conversation tells, as write items: a turn that is complete, a session's transcript, an exchange taken back.

The host shows a transcript beside a turn, and when a session ends or is compressed: it is the backstop of the hooks,
and after an undo it shows what is left of the session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.capture import transcript
from hermes_memory_pgvector.capture.exchanges import Exchange, Exchanges, Shown, Turn
from hermes_memory_pgvector.capture.session_ledger import Spoken, TurnId
from hermes_memory_pgvector.values import ONLY_SAYING, AddTurn, ForgetTail, ForgetTurns, Moment, Session, WriteItem

if TYPE_CHECKING:
    from hermes_memory_pgvector.engine.engine import Engine

CleanUser = Callable[[str], str | None]
"""Recovers what a user typed from what the host made of it."""
MAX_KEPT = 2000
"""A resumed session of more turns than this keeps what was undone before any of them was seen."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def begun(engine: Engine, session: Session, exchanges: Exchanges, message: Any, clean_user: CleanUser | None) -> None:
    """A turn begins: note what was asked, so that an undo knows whether it was ever stored."""
    line = {"role": "user", "content": message}
    asked = next(iter(transcript.transcript([line], engine.settings.turn_max_chars, clean_user=clean_user)), None)
    exchanges.begin(asked)
    engine.sessions.begin((session.theme, session.session_id), asked)


def exchange(
    engine: Engine,
    session: Session,
    exchanges: Exchanges,
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
    asked = transcript.spoken("user", user_content, settings.turn_max_chars)
    answer = transcript.spoken("assistant", assistant_content, settings.turn_max_chars)
    sides = [side for side in (asked, answer) if side is not None]
    shown = None
    if isinstance(messages, list | tuple):
        read = partial(transcript.lines, max_chars=settings.turn_max_chars, clean_user=clean_user)
        shown = exchanges.see_turn(messages, read, asked)
    undone = [] if shown is None else _after_undo(engine, session, exchanges, shown)
    new, told = engine.sessions.announce(
        (session.theme, session.session_id),
        [said for said in sides if not transcript.is_noise(said.content, settings.turn_min_chars)],
        None if shown is None else shown.wording,
        now_us=now.wall_us,
        window_us=int(settings.turn_retry_window * 1e6),
        spoken_before=spoken_before,
    )
    exchanges.report(asked, sides, told, new, is_shown=shown is not None)
    author = {"author": transcript.metadata_of(turn_author)} if turn_author else _NOTHING
    return [
        *undone,
        *(
            AddTurn(
                session.theme, session.session_id, said.role, said.content, ordinal, now, is_live=True,
                parent_session_id=session.parent_session_id, metadata=author if said is asked else _NOTHING,
            )
            for said, ordinal in new
        ),
    ]  # fmt: skip


def unreported(
    engine: Engine,
    session: Session,
    exchanges: Exchanges,
    messages: Any,
    left: tuple[str, str] | None,
    not_before: float,
    clean_user: CleanUser | None,
) -> list[WriteItem]:
    """What a transcript holds that no turn has reported; it may still be that of the session just `left`."""
    settings = engine.settings
    lines = transcript.lines(messages, settings.turn_max_chars, clean_user=clean_user, not_before=not_before)
    worth = [
        line.said
        for line in lines
        if line.said is not None
        and not line.is_reloaded
        and not transcript.is_noise(line.said.content, settings.turn_min_chars)
    ]
    key = (session.theme, session.session_id)
    undone: list[WriteItem] = []
    if left is not None and left != key and exchanges.is_empty and engine.sessions.knows_any(left, worth):
        # A session in which nothing was said has no transcript: the host shows that of the session before.
        key = left
        session = replace(session, session_id=left[1], parent_session_id="")
    elif isinstance(messages, list | tuple):
        undone = _after_undo(engine, session, exchanges, exchanges.see_transcript(messages, lines))
    now = engine.clock.now()
    return [
        *undone,
        *(
            AddTurn(
                session.theme, session.session_id, said.role, said.content, ordinal, now, is_live=False,
                parent_session_id=session.parent_session_id,
            )
            for said, ordinal in engine.sessions.read_transcript(key, worth, now_us=now.wall_us)
        ),
    ]  # fmt: skip


def undone(engine: Engine, session: Session, exchanges: Exchanges) -> list[WriteItem]:
    """The host has taken back the last exchange: forget its turns, if it is known which they are."""
    engine.sessions.forget_shown((session.theme, session.session_id))
    gone = _forgotten(engine, session.theme, exchanges.undo())
    return list(gone) if session.may_write else []


def _after_undo(engine: Engine, session: Session, exchanges: Exchanges, shown: Shown) -> list[WriteItem]:
    """What the first transcript after an undo shows to be gone, beyond the last exchange."""
    items: list[WriteItem] = [*_forgotten(engine, session.theme, shown.undone)]
    lost = shown.lost
    if lost is not None and 0 < len(lost.kept) <= MAX_KEPT:
        kept = tuple(_named(turn) for turn in lost.kept)
        resumed = Moment(exchanges.since_us, exchanges.since_us)
        items.append(ForgetTail(session.theme, session.session_id, lost.exchanges, kept, resumed))
    return items


def _forgotten(engine: Engine, theme: str, gone: Iterable[Exchange]) -> list[ForgetTurns]:
    """These exchanges were taken back: one item for each session that holds turns of them."""
    by_session: dict[str, list[Turn]] = defaultdict(list)
    for turn in (turn for each in gone for turn in each.turns):
        if turn.session_id is not None:
            by_session[turn.session_id].append(turn)
    items = []
    for session_id, turns in by_session.items():
        stored, said_us = engine.sessions.take_back((theme, session_id), [_id(turn) for turn in turns])
        named = tuple(
            (digest, ordinal if turn.is_sure else ONLY_SAYING)
            for (digest, ordinal), turn in zip(stored, turns, strict=True)
        )
        now = engine.clock.now()
        # A clock that was set back meanwhile must not make the undo older than what it takes back.
        items.append(ForgetTurns(theme, session_id, named, now._replace(wall_us=max(now.wall_us, said_us))))
    return items


def _id(turn: Turn) -> TurnId:
    return turn.said.digest, turn.ordinal


def _named(turn: Turn) -> TurnId:
    return turn.said.digest, turn.ordinal if turn.is_sure else ONLY_SAYING
