"""What each session has reported and been shown: bounded, in memory, shared by all providers of the process.

The database is what guarantees that a turn is stored once; this book keeps the common cases from getting that far, and
knows what only the process can know: that a transcript's turn was already reported in other words, which turns were
taken back, and which memories a session has been shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from hermes_memory_pgvector.capture.transcript import Said, with_ordinals
from hermes_memory_pgvector.values import Role

TurnId = tuple[str, int]
"""(digest, ordinal) of a turn within its session, as the database knows it."""
Numbered = tuple[Said, int]
"""Words, and which saying of them in the session it is."""
Spoken = OrderedDict[tuple[str, str], int]
"""How often one provider has reported words, by session and digest."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MAX_SESSIONS = 2000
MAX_TURNS = 5000
MAX_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class Wording:
    """What a transcript shows beside a turn that is being reported."""

    sayings: Mapping[Said, int]
    """How often each turn stands in it."""
    last: Mapping[Role, Said]
    """The last words of each role."""


@dataclass(slots=True)
class Ledger:
    """One session's book."""

    turns: dict[TurnId, int] = field(default_factory=dict)
    """When each was reported, in microseconds."""
    unheard: set[TurnId] = field(default_factory=set)
    """Those that only a transcript has told of."""
    earlier: set[TurnId] = field(default_factory=set)
    """Those from before the session was last continued: their words, said again, are no echo."""
    undone: set[TurnId] = field(default_factory=set)
    """Those taken back: a stale transcript does not bring them again, saying them again does."""
    aliases: OrderedDict[TurnId, TurnId] = field(default_factory=OrderedDict)
    """The transcript's own wording of turns that were reported in other words."""
    shown: OrderedDict[str, None] = field(default_factory=OrderedDict)


