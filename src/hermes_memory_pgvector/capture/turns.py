"""A conversation as write items: complete exchanges, transcripts, undone turns. Pure but for the clock and the ledger.

The host shows a transcript with each turn, and when a session ends or is compressed. It is the safety net of the hooks,
and after an undo it shows what is left of the session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from hermes_memory_pgvector.capture import transcript
from hermes_memory_pgvector.capture.exchanges import (
    Exchange,
    Exchanges,
    StoredTurn,
    TranscriptView,
    first_exchanges,
)
from hermes_memory_pgvector.capture.provenance import Judge, Judgement
from hermes_memory_pgvector.capture.session_ledger import ReportCounts, SessionKey, SessionLedger, TurnId
from hermes_memory_pgvector.capture.transcript import Line, Turn
from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.names import MAX_NAME_CHARS
from hermes_memory_pgvector.values import (
    ONLY_OCCURRENCE,
    AddTurn,
    ForgetTail,
    ForgetTurns,
    JudgeMemories,
    Moment,
    RowOrigin,
    Session,
    WriteItem,
)

CleanUser = Callable[[str], str | None]
"""Recovers what a user typed from what the host made of it."""
MAX_KEPT = 2000
"""In a resumed session with more turns than this, an undo of turns this process never saw deletes nothing."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TurnCapture:
    """What it takes to turn the host's reports into write items."""

    settings: Settings
    clock: Clock
    ledger: SessionLedger
    clean_user: CleanUser | None
    home_id: str = ""

    def begin(self, session: Session, exchanges: Exchanges, message: Any) -> None:
        """A turn starts: remember the question, so that an undo knows whether it was ever stored."""
        line = {"role": "user", "content": message}
        found = transcript.transcript([line], self.settings.turn_max_chars, clean_user=self.clean_user)
        question = found[0] if found else None
        exchanges.begin(question)
        self.ledger.begin(_key(session), question)

    def report(
        self,
        session: Session,
        exchanges: Exchanges,
        user_content: Any,
        assistant_content: Any,
        messages: Any,
        author: Mapping[str, Any],
        counts: ReportCounts,
    ) -> list[WriteItem]:
        """An exchange is complete: its turns that are new and worth keeping; `author` is who has asked."""
        settings = self.settings
        now = self.clock.now()
        question = transcript.turn_of("user", user_content, settings.turn_max_chars)
        answer = transcript.turn_of("assistant", assistant_content, settings.turn_max_chars)
        turns = [turn for turn in (question, answer) if turn is not None]
        judgement, calls = Judge(settings, session.platform).of_exchange(messages, question)
        judged = self._judged(session, calls, now)
        if exchanges.is_withdrawn(question):
            self.ledger.void(_key(session), turns)
            return judged
        view = None
        if isinstance(messages, list | tuple):
            read = partial(transcript.lines, max_chars=settings.turn_max_chars, clean_user=self.clean_user)
            view = exchanges.see_turn(messages, read, question)
        undone = [] if view is None else self._undone_since(session, exchanges, view)
        new, stored = self.ledger.report(
            _key(session),
            [turn for turn in turns if not transcript.is_noise(turn.content, settings.turn_min_chars)],
            None if view is None else view.words,
            now_us=now.wall_us,
            window_us=int(settings.turn_retry_window * 1e6),
            counts=counts,
        )
        exchanges.report(question, turns, stored, new, is_shown=view is not None)
        return [
            *undone,
            *(
                self._turn(session, turn, ordinal, now, judgement, author if turn is question else {}, is_live=True)
                for turn, ordinal in new
            ),
            *judged,
        ]

    def judge_memories(self, session: Session, messages: Any) -> list[WriteItem]:
        """How far to trust what the memory tool wrote in the last exchange, where turns are not stored."""
        _, calls = Judge(self.settings, session.platform).of_exchange(messages, None)
        return self._judged(session, calls, self.clock.now())

    def _turn(
        self,
        session: Session,
        turn: Turn,
        ordinal: int,
        now: Moment,
        judgement: Judgement | None,
        author: Mapping[str, Any],
        *,
        is_live: bool,
    ) -> AddTurn:
        """A turn as a write item; `judgement` is the assistant's, None where the host shows no transcript."""
        is_user = turn.role == "user"
        told = Judge(self.settings, session.platform).of_user(turn.content)
        if is_user or (judgement is None and told.tools == (session.platform,)):
            judgement = told
        metadata: dict[str, Any] = {"platform": session.platform} if session.platform else {}
        if session.lineage and session.parent_session_id:
            metadata["lineage"] = session.lineage
        if author:
            metadata["author"] = dict(author)
        if judgement is not None and judgement.tools:
            metadata["tools"] = list(judgement.tools)
        return AddTurn(
            session.theme, session.session_id, turn.role, turn.content, ordinal, now, is_live=is_live,
            parent_session_id=session.parent_session_id, metadata=metadata or _NOTHING, home_id=self.home_id,
            origin=RowOrigin.USER if is_user else RowOrigin.ASSISTANT,
            trust=None if judgement is None else judgement.trust,
            # A transcript does not say when its words were said.
            is_dated=is_live,
        )  # fmt: skip

    def _judged(self, session: Session, calls: Mapping[str, Judgement], now: Moment) -> list[WriteItem]:
        """One item for each judgement of calls that nobody has judged yet."""
        by_judgement: dict[Judgement, list[str]] = defaultdict(list)
        for call in self.ledger.unjudged(_key(session), calls):
            by_judgement[calls[call]].append(call[:MAX_NAME_CHARS])
        return [
            JudgeMemories(session.theme, session.session_id, tuple(each), judgement.trust, judgement.tools, now)
            for judgement, each in by_judgement.items()
        ]

    def lines(self, messages: Any, not_before: float) -> list[Line]:
        """A transcript as lines; what is older than `not_before` was reloaded."""
        max_chars = self.settings.turn_max_chars
        return transcript.lines(messages, max_chars, clean_user=self.clean_user, not_before=not_before)

    def read_transcript(
        self, session: Session, exchanges: Exchanges, messages: Any, lines: list[Line]
    ) -> list[WriteItem]:
        """The turns of a session's transcript, given as messages and as lines, that nobody has reported."""
        undone: list[WriteItem] = []
        if isinstance(messages, list | tuple):
            view = exchanges.see_transcript(messages, lines)
            undone = self._undone_since(session, exchanges, view)
            lines = lines if view.valid is None else first_exchanges(lines, view.valid)
        now = self.clock.now()
        new = self.ledger.read_transcript(_key(session), self._worth_keeping(lines), now_us=now.wall_us)
        judge = Judge(self.settings, session.platform)
        found, calls = judge.of_transcript(messages, self.settings.turn_max_chars)
        author = {"id": session.author} if session.author else {}
        return [
            *undone,
            *(
                self._turn(
                    session, turn, ordinal, now, found.get(turn), author if turn.role == "user" else {}, is_live=False
                )
                for turn, ordinal in new
            ),
            *self._judged(session, calls, now),
        ]

    def is_of_last_turn(self, spoken: Session, lines: Sequence[Line]) -> bool:
        """Whether this transcript is the one the host keeps of its last turn, in a session that was left since.

        If not, it is that of the session which the host has read from its store instead.
        """
        is_live = any(not line.is_loaded for line in lines)
        return is_live and self.ledger.knows_any(_key(spoken), self._worth_keeping(lines))

    def _worth_keeping(self, lines: Sequence[Line]) -> list[Turn]:
        turns = (line.turn for line in lines if line.turn is not None and not line.is_reloaded)
        return [turn for turn in turns if not transcript.is_noise(turn.content, self.settings.turn_min_chars)]

    def undo(self, session: Session, exchanges: Exchanges) -> list[WriteItem]:
        """The host has undone the last exchange: delete its turns, if it is known which they are."""
        undone = exchanges.undo()
        self.ledger.void(_key(session), [turn for each in undone if not each.stored for turn in each.turns])
        items = self._undone(session.theme, undone)
        return list(items) if session.may_write else []

    def _undone_since(self, session: Session, exchanges: Exchanges, view: TranscriptView) -> list[WriteItem]:
        """What the first transcript after an undo shows to be gone, beyond the last exchange."""
        items: list[WriteItem] = [*self._undone(session.theme, view.undone)]
        lost = view.lost
        if lost is not None and 0 < len(lost.kept) <= MAX_KEPT:
            kept = tuple((each.turn.digest, _ordinal(each)) for each in lost.kept)
            resumed = Moment(exchanges.since_us, exchanges.since_us)
            items.append(ForgetTail(session.theme, session.session_id, lost.exchanges, kept, resumed))
        return items

    def _undone(self, theme: str, exchanges: Iterable[Exchange]) -> list[ForgetTurns]:
        """These exchanges were undone: one item for each session that holds turns of them."""
        by_session: dict[str, list[StoredTurn]] = defaultdict(list)
        for turn in (turn for exchange in exchanges for turn in exchange.stored):
            if turn.session_id is not None:
                by_session[turn.session_id].append(turn)
        items = []
        for session_id, turns in by_session.items():
            ids, reported_us = self.ledger.undo((theme, session_id), [_id(turn) for turn in turns])
            named = tuple(
                (digest, ordinal if turn.is_sure else ONLY_OCCURRENCE)
                for (digest, ordinal), turn in zip(ids, turns, strict=True)
            )
            now = self.clock.now()
            # If the clock was set back meanwhile, the undo must not become older than the turns it undoes.
            items.append(ForgetTurns(theme, session_id, named, now._replace(wall_us=max(now.wall_us, reported_us))))
        return items


def _key(session: Session) -> SessionKey:
    return session.theme, session.session_id


def _id(stored: StoredTurn) -> TurnId:
    return stored.turn.digest, stored.ordinal


def _ordinal(stored: StoredTurn) -> int:
    return stored.ordinal if stored.is_sure else ONLY_OCCURRENCE
