"""The conversation of one agent, cut into exchanges as the host's /undo cuts it. Pure: no clock, no files, no database.

The host says that it has taken something back, never what: it cuts its transcript at a message of the user and goes on.
What went is worked out here, from the transcript as it was before and as the next hook shows it. Whatever is absent for
another reason (a summary took its place, the session was resumed, the transcript is of another time) was not undone, so
only a cut that is certain takes anything back, and it names each turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hermes_memory_pgvector.capture.session_ledger import Numbered, Wording
from hermes_memory_pgvector.capture.transcript import Line, Said
from hermes_memory_pgvector.values import Role

READ_MESSAGES = 400
"""How many of a transcript's last messages are read when it is first seen; further ones as they come."""
RECENT_EXCHANGES = 8
"""How many turns may be under way at once, as far as an undo is concerned."""

ReadLines = Callable[[Sequence[Any]], list[Line]]


class Turn(NamedTuple):
    """A turn that may be stored."""

    said: Said
    ordinal: int
    session_id: str | None
    """The session it is stored under; None when it is not this conversation's to take back."""
    is_sure: bool
    """Whether the ordinal is that of the database; behind a summary nobody knows how often the words were said."""


@dataclass(slots=True)
class Exchange:
    """A message of the user and what followed it."""

    words: list[Said] = field(default_factory=list)
    """As the transcript has them, or as reported while no transcript has shown them."""
    turns: list[Turn] = field(default_factory=list)
    is_user: bool = True
    """Whether it begins with a message of the user, so that an undo can take it back."""
    is_note: bool = False
    """Whether the host's summary of earlier turns stands in it."""