class Sessions:
    """The books of all sessions, by theme and session id."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ledgers: OrderedDict[tuple[str, str], Ledger] = OrderedDict()

    def begin(self, key: tuple[str, str], asked: Said | None) -> None:
        """A turn starts: whoever says again what was taken back means it."""
        with self._lock:
            ledger = self._ledgers.get(key)
            if ledger is None or not ledger.undone or asked is None:
                return
            digest = asked.digest
            for turn in [each for each in ledger.undone if each[0] == digest]:
                _forget(ledger, turn)

    def announce(
        self,
        key: tuple[str, str],
        exchange: Sequence[Said],
        wording: Wording | None,
        *,
        now_us: int,
        window_us: int,
        spoken_before: Spoken,
    ) -> tuple[list[Numbered], list[Numbered]]:
        """A turn was just said: what of it is new, and all of it as it is stored.

        `spoken_before` counts what this provider has reported itself, for hosts that give no transcript.
        """
        new: list[Numbered] = []
        told: list[Numbered] = []
        with self._lock:
            ledger = self._ledger(key)
            for said in exchange:
                digest = said.digest
                ordinal = spoken_before.get((key[1], digest), 0) + 1
                _remember(spoken_before, (key[1], digest), ordinal, MAX_TURNS)
                alias = None
                if wording is not None:
                    ordinal = wording.sayings.get(said, 1)
                    shown = None if said in wording.sayings else wording.last.get(said.role)
                    if shown is not None:
                        alias = (shown.digest, wording.sayings[shown])
                        if alias in ledger.unheard:
                            # A transcript was read first and had this turn in the host's wording.
                            ledger.unheard.remove(alias)
                            told.append((shown, alias[1]))
                            continue
                ordinal, is_new = _place(ledger, (digest, ordinal), now_us, window_us)
                told.append((said, ordinal))
                if alias is not None:
                    _remember(ledger.aliases, alias, (digest, ordinal), MAX_TURNS)
                if is_new:
                    _note(ledger, (digest, ordinal), now_us)
                    new.append((said, ordinal))
        return new, told

    def read_transcript(self, key: tuple[str, str], transcript: Iterable[Said], *, now_us: int) -> list[Numbered]:
        """A whole transcript was seen: what of it nobody has reported yet."""
        with self._lock:
            ledger = self._ledger(key)
            new = []
            for said, ordinal in with_ordinals(transcript):
                turn = (said.digest, ordinal)
                if turn in ledger.turns or turn in ledger.aliases:
                    continue
                _note(ledger, turn, now_us)
                ledger.unheard.add(turn)
                new.append((said, ordinal))
            return new

    def knows_any(self, key: tuple[str, str], transcript: Sequence[Said]) -> bool:
        """Whether a session has reported any turn of a transcript."""
        with self._lock:
            known = self._ledgers.get(key)
            if known is None:
                return False
            turns = ((said.digest, ordinal) for said, ordinal in with_ordinals(transcript))
            return any(turn in known.turns or turn in known.aliases for turn in turns)

    def continue_as(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """A session goes on under another id: its turns are known there, and none of them is told again."""
        with self._lock:
            source, target = self._ledger(old), self._ledger(new)
            if old != new:
                target.unheard |= source.unheard.difference(target.turns)
                target.undone |= source.undone.difference(target.turns)
                for turn, at_us in source.turns.items():
                    target.turns.setdefault(turn, at_us)
                for alias, stored in source.aliases.items():
                    target.aliases.setdefault(alias, stored)
            target.earlier = set(target.turns)
            target.shown.clear()

    def take_back(self, key: tuple[str, str], turns: Iterable[TurnId]) -> tuple[list[TurnId], int]:
        """These turns were undone: as they are stored, and when the last of them was reported."""
        with self._lock:
            ledger = self._ledger(key)
            ledger.shown.clear()
            found = []
            at_us = 0
            for turn in turns:
                stored = ledger.aliases.get(turn, turn)
                at_us = max(at_us, ledger.turns.get(stored, 0))
                ledger.turns.setdefault(stored, 0)
                ledger.undone.add(stored)
                ledger.unheard.discard(stored)
                found.append(stored)
            return found, at_us

    def not_shown(self, key: tuple[str, str], names: Sequence[str]) -> set[str]:
        """Which of these a session has not been shown yet."""
        with self._lock:
            shown = self._ledger(key).shown
            return {name for name in names if name not in shown}

    def note_shown(self, key: tuple[str, str], names: Iterable[str]) -> None:
        """These have now been shown to the session."""
        with self._lock:
            ledger = self._ledger(key)
            for name in names:
                _remember(ledger.shown, name, None, MAX_SHOWN)

    def forget_shown(self, key: tuple[str, str]) -> None:
        """The session's context was cut: what it was shown may be gone from it."""
        with self._lock:
            self._ledger(key).shown.clear()

    def _ledger(self, key: tuple[str, str]) -> Ledger:
        ledger = self._ledgers.get(key)
        if ledger is None:
            ledger = self._ledgers[key] = Ledger()
            if len(self._ledgers) > MAX_SESSIONS:
                self._ledgers.popitem(last=False)
        else:
            self._ledgers.move_to_end(key)
        return ledger


def _place(ledger: Ledger, turn: TurnId, now_us: int, window_us: int) -> tuple[int, bool]:
    """Which saying of its words a turn is, and whether it is new; otherwise it is the echo of a report."""
    digest, ordinal = turn
    if turn not in ledger.turns or turn in ledger.undone:
        return ordinal, True
    if turn in ledger.unheard:
        ledger.unheard.remove(turn)
        return ordinal, False
    if turn not in ledger.earlier and now_us - ledger.turns[turn] <= window_us:
        return ordinal, False
    return next(again for again in count(ordinal + 1) if (digest, again) not in ledger.turns), True


def _note(ledger: Ledger, turn: TurnId, now_us: int) -> None:
    ledger.undone.discard(turn)
    ledger.earlier.discard(turn)
    ledger.turns[turn] = now_us
    if len(ledger.turns) > MAX_TURNS:
        _forget(ledger, next(iter(ledger.turns)))


def _forget(ledger: Ledger, turn: TurnId) -> None:
    ledger.turns.pop(turn, None)
    for book in (ledger.unheard, ledger.earlier, ledger.undone):
        book.discard(turn)


def _remember(book: OrderedDict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    if key in book:
        book.move_to_end(key)
    book[key] = value
    if len(book) > most:
        book.popitem(last=False)
