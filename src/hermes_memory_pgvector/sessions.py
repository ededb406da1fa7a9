"""What each session has already told us and been told: bounded, in memory, shared by all providers of the process.

The database is what guarantees that a turn is stored once; this book keeps the common cases from getting that far, and
knows what only the process can know: that a transcript's turn was already announced in other words, which exchange an
undo takes back, and which memories a session has been shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TypeVar

from hermes_memory_pgvector.capture import Said, with_ordinals

TurnId = tuple[str, int]
"""(digest, ordinal) of a turn within its session, as the database knows it."""
TurnKey = int
"""The same for this process alone: hashing words for a dictionary takes a tenth of what a digest takes."""
Numbered = tuple[Said, int]
"""Words, and which saying of them in the session it is."""
Spoken = OrderedDict[int, int]
"""How often one provider has reported words, by the hash of them and their session."""
_Told = tuple[TurnKey, Said, int]
"""A turn of an exchange: its key, its words, its ordinal."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MAX_SESSIONS = 2000
MAX_TURNS = 5000
MAX_EXCHANGES = 500
MAX_SHOWN = 1000
MAX_UNSETTLED = 1000
RECENT_EXCHANGES = 8
"""So many turns may be under way at once, as far as an undo is concerned."""


@dataclass(slots=True)
class _Exchange:
    """One turn of the conversation, from its start; what an undo takes back."""

    asked: str
    """The words it was started with, while nobody has reported its end."""
    is_open: bool
    told: tuple[_Told, ...] | str = ()
    """What was told; once settled, key, digest and ordinal of each turn as text. It is kept for long, and by thousands:
    one string is small, and nothing that the garbage collector would look at in the middle of a hook."""

    def turns(self) -> list[tuple[TurnKey, TurnId]]:
        """Its turns, as the ledger and as the database knows them."""
        told = self.told
        if isinstance(told, str):
            return [(int(key), (digest, int(n))) for key, digest, n in (line.split() for line in told.splitlines())]
        return [(turn_key, (said.digest, ordinal)) for turn_key, said, ordinal in told]

    def turn_keys(self) -> list[TurnKey]:
        """Its turns as the ledger knows them."""
        told = self.told
        return [turn_key for turn_key, _ in self.turns()] if isinstance(told, str) else [each[0] for each in told]

    def settle(self) -> None:
        """Keep digests instead of words."""
        self.told = "\n".join(f"{turn_key} {digest} {ordinal}" for turn_key, (digest, ordinal) in self.turns())


@dataclass(slots=True)
class Ledger:
    """One session's book."""

    turns: dict[TurnKey, int] = field(default_factory=dict)
    """When each was reported, in microseconds."""
    unheard: set[TurnKey] = field(default_factory=set)
    """Those that only a transcript has told of."""
    earlier: set[TurnKey] = field(default_factory=set)
    """Those from before the session was last continued: their words, said again, are no echo."""
    aliases: OrderedDict[TurnKey, None] = field(default_factory=OrderedDict)
    exchanges: deque[_Exchange] = field(default_factory=lambda: deque(maxlen=MAX_EXCHANGES))
    shown: OrderedDict[str, None] = field(default_factory=OrderedDict)
    is_rewound: bool = False