@dataclass(frozen=True, slots=True)
class LostTail:
    """So many exchanges were taken back before this process had seen them; these are the turns that remain."""

    exchanges: int
    kept: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a transcript has shown: its wording, and what turns out to have been taken back."""

    wording: Wording
    undone: list[Exchange] = field(default_factory=list)
    lost: LostTail | None = None


class Exchanges:
    """What one provider knows of its agent's conversation."""

    def __init__(self, session_id: str = "", since_us: int = 0, *, is_new: bool = False) -> None:
        self._lock = threading.Lock()
        self._session_id = session_id
        self.since_us = since_us
        """When the provider took up this session: whatever it has not seen was said before."""
        self._is_known = is_new
        """Whether a transcript was seen, or there can be none yet."""
        self._reading = _Reading()
        self._live: list[Exchange] = []
        """Exchanges begun or reported since the last transcript."""
        self._before: list[Exchange] | None = None
        """The conversation as it was before the first undo since the last transcript."""
        self._unseen = 0
        """How often something was taken back that nobody had seen."""
        self._is_summarised = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet, as far as is known."""
        with self._lock:
            return not self._live and not self._reading.exchanges

    def begin(self, asked: Said | None) -> None:
        """A turn starts; the host may never report its end, because the user interrupts it."""
        with self._lock:
            self._live.append(Exchange([] if asked is None else [asked]))

    def see_turn(self, messages: Sequence[Any], read: ReadLines, asked: Said | None) -> Shown:
        """The transcript at the end of a turn that was asked with these words."""
        with self._lock:
            is_cut = self._before is not None or self._unseen or self._is_summarised
            if not is_cut and self._reading.continues(messages):
                known = len(self._reading.exchanges)
                self._reading.extend(messages, read, self._session_id)
                self._settle_live(self._reading.exchanges[known:], asked)
                return Shown(self._reading.wording())
            return self._replace(_Reading.of(messages, read, self._session_id), asked, is_turn=True)

    def see_transcript(self, messages: Sequence[Any], lines: list[Line]) -> Shown:
        """The transcript at some boundary. The host may show one from before an undo: that one says nothing."""
        with self._lock:
            reading = _Reading()
            reading.take(lines, self._session_id)
            reading.note_end(messages)
            return self._replace(reading, None, is_turn=False)

    def report(
        self,
        asked: Said | None,
        words: Sequence[Said],
        told: Sequence[Numbered],
        new: Sequence[Numbered],
        *,
        is_shown: bool,
    ) -> None:
        """A turn is complete and stored as `told`, some of it `new`; `is_shown` when a transcript was seen with it."""
        with self._lock:
            if is_shown and self._reading.exchanges:
                self._reading.store(told, new, self._session_id)
                return
            recent = self._live[-RECENT_EXCHANGES:]
            found = next((each for each in reversed(recent) if not each.turns and each.words[:1] == [asked]), None)
            if found is None:
                found = next((each for each in reversed(recent) if not each.turns), None)
            if found is None:
                found = Exchange()
                self._live.append(found)
            found.words = list(words)
            found.turns = [Turn(said, ordinal, self._session_id, is_sure=True) for said, ordinal in told]

    def undo(self) -> list[Exchange]:
        """The host has cut its transcript: the last exchange, if it is known; the next transcript shows the rest."""
        with self._lock:
            shown = self._reading.exchanges
            if self._before is None:
                shown.extend(self._live)
                self._live.clear()
                self._before = list(shown)
            if self._is_summarised:
                # The last exchange may be part of the summary by now.
                return []
            if self._live:
                return [self._live.pop()]
            if shown and shown[-1].is_user:
                return [shown.pop()]
            if not self._is_known:
                self._unseen += 1
            return []

    def go_on_as(self, session_id: str, *, is_copy: bool) -> None:
        """The conversation goes on under this id: with a summary in place of some turns, or as a copy of itself.

        What a copy has so far belongs to the session that it was copied from.
        """
        with self._lock:
            self._session_id = session_id
            if not is_copy:
                self._is_summarised = True
                return
            for exchange in (*self._reading.exchanges, *self._live):
                exchange.turns = [turn._replace(session_id=None) for turn in exchange.turns]

    def _replace(self, reading: _Reading, asked: Said | None, *, is_turn: bool) -> Shown:
        """Go on from this transcript, and find out what was taken back since the last one."""
        now = reading.exchanges
        old = self._before if self._before is not None else [*self._reading.exchanges, *self._live]
        remaining = len(self._reading.exchanges) if self._before is not None else len(old)
        previous = now[: self._begin_of_new(now, asked, is_turn=is_turn)]
        new = now[len(previous) :]
        last = self._last_common(old, previous, reading)
        if self._before is not None and not is_turn and last is not None and last >= remaining:
            return Shown(reading.wording())
        if last is not None and last >= 0:
            _pair_up(old[: last + 1], previous)
        if self._before is None:
            _pair_begun(old[-1:], new)
        undone: list[Exchange] = []
        if self._before is not None and last is not None:
            still = [each.words for each in new]
            undone = [each for each in old[last + 1 : remaining] if each.is_user and each.words not in still]
        lost = None
        if self._unseen and not self._is_known:
            lost = LostTail(self._unseen, _turns_after_notes(previous))
        self._settle_live(new, asked)
        self._reading = reading
        self._before = None
        self._unseen = 0
        self._is_known = True
        self._is_summarised = False
        return Shown(reading.wording(), undone, lost)

    def _begin_of_new(self, now: list[Exchange], asked: Said | None, *, is_turn: bool) -> int:
        """How many exchanges of a transcript were there before those that began since the last one."""
        begun = [each.words[0] for each in self._live if each.words]
        if asked is not None and asked not in begun:
            begun.append(asked)
        end = len(now)
        while end > 0 and now[end - 1].words and now[end - 1].words[0] in begun:
            begun.remove(now[end - 1].words[0])
            end -= 1
        return len(now) - 1 if is_turn and end == len(now) and now else end

    def _settle_live(self, shown: list[Exchange], asked: Said | None) -> None:
        """A transcript shows these new exchanges; a turn begun after the one that was asked so is not among them."""
        for known in self._live:
            found = next((each for each in shown if known.turns and each.words == known.words), None)
            if found is not None:
                found.turns = known.turns
        begun = [each.words[:1] for each in self._live]
        if asked is not None and self._live:
            place = begun.index([asked]) if [asked] in begun else begun.index([]) if [] in begun else 0
            del self._live[: place + 1]
        first_words = [each.words[:1] for each in shown]
        self._live = [each for each in self._live if each.words[:1] not in first_words and not each.turns]

    def _last_common(self, old: list[Exchange], now: list[Exchange], reading: _Reading) -> int | None:
        """Which of the old exchanges is the last that a transcript still has; -1 for none of them, None when in doubt.

        The exchanges before it must be the same as well, back to the start or to a summary. Where repeated words allow
        several answers, the latest takes back the least.
        """
        is_whole = self._is_known and self._reading.is_whole and reading.is_whole and not self._is_summarised
        if not now:
            return -1 if is_whole and not any(each.is_note for each in old) else None
        for last in range(len(old) - 1, -1, -1):
            theirs, ours = last, len(now) - 1
            while theirs >= 0 and ours >= 0 and _is_same(old[theirs], now[ours]):
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
        self._sayings: dict[Said, int] = {}
        self._last: dict[Role, Said] = {}
        self._count = 0
        self._end: Any = None
        self._has_notes = False

    @classmethod
    def of(cls, messages: Sequence[Any], read: ReadLines, session_id: str) -> _Reading:
        """A transcript seen for the first time: its last messages; of those before, only the words are counted."""
        made = cls()
        start = max(0, len(messages) - READ_MESSAGES)
        if start:
            made.is_whole = False
            for message in messages[:start]:
                if isinstance(message, dict) and isinstance(message.get("content"), str):
                    words = Said(message.get("role", ""), message["content"])
                    made._sayings[words] = made._sayings.get(words, 0) + 1
        made._count = start
        made.extend(messages, read, session_id)
        return made

    def continues(self, messages: Sequence[Any]) -> bool:
        """Whether these messages are those already read, and more."""
        return 0 < self._count <= len(messages) and _end_of(messages[self._count - 1]) == self._end

    def extend(self, messages: Sequence[Any], read: ReadLines, session_id: str) -> None:
        """Read the messages that are new."""
        self.take(read(messages[self._count :]), session_id)
        self.note_end(messages)

    def note_end(self, messages: Sequence[Any]) -> None:
        """All of these messages were read."""
        self._count = len(messages)
        self._end = _end_of(messages[-1]) if messages else None

    def take(self, lines: list[Line], session_id: str) -> None:
        """Read lines."""
        for line in lines:
            if line.is_user or not self.exchanges:
                self.exchanges.append(Exchange(is_user=line.is_user))
            exchange = self.exchanges[-1]
            if line.is_note:
                exchange.is_note = self._has_notes = True
            if line.said is None:
                continue
            ordinal = self._sayings[line.said] = self._sayings.get(line.said, 0) + 1
            self._last[line.said.role] = line.said
            exchange.words.append(line.said)
            exchange.turns.append(Turn(line.said, ordinal, session_id, self.is_whole and not self._has_notes))

    def store(self, told: Sequence[Numbered], new: Sequence[Numbered], session_id: str) -> None:
        """The turns just reported are stored like this, whatever words the transcript has for them."""
        for turn in told:
            said, ordinal = turn
            shown = said if said in self._sayings else self._last.get(said.role, said)
            recent = self.exchanges[-RECENT_EXCHANGES:]
            exchange = next((each for each in reversed(recent) if shown in each.words), recent[-1])
            known = next((each for each in exchange.turns if each.said == shown), None)
            where = session_id if turn in new or known is None else known.session_id
            exchange.turns = [each for each in exchange.turns if each.said != shown]
            exchange.turns.append(Turn(said, ordinal, where, is_sure=True))

    def wording(self) -> Wording:
        """What it shows beside a turn."""
        return Wording(self._sayings, self._last)


def _end_of(message: Any) -> Any:
    return (message.get("role"), message.get("content")) if isinstance(message, Mapping) else None


def _is_same(old: Exchange, now: Exchange) -> bool:
    return not now.is_note and not old.is_note and old.words == now.words


def _pair_up(old: list[Exchange], now: list[Exchange]) -> None:
    """What is known of the old exchanges holds for the same ones of the new transcript."""
    for known, shown in zip(reversed(old), reversed(now), strict=False):
        if not _is_same(known, shown):
            return
        shown.turns = known.turns


def _pair_begun(old: list[Exchange], new: list[Exchange]) -> None:
    """What is known of a turn that was under way when the old transcript was seen holds for it now that it is over."""
    for known in old:
        count = len(known.words)
        for shown in new:
            if count and known.words == shown.words[:count] and len(known.turns) == count:
                shown.turns[:count] = known.turns


def _turns_after_notes(exchanges: list[Exchange]) -> tuple[Turn, ...]:
    """The turns at the end of a transcript that no summary follows."""
    found: list[Turn] = []
    for exchange in exchanges:
        if exchange.is_note:
            found.clear()
        else:
            found.extend(exchange.turns)
    return tuple(found)
