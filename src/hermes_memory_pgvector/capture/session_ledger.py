"""Which turns each session has reported: bounded, in memory, shared by all providers of the process.

The database guarantees that a turn is stored once. The ledger keeps the common repeats from getting that far, and knows
what only the process can know: that a turn of a transcript was already reported in other words, and which turns were
undone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from hermes_memory_pgvector.capture.transcript import Turn, with_ordinals
from hermes_memory_pgvector.values import Role

SessionKey = tuple[str, str]
"""(theme, session id)"""
TurnId = tuple[str, int]
"""(digest, ordinal) of a turn within its session, as the database knows it."""
NumberedTurn = tuple[Turn, int]
"""A turn and its ordinal: 2 for the second occurrence of the same words in the session."""
ReportCounts = OrderedDict[tuple[str, str], int]
"""How often one provider has reported the same words, by session and digest."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MAX_SESSIONS = 2000
MAX_TURNS = 5000
MAX_BEGUN = 100
MAX_CALLS = 1000


@dataclass(frozen=True, slots=True)
class TranscriptWords:
    """What a transcript shows beside a turn that is being reported."""

    occurrences: Mapping[Turn, int]
    """How often each turn occurs in it."""
    last: Mapping[Role, Turn]
    """The last turn of each role."""


@dataclass(slots=True)
class _Reported:
    """What one session has reported."""

    turns: dict[TurnId, int] = field(default_factory=dict)
    """When each turn was reported, in microseconds."""
    from_transcript: set[TurnId] = field(default_factory=set)
    """Turns known from a transcript only: no hook has reported them yet."""
    earlier: set[TurnId] = field(default_factory=set)
    """Turns from before the session was last continued: the same words reported again are not a retry."""
    undone: set[TurnId] = field(default_factory=set)
    """Undone turns: a stale transcript does not bring them back, saying the words again does."""
    aliases: OrderedDict[TurnId, TurnId] = field(default_factory=OrderedDict)
    """The transcript's own wording of turns that were reported in other words."""
    begun: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Digests of the latest questions: the user may interrupt a turn, and then nobody reports it."""
    judged: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Calls of the memory tool of which it is known which tools were used before them."""