class Sessions:
    """The books of all sessions, by theme and session id."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ledgers: OrderedDict[tuple[str, str], Ledger] = OrderedDict()
        self._unsettled: deque[_Exchange] = deque(maxlen=MAX_UNSETTLED)

    def begin(self, key: tuple[str, str], asked: str) -> None:
        """A turn starts; the host may never report its end, because the user interrupts it."""
        with self._lock:
            self._ledger(key).exchanges.append(_Exchange(asked, is_open=True))

    def announce(
        self,
        key: tuple[str, str],
        exchange: Sequence[Said],
        transcript: Sequence[Said] | None,
        *,
        now_us: int,
        window_us: int,
        spoken_before: Spoken,
        asked: str = "",
    ) -> list[Numbered]:
        """A turn was just said: what of it is new, with ordinals.

        `exchange` may be empty: an undo can mean a turn that was not worth keeping. `spoken_before` counts what this
        provider has reported itself, for hosts that give no transcript.
        """
        with self._lock:
            ledger = self._ledger(key)
            turns = ledger.turns
            new: list[Numbered] = []
            told: list[_Told] = []
            for said in exchange:
                name = hash((key[1], said))
                ordinal = spoken_before[name] = spoken_before.get(name, 0) + 1
                if len(spoken_before) > MAX_TURNS:
                    spoken_before.popitem(last=False)
                if transcript is not None:
                    ordinal = max(1, sum(1 for other in transcript if other == said))
                    alias = _alias(said, transcript)
                    if alias is not None:
                        turn_key = hash(alias)
                        if turn_key in ledger.unheard:
                            # A transcript was read first and had this turn in the host's wording.
                            ledger.unheard.remove(turn_key)
                            told.append((turn_key, *alias))
                            continue
                        _remember(ledger.aliases, turn_key, None, MAX_TURNS)
                turn_key = hash((said, ordinal))
                is_new = True
                if turn_key in turns:
                    ordinal, is_new = _place(ledger, (said, ordinal), now_us, window_us)
                    turn_key = hash((said, ordinal))
                told.append((turn_key, said, ordinal))
                if is_new:
                    _note(ledger, turn_key, now_us)
                    new.append((said, ordinal))
            self._close(ledger.exchanges, asked, tuple(told), is_new=bool(new))
            return new

    def settle(self) -> None:
        """Digest what was told since the last call, so that its words need not be kept; for a thread of ours."""
        with suppress(IndexError):
            while True:
                self._unsettled.popleft().settle()

    def read_transcript(self, key: tuple[str, str], transcript: Iterable[Said], *, now_us: int) -> list[Numbered]:
        """A whole transcript was seen: what of it nobody has reported yet."""
        with self._lock:
            ledger = self._ledger(key)
            new = []
            for turn in with_ordinals(transcript):
                turn_key = hash(turn)
                if turn_key in ledger.turns or turn_key in ledger.aliases:
                    continue
                _note(ledger, turn_key, now_us)
                ledger.unheard.add(turn_key)
                new.append(turn)
            return new

    def belongs_elsewhere(self, key: tuple[str, str], left: tuple[str, str] | None, transcript: Sequence[Said]) -> bool:
        """Whether a transcript is that of the session just left: a new session without a turn cannot have one."""
        with self._lock:
            if left is None or left == key or not transcript or self._ledger(key).exchanges:
                return False
            known = self._ledgers.get(left)
            return known is not None and all(
                hash(turn) in known.turns or hash(turn) in known.aliases for turn in with_ordinals(transcript)
            )

    def continue_as(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """A session goes on under another id: its turns are known there, and none of them is told again."""
        with self._lock:
            source, target = self._ledger(old), self._ledger(new)
            if old != new:
                target.unheard |= source.unheard.difference(target.turns)
                for turn_key, at_us in source.turns.items():
                    target.turns.setdefault(turn_key, at_us)
                for alias in source.aliases:
                    target.aliases.setdefault(alias, None)
            target.earlier = set(target.turns)
            target.shown.clear()

    def undo(self, key: tuple[str, str]) -> tuple[tuple[TurnId, ...], int]:
        """The last exchange was taken back: its turns, as far as this process has reported them, and when it did."""
        with self._lock:
            ledger = self._ledger(key)
            ledger.is_rewound = True
            ledger.shown.clear()
            if not ledger.exchanges:
                return (), 0
            undone = ledger.exchanges.pop()
            at_us = 0
            for turn_key in undone.turn_keys():
                at_us = max(at_us, ledger.turns.get(turn_key, 0))
                _forget(ledger, turn_key)
                ledger.aliases.pop(turn_key, None)
            return tuple(turn_id for _, turn_id in undone.turns()), at_us

    def take_rewound(self, key: tuple[str, str]) -> bool:
        """Whether an undo has happened since the last transcript; asks once."""
        with self._lock:
            ledger = self._ledger(key)
            was, ledger.is_rewound = ledger.is_rewound, False
            return was

    def keep_only(self, key: tuple[str, str], kept: Sequence[Said]) -> list[TurnId]:
        """After an undo the transcript ends with `kept`: forget exchanges after it and return what is still there."""
        with self._lock:
            ledger = self._ledger(key)
            still = with_ordinals(kept)
            remaining = {hash(turn) for turn in still}
            while ledger.exchanges and remaining.isdisjoint(ledger.exchanges[-1].turn_keys()):
                for turn_key in ledger.exchanges.pop().turn_keys():
                    _forget(ledger, turn_key)
            return [(said.digest, ordinal) for said, ordinal in still]

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

    def _close(self, exchanges: deque[_Exchange], asked: str, told: tuple[_Told, ...], *, is_new: bool) -> None:
        """Note the turns of an exchange that has ended: the one that was started with these words, else the last."""
        if exchanges and exchanges[-1].is_open:
            recent = islice(reversed(exchanges), RECENT_EXCHANGES)
            found = next((each for each in recent if each.is_open and each.asked == asked), exchanges[-1])
            found.is_open, found.told = False, told
        else:
            found = _Exchange(asked, False, told)
            if not is_new and exchanges and exchanges[-1].turn_keys() == found.turn_keys():
                return
            exchanges.append(found)
        self._unsettled.append(found)

    def _ledger(self, key: tuple[str, str]) -> Ledger:
        ledger = self._ledgers.get(key)
        if ledger is None:
            ledger = self._ledgers[key] = Ledger()
            if len(self._ledgers) > MAX_SESSIONS:
                self._ledgers.popitem(last=False)
        else:
            self._ledgers.move_to_end(key)
        return ledger


def _place(ledger: Ledger, turn: Numbered, now_us: int, window_us: int) -> tuple[int, bool]:
    """Whether words that are known were said once more, and as which saying; otherwise they are a report's echo."""
    said, ordinal = turn
    turn_key = hash(turn)
    if turn_key in ledger.unheard:
        ledger.unheard.remove(turn_key)
        return ordinal, False
    if turn_key not in ledger.earlier and now_us - ledger.turns[turn_key] <= window_us:
        return ordinal, False
    return next(again for again in count(ordinal + 1) if hash((said, again)) not in ledger.turns), True


def _note(ledger: Ledger, turn_key: TurnKey, now_us: int) -> None:
    ledger.turns[turn_key] = now_us
    if len(ledger.turns) > MAX_TURNS:
        _forget(ledger, next(iter(ledger.turns)))


def _forget(ledger: Ledger, turn_key: TurnKey) -> None:
    ledger.turns.pop(turn_key, None)
    ledger.unheard.discard(turn_key)
    ledger.earlier.discard(turn_key)


def _alias(said: Said, transcript: Sequence[Said]) -> Numbered | None:
    """The transcript's own wording of a turn that was announced in other words."""
    if said in transcript:
        return None
    numbered = [turn for turn in with_ordinals(transcript) if turn[0].role == said.role]
    return numbered[-1] if numbered else None


def _remember(book: OrderedDict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    if key in book:
        book.move_to_end(key)
    book[key] = value
    if len(book) > most:
        book.popitem(last=False)
