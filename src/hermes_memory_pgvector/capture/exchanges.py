"""The conversation of one agent, cut into exchanges as the host's /undo cuts it. Pure: no clock, no files, no database.

The host reports an undo but not what it undid: it cuts its transcript at a user message and goes on. This module
compares the transcript before the cut with the one that the next hook shows. A turn can be missing for other reasons: a
summary replaced it, the session was resumed, the transcript is an old one. So only a certain cut undoes anything, and
it names every turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hermes_memory_pgvector.capture.session_ledger import NumberedTurn, TranscriptWords
from hermes_memory_pgvector.capture.transcript import Line, Turn
from hermes_memory_pgvector.values import Role

READ_MESSAGES = 400
"""How many of the last messages of a transcript are read when it is first seen; later ones are read as they come."""
RECENT_EXCHANGES = 8
"""How many of the latest exchanges may still be waiting for their report."""

MAX_LIVE = 1000
"""How many exchanges are remembered while no transcript shows them."""

ReadLines = Callable[[Sequence[Any]], list[Line]]


class StoredTurn(NamedTuple):
    """A turn as the database may hold it."""

    turn: Turn
    ordinal: int
    session_id: str | None
    """The session it is stored under; None when this conversation may not undo it."""
    is_sure: bool
    """Whether the ordinal is the database's own; after a summary nobody can count earlier occurrences."""


@dataclass(slots=True)
class Exchange:
    """A user message and what followed it."""

    turns: list[Turn] = field(default_factory=list)
    """As the transcript has them, or as reported while no transcript has shown them."""
    stored: list[StoredTurn] = field(default_factory=list)
    is_user: bool = True
    """Whether it begins with a user message, which is where an undo can cut."""
    is_note: bool = False
    """Whether it contains the host's summary of earlier turns."""
    is_open: bool = False
    """Whether it has begun and only its question is known."""


@dataclass(frozen=True, slots=True)
class LostTail:
    """How many exchanges were undone before this process had seen them, and the turns that remain."""

    exchanges: int
    kept: tuple[StoredTurn, ...]


@dataclass(frozen=True, slots=True)
class TranscriptView:
    """What a transcript shows: its words, and what was undone since the last one."""

    words: TranscriptWords
    undone: list[Exchange] = field(default_factory=list)
    lost: LostTail | None = None
    valid: int | None = None
    """How many of its exchanges still count, if it is one from before an undo."""