class SessionLedger:
    """Reported turns of all sessions."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._sessions: OrderedDict[SessionKey, _Reported] = OrderedDict()

    def begin(self, key: SessionKey, question: Turn | None) -> None:
        """A turn starts: a user who repeats an undone question means it."""
        with self._lock:
            if question is None:
                return
            session = self._session(key)
            digest = question.digest
            _remember(session.begun, digest, None, MAX_BEGUN)
            for turn_id in [each for each in session.undone if each[0] == digest]:
                _drop(session, turn_id)
            # What a transcript showed before this turn began is not what this turn will report.
            session.from_transcript = {each for each in session.from_transcript if each[0] != digest}

    def report(
        self,
        key: SessionKey,
        exchange: Sequence[Turn],
        words: TranscriptWords | None,
        *,
        now_us: int,
        window_us: int,
        counts: ReportCounts,
    ) -> tuple[list[NumberedTurn], list[NumberedTurn]]:
        """An exchange is complete: its turns that are new, and all its turns as they are stored.

        `counts` is what this provider has reported itself, for hosts that show no transcript.
        """
        new: list[NumberedTurn] = []
        stored: list[NumberedTurn] = []
        with self._lock:
            session = self._session(key)
            for turn in exchange:
                digest = turn.digest
                ordinal = counts.get((key[1], digest), 0) + 1
                _remember(counts, (key[1], digest), ordinal, MAX_TURNS)
                alias = None
                if words is not None:
                    ordinal = words.occurrences.get(turn, 1)
                    shown = None if turn in words.occurrences else words.last.get(turn.role)
                    if shown is not None:
                        alias = (shown.digest, words.occurrences[shown])
                        if alias in session.from_transcript:
                            # A transcript was read first and had this turn in the host's wording.
                            session.from_transcript.remove(alias)
                            stored.append((shown, alias[1]))
                            continue
                ordinal, is_new = _number(session, (digest, ordinal), now_us, window_us)
                stored.append((turn, ordinal))
                if alias is not None:
                    _remember(session.aliases, alias, (digest, ordinal), MAX_TURNS)
                if is_new:
                    _add(session, (digest, ordinal), now_us)
                    new.append((turn, ordinal))
        return new, stored

    def read_transcript(self, key: SessionKey, transcript: Iterable[Turn], *, now_us: int) -> list[NumberedTurn]:
        """A whole transcript was seen: its turns that nobody has reported yet."""
        with self._lock:
            session = self._session(key)
            new = []
            for turn, ordinal in with_ordinals(transcript):
                turn_id = (turn.digest, ordinal)
                if turn_id in session.turns or turn_id in session.aliases:
                    continue
                _add(session, turn_id, now_us)
                session.from_transcript.add(turn_id)
                new.append((turn, ordinal))
            return new

    def unjudged(self, key: SessionKey, calls: Iterable[str]) -> list[str]:
        """Those of these calls of the memory tool that are new."""
        with self._lock:
            wanted = list(calls)
            if not wanted:
                return []
            session = self._session(key)
            new = [call for call in wanted if call not in session.judged]
            for call in new:
                _remember(session.judged, call, None, MAX_CALLS)
            return new

    def knows_any(self, key: SessionKey, transcript: Sequence[Turn]) -> bool:
        """Whether a session has reported or begun any turn of a transcript."""
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return False
            ids = ((turn.digest, ordinal) for turn, ordinal in with_ordinals(transcript))
            return any(
                turn_id in session.turns or turn_id in session.aliases or turn_id[0] in session.begun for turn_id in ids
            )

    def continue_as(self, old: SessionKey, new: SessionKey) -> None:
        """A session goes on under another id: its turns are known there and are not stored again."""
        with self._lock:
            source, target = self._session(old), self._session(new)
            if old != new:
                target.from_transcript |= source.from_transcript.difference(target.turns)
                target.undone |= source.undone.difference(target.turns)
                for turn_id, at_us in source.turns.items():
                    target.turns.setdefault(turn_id, at_us)
                for alias, stored in source.aliases.items():
                    target.aliases.setdefault(alias, stored)
                for call in source.judged:
                    _remember(target.judged, call, None, MAX_CALLS)
            target.earlier = set(target.turns)

    def undo(self, key: SessionKey, turn_ids: Iterable[TurnId]) -> tuple[list[TurnId], int]:
        """These turns were undone: their ids as stored, and when the last of them was reported."""
        with self._lock:
            session = self._session(key)
            found = []
            at_us = 0
            for turn_id in turn_ids:
                stored = session.aliases.get(turn_id, turn_id)
                at_us = max(at_us, session.turns.get(stored, 0))
                session.turns.setdefault(stored, 0)
                session.undone.add(stored)
                session.from_transcript.discard(stored)
                found.append(stored)
            return found, at_us

    def void(self, key: SessionKey, turns: Iterable[Turn]) -> None:
        """These turns were undone before they were stored."""
        with self._lock:
            session = self._session(key)
            for turn in turns:
                digest = turn.digest
                free = (n for n in count(1) if (digest, n) not in session.turns or (digest, n) in session.undone)
                turn_id = (digest, next(free))
                session.turns.setdefault(turn_id, 0)
                session.undone.add(turn_id)

    def _session(self, key: SessionKey) -> _Reported:
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = _Reported()
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        else:
            self._sessions.move_to_end(key)
        return session


def _number(session: _Reported, turn_id: TurnId, now_us: int, window_us: int) -> tuple[int, bool]:
    """A turn's ordinal, and whether the turn is new; if not, the same report has arrived a second time."""
    digest, ordinal = turn_id
    if turn_id not in session.turns or turn_id in session.undone:
        return ordinal, True
    if turn_id in session.from_transcript:
        session.from_transcript.remove(turn_id)
        return ordinal, False
    if turn_id not in session.earlier and now_us - session.turns[turn_id] <= window_us:
        return ordinal, False
    return next(again for again in count(ordinal + 1) if (digest, again) not in session.turns), True


def _add(session: _Reported, turn_id: TurnId, now_us: int) -> None:
    session.undone.discard(turn_id)
    session.earlier.discard(turn_id)
    session.turns[turn_id] = now_us
    if len(session.turns) > MAX_TURNS:
        _drop(session, next(iter(session.turns)))


def _drop(session: _Reported, turn_id: TurnId) -> None:
    session.turns.pop(turn_id, None)
    for ids in (session.from_transcript, session.earlier, session.undone):
        ids.discard(turn_id)


def _remember(book: OrderedDict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    if key in book:
        book.move_to_end(key)
    book[key] = value
    if len(book) > most:
        book.popitem(last=False)