class Exchanges:
    """What one provider knows of its agent's conversation."""

    def __init__(self, session_id: str = "", since_us: int = 0, *, is_new: bool = False) -> None:
        self._lock = threading.Lock()
        self._session_id = session_id
        self.since_us = since_us
        """When the provider joined this session; what it has not seen is older."""
        self._is_known = is_new
        """Whether a transcript was seen, or the session is so new that there is none."""
        self._reading = _Reading()
        self._live: list[Exchange] = []
        """Exchanges begun or reported since the last transcript."""
        self._awaited: deque[Turn] = deque(maxlen=RECENT_EXCHANGES)
        """Questions that have begun and whose reports may be under way."""
        self._withdrawn: list[Turn] = []
        """Those of them that were undone: when the report comes, it is void."""
        self._before: list[Exchange] | None = None
        """The conversation as it was before the first undo since the last transcript."""
        self._last_turn: list[Exchange] | None = None
        """The conversation as the last turn left it, if it was cut since: the host may show that once more."""
        self._unseen = 0
        """How many undone exchanges this process has never seen."""
        self._is_summarised = False

    def begin(self, question: Turn | None) -> None:
        """A turn starts; the host may never report its end, because the user interrupts it."""
        with self._lock:
            self._live.append(Exchange([] if question is None else [question], is_open=True))
            # Nobody may ever report them: turns are not stored, or are reported of another session.
            del self._live[:-MAX_LIVE]
            self._last_turn = None
            if question is None:
                self._withdrawn.clear()
                return
            self._awaited.append(question)
            # A user who repeats an undone question means it.
            self._withdrawn = [each for each in self._withdrawn if each != question]

    def is_withdrawn(self, question: Turn | None) -> bool:
        """Whether the exchange that is being reported was undone before its report came; asked once per report."""
        with self._lock:
            if question is None:
                return False
            if question in self._awaited:
                self._awaited.remove(question)
            if question not in self._withdrawn:
                return False
            self._withdrawn.remove(question)
            return True

    def see_turn(self, messages: Sequence[Any], read: ReadLines, question: Turn | None) -> TranscriptView:
        """The transcript at the end of the exchange that began with this question."""
        with self._lock:
            self._last_turn = None
            is_cut = self._before is not None or self._unseen or self._is_summarised
            if not is_cut and self._reading.continues(messages):
                known = len(self._reading.exchanges)
                self._reading.extend(messages, read, self._session_id)
                self._match_live(self._reading.exchanges[known:], question)
                return TranscriptView(self._reading.words())
            return self._replace(_Reading.of(messages, read, self._session_id), question, is_turn=True)

    def see_transcript(self, messages: Sequence[Any], lines: list[Line]) -> TranscriptView:
        """The transcript at a session boundary.

        The host shows the conversation as it is, or as its last turn left it, before any undo since. The latter says
        nothing new.
        """
        with self._lock:
            reading = _Reading()
            reading.add(lines, self._session_id)
            reading.note_end(messages)
            valid = self._before_the_cut(reading)
            if valid is not None:
                return TranscriptView(reading.words(), valid=valid)
            return self._replace(reading, None, is_turn=False)

    def report(
        self,
        question: Turn | None,
        turns: Sequence[Turn],
        stored: Sequence[NumberedTurn],
        new: Sequence[NumberedTurn],
        *,
        is_shown: bool,
    ) -> None:
        """An exchange is complete. `stored` is how its turns are stored, `new` those stored now; `is_shown` says
        whether the host showed a transcript with it.
        """
        with self._lock:
            if is_shown and self._reading.exchanges:
                self._reading.store(stored, new, self._session_id)
                return
            recent = self._live[-RECENT_EXCHANGES:]
            found = next((each for each in reversed(recent) if not each.stored and each.turns[:1] == [question]), None)
            if found is None:
                found = next((each for each in reversed(recent) if not each.stored), None)
            if found is None:
                found = Exchange()
                self._live.append(found)
            found.turns = list(turns)
            found.is_open = False
            found.stored = [StoredTurn(turn, ordinal, self._session_id, is_sure=True) for turn, ordinal in stored]

    def undo(self) -> list[Exchange]:
        """The host has cut its transcript: return the last exchange, if known; the next transcript shows the rest."""
        with self._lock:
            shown = self._reading.exchanges
            if self._last_turn is None:
                self._last_turn = [*shown, *self._live]
            if self._before is None:
                shown.extend(self._live)
                self._live.clear()
                self._before = list(shown)
            if self._is_summarised:
                # The last exchange may be part of the summary by now.
                return []
            known = self._live or shown
            if known and known[-1].is_user:
                undone = known.pop()
                self._withdrawn += [turn for turn in undone.turns[:1] if turn in self._awaited]
                return [undone]
            if not self._is_known:
                self._unseen += 1
            return []

    def go_on_as(self, session_id: str, *, is_copy: bool) -> None:
        """The conversation goes on under this id, with a summary in place of some turns or as a copy.

        The turns that a copy starts with belong to the session it was copied from.
        """
        with self._lock:
            self._session_id = session_id
            if not is_copy:
                self._is_summarised = True
                self._last_turn = None
                return
            for exchange in (*self._reading.exchanges, *self._live):
                exchange.stored = [each._replace(session_id=None) for each in exchange.stored]

    def _replace(self, reading: _Reading, question: Turn | None, *, is_turn: bool) -> TranscriptView:
        """Go on from this transcript, and find out what was undone since the last one."""
        now = reading.exchanges
        old = self._before if self._before is not None else [*self._reading.exchanges, *self._live]
        remaining = len(self._reading.exchanges) if self._before is not None else len(old)
        previous = now[: self._start_of_new(now, question, is_turn=is_turn)]
        new = now[len(previous) :]
        last = self._last_common(old, previous, reading)
        if last is not None and last >= 0:
            _pair_up(old[: last + 1], previous)
        if self._before is None:
            _pair_begun(old[-1:], new)
        undone: list[Exchange] = []
        if self._before is not None and last is not None:
            still = [each.turns for each in new]
            undone = [each for each in old[last + 1 : remaining] if each.is_user and each.turns not in still]
        lost = None
        if self._unseen and not self._is_known:
            lost = LostTail(self._unseen, _turns_after_notes(previous))
        self._match_live(new, question)
        self._reading = reading
        self._before = None
        self._unseen = 0
        self._is_known = True
        self._is_summarised = False
        return TranscriptView(reading.words(), undone, lost)

    def _before_the_cut(self, reading: _Reading) -> int | None:
        """How many exchanges of a transcript come before the cut that an undo has made since; None if all do."""
        if self._last_turn is None:
            return None
        remaining = len(self._reading.exchanges) + len(self._live)
        shown = reading.exchanges
        if len(shown) == remaining and all(map(_has_begun_as, self._last_turn, shown)):
            # It fits from its start. That its end fits, too, is because the undone words were said before.
            return None
        last = self._last_common(self._last_turn, shown, reading, is_same=_has_begun_as)
        if last is None or last < remaining:
            return None
        return max(0, len(shown) - 1 - last + remaining)

    def _start_of_new(self, now: list[Exchange], question: Turn | None, *, is_turn: bool) -> int:
        """Where in a transcript the exchanges start that began since the last one."""
        begun = [each.turns[0] for each in self._live if each.turns]
        if question is not None and question not in begun:
            begun.append(question)
        end = len(now)
        while end > 0 and now[end - 1].turns and now[end - 1].turns[0] in begun:
            begun.remove(now[end - 1].turns[0])
            end -= 1
        return len(now) - 1 if is_turn and end == len(now) and now else end

    def _match_live(self, shown: list[Exchange], question: Turn | None) -> None:
        """A transcript shows these new exchanges; whatever began after this question is not among them."""
        for known in self._live:
            found = next((each for each in shown if known.stored and each.turns == known.turns), None)
            if found is not None:
                found.stored = known.stored
        begun = [each.turns[:1] for each in self._live]
        if question is not None and self._live:
            position = begun.index([question]) if [question] in begun else begun.index([]) if [] in begun else 0
            del self._live[: position + 1]
        first_turns = [each.turns[:1] for each in shown]
        self._live = [each for each in self._live if each.turns[:1] not in first_turns and not each.stored]

    def _last_common(
        self,
        old: list[Exchange],
        now: list[Exchange],
        reading: _Reading,
        is_same: Callable[[Exchange, Exchange], bool] | None = None,
    ) -> int | None:
        """The index of the last old exchange that a transcript still has; -1 if it has none, None when in doubt.

        All exchanges before it must match too, back to the start or to a summary. Where repeated words allow several
        answers, the latest one undoes the least.
        """
        is_same = is_same or _is_same
        is_whole = self._is_known and self._reading.is_whole and reading.is_whole and not self._is_summarised
        if not now:
            return -1 if is_whole and not any(each.is_note for each in old) else None
        for last in range(len(old) - 1, -1, -1):
            theirs, ours = last, len(now) - 1
            while theirs >= 0 and ours >= 0 and is_same(old[theirs], now[ours]):
                theirs, ours = theirs - 1, ours - 1
            if theirs == last:
                continue
            is_summary = ours >= 0 and now[ours].is_note
            is_start = theirs < 0 and ours < 0 if is_whole else theirs < 0 or ours < 0
            if is_summary or (is_start and not self._is_summarised):
                return last
        return None


class _Reading:
    """A transcript, as far as it was read."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.is_whole = True
        """Whether it was read from its start."""
        self._occurrences: dict[Turn, int] = {}
        self._last: dict[Role, Turn] = {}
        self._count = 0
        self._end: Any = None
        self._has_notes = False

    @classmethod
    def of(cls, messages: Sequence[Any], read: ReadLines, session_id: str) -> _Reading:
        """A transcript seen for the first time: the last messages are read, earlier ones only counted."""
        made = cls()
        start = max(0, len(messages) - READ_MESSAGES)
        if start:
            made.is_whole = False
            for message in messages[:start]:
                if isinstance(message, dict) and isinstance(message.get("content"), str):
                    turn = Turn(message.get("role", ""), message["content"])
                    made._occurrences[turn] = made._occurrences.get(turn, 0) + 1
        made._count = start
        made.extend(messages, read, session_id)
        return made

    def continues(self, messages: Sequence[Any]) -> bool:
        """Whether these messages start with the ones already read."""
        return 0 < self._count <= len(messages) and _end_of(messages[self._count - 1]) == self._end

    def extend(self, messages: Sequence[Any], read: ReadLines, session_id: str) -> None:
        """Read the messages that are new."""
        self.add(read(messages[self._count :]), session_id)
        self.note_end(messages)

    def note_end(self, messages: Sequence[Any]) -> None:
        """All of these messages were read."""
        self._count = len(messages)
        self._end = _end_of(messages[-1]) if messages else None

    def add(self, lines: list[Line], session_id: str) -> None:
        """Append lines to what was read."""
        for line in lines:
            if line.is_user or not self.exchanges:
                self.exchanges.append(Exchange(is_user=line.is_user))
            exchange = self.exchanges[-1]
            if line.is_note:
                exchange.is_note = self._has_notes = True
            if line.turn is None:
                continue
            ordinal = self._occurrences[line.turn] = self._occurrences.get(line.turn, 0) + 1
            self._last[line.turn.role] = line.turn
            exchange.turns.append(line.turn)
            exchange.stored.append(StoredTurn(line.turn, ordinal, session_id, self.is_whole and not self._has_notes))

    def store(self, stored: Sequence[NumberedTurn], new: Sequence[NumberedTurn], session_id: str) -> None:
        """Note how the turns just reported are stored, whatever words the transcript has for them."""
        for numbered in stored:
            turn, ordinal = numbered
            shown = turn if turn in self._occurrences else self._last.get(turn.role, turn)
            recent = self.exchanges[-RECENT_EXCHANGES:]
            exchange = next((each for each in reversed(recent) if shown in each.turns), recent[-1])
            known = next((each for each in exchange.stored if each.turn == shown), None)
            where = session_id if numbered in new or known is None else known.session_id
            exchange.stored = [each for each in exchange.stored if each.turn != shown]
            exchange.stored.append(StoredTurn(turn, ordinal, where, is_sure=True))

    def words(self) -> TranscriptWords:
        """What it shows beside a turn that is being reported."""
        return TranscriptWords(self._occurrences, self._last)


def first_exchanges(lines: Sequence[Line], count: int) -> list[Line]:
    """The lines of a transcript's first exchanges."""
    starts = [place for place, line in enumerate(lines) if line.is_user or place == 0]
    return list(lines[: starts[count]] if count < len(starts) else lines)


def _end_of(message: Any) -> Any:
    return (message.get("role"), message.get("content")) if isinstance(message, Mapping) else None


def _is_same(old: Exchange, now: Exchange) -> bool:
    return not now.is_note and not old.is_note and old.turns == now.turns


def _has_begun_as(old: Exchange, now: Exchange) -> bool:
    """Whether an exchange may be the old one, of which perhaps only the question was known."""
    if not old.is_open or not old.turns:
        return _is_same(old, now)
    return not now.is_note and old.turns == now.turns[: len(old.turns)]


def _pair_up(old: list[Exchange], now: list[Exchange]) -> None:
    """Carry over what is known of old exchanges to the same exchanges of a new transcript."""
    for known, shown in zip(reversed(old), reversed(now), strict=False):
        if not _is_same(known, shown):
            return
        shown.stored = known.stored


def _pair_begun(old: list[Exchange], new: list[Exchange]) -> None:
    """Carry over what is known of an exchange that was still under way when the old transcript was seen."""
    for known in old:
        count = len(known.turns)
        for shown in new:
            if count and known.turns == shown.turns[:count] and len(known.stored) == count:
                shown.stored[:count] = known.stored


def _turns_after_notes(exchanges: list[Exchange]) -> tuple[StoredTurn, ...]:
    """The turns at the end of a transcript that no summary follows."""
    found: list[StoredTurn] = []
    for exchange in exchanges:
        if exchange.is_note:
            found.clear()
        else:
            found.extend(exchange.stored)
    return tuple(found)
