"""What the journal had to refuse, and its recovery: a queue that is appended in its own order when there is room again.

The queue is in memory and bounded. Turns beyond the bound, and long ones of a process that has died, are known by the
digest of their words, which are then found in the host's own session store. Within a session nothing passes an undo,
and an undo passes nothing that it may take back.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_memory_pgvector.capture import host_store
from hermes_memory_pgvector.capture.host_store import CleanUser, HostStoreUnreadable
from hermes_memory_pgvector.capture.refusal_notes import FOLDER_NAME, Notes
from hermes_memory_pgvector.errors import JournalError, MemoryPluginError
from hermes_memory_pgvector.journal import Urgency, codec
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.values import AddTurn, ForgetTurns, MemoryOperation, RecordDelegation, WriteItem

logger = logging.getLogger(__name__)

MAX_CHARS = 32 * 1024 * 1024
"""How much text may wait in memory; an item counts as ITEM_CHARS more than its words."""
TURNS_SHARE = 0.75
"""Turns can be read back from the host, memory operations cannot: the last quarter is theirs."""
ITEM_CHARS = 512
MAX_ENTRIES = 100_000
NOTED_CHARS = 1024
"""A turn up to this length is noted with its words, a longer one by its digest."""
READ_AT_ONCE = 256
HOOK_ENTRIES = 16
MAX_FAILURES = 64
GIVE_UP_SECONDS = 3600.0
"""The host may write a turn late, for its disk was full as well; after this it is not expected any more."""
LEFT_SECONDS = 30.0
RESERVE_SECONDS = 1.0

_SessionKey = tuple[str, str]
Append = Callable[[Sequence[WriteItem], Urgency], None]


@dataclass(frozen=True, slots=True)
class RefusalStatus:
    """What an operator sees: counts of turns, memory operations and the like."""

    turns: int
    memories: int
    waiting: int
    recovered: int
    overflowed: int
    """For the words of these there was no room here; they are looked for in the host's store."""
    lost: int
    problem: str
    """What keeps the waiting from being recovered, when it is not the journal."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """Items that were refused together, and are appended together."""

    items: tuple[WriteItem, ...]
    urgency: Urgency
    digests: tuple[str, ...]
    """For each item the digest of its words where they are not kept here, else nothing."""
    note: tuple[Notes, int] | None

    @property
    def chars(self) -> int:
        """What it counts against the bound."""
        return sum(_chars(item) for item in self.items)

    @property
    def sessions(self) -> set[_SessionKey]:
        """The sessions it belongs to."""
        return _sessions(self.items)

    @property
    def is_undo(self) -> bool:
        """Whether it takes something back."""
        return any(map(_is_undo, self.items))

    @property
    def is_whole(self) -> bool:
        """Whether all words are here."""
        return not any(self.digests)


class Refusals:
    """The queue of what was refused; shared by the engines that follow each other on a home."""

    def __init__(self, home: Path, folder: Path, *, max_chars: int) -> None:
        self.clean_user: CleanUser | None = None
        """Recovers what a user typed from what the host made of it."""
        self.turns = 0
        self.memories = 0
        self.recovered = 0
        self.overflowed = 0
        self.lost = 0
        self.problem = ""
        self._home = home
        self._folder = folder / FOLDER_NAME
        self._max_chars = max_chars
        self._lock = threading.RLock()
        self._draining = threading.Lock()
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._next = 0
        self._held: Counter[_SessionKey] = Counter()
        self._undos: Counter[_SessionKey] = Counter()
        self._chars = 0
        self._is_refusing = False
        self._since_told = 0
        self._has_told_problem = False
        self._foreign: set[str] = set()
        self._notes: Notes | None = None
        self._looked_at = float("-inf")
        self._reserve_at = float("-inf")

    @property
    def waits(self) -> bool:
        """Whether anything is to be recovered."""
        return bool(self._entries)

    def status(self) -> RefusalStatus:
        """A snapshot for status and doctor."""
        with self._lock:
            waiting = sum(len(entry.items) for entry in self._entries.values())
        return RefusalStatus(
            self.turns, self.memories, waiting, self.recovered, self.overflowed, self.lost, self.problem
        )

    def note(self, items: Sequence[WriteItem], urgency: Urgency, *, is_refusal: bool = True) -> bool:
        """These wait from now on; True when it is a refusal, and the first since writes were last taken."""
        with self._lock:
            first = is_refusal and not self._is_refusing
            self._is_refusing = self._is_refusing or is_refusal
            for part in codec.portions(items):
                self.turns += sum(isinstance(item, AddTurn) for item in part)
                self.memories += sum(isinstance(item, MemoryOperation) for item in part)
                self._add(part, urgency)
            return first

    def holds_back(self, items: Sequence[WriteItem]) -> bool:
        """Whether these must wait for what is waiting of their session."""
        with self._lock:
            ahead = self._held if any(map(_is_undo, items)) else self._undos
            return not ahead.keys().isdisjoint(_sessions(items))

    def recover_session(self, items: Iterable[WriteItem], append: Append) -> None:
        """Append what waits of these items' sessions, from a hook: little, and nothing that the host's store has."""
        sessions = _sessions(items)
        if not self._draining.acquire(blocking=False):
            return
        try:
            with self._lock:
                ahead = [(n, entry) for n, entry in self._entries.items() if not sessions.isdisjoint(entry.sessions)]
            self._drain(ahead[:HOOK_ENTRIES], append, may_read=False)
        finally:
            self._draining.release()

    def recover(self, append: Append, *, may_read: bool = True) -> int:
        """Append what waits, in its order; return how many memory operations were among it.

        What `append` does not take, and what cannot be read back yet, waits on. `may_read` False is for who is in a
        hurry: the host's store is left alone.
        """
        with self._draining:
            with self._lock:
                entries = list(self._entries.items())
            before = self.recovered
            memories, failed = self._drain(entries, append, may_read=may_read)
            with self._lock:
                self._is_refusing = self._is_refusing and failed
                is_over = not self._entries
        self._tell(is_over=is_over, recovered=self.recovered - before)
        return memories

    def tend(self) -> None:
        """Set room for notes aside, and take over what dead processes have noted."""
        self._own_notes()
        now = time.monotonic()
        if now - self._looked_at < LEFT_SECONDS:
            return
        self._looked_at = now
        for notes in Notes.left_behind(self._folder):
            self._take_over(notes)

    def _tell(self, *, is_over: bool, recovered: int) -> None:
        """One line when the host's store turns out to be unreadable, and one when everything has been recovered."""
        self._since_told += recovered
        if self.problem and not self._has_told_problem:
            logger.warning("%s; %d refused writes wait for it", self.problem, self.status().waiting)
        self._has_told_problem = bool(self.problem)
        if is_over and self._since_told:
            logger.warning("the journal has room again; %d refused writes were recovered", self._since_told)
            self._since_told = 0

    def _own_notes(self) -> Notes | None:
        """The file of this process; where there was no room for one, it is tried again now and then."""
        now = time.monotonic()
        with self._lock:
            if self._notes is None and now >= self._reserve_at:
                self._notes = Notes.reserve(self._folder)
                self._reserve_at = now + RESERVE_SECONDS
            return self._notes

    def close(self) -> None:
        """The process has no further use for this: what waits is left to the next one, as far as it is noted."""
        with self._lock:
            entries = list(self._entries.values())
            files = {entry.note[0] for entry in entries if entry.note is not None}
            if self._notes is not None and self._notes.is_empty:
                self._notes.remove()
            for notes in files:
                notes.release()
            self._notes = None
            self._reserve_at = float("-inf")
        noted = sum(len(entry.items) for entry in entries if entry.note is not None)
        unnoted = sum(len(entry.items) for entry in entries) - noted
        if noted or unnoted:
            logger.error(
                "%d refused writes are left to the next process of this home; %d could not be noted and are lost",
                noted,
                unnoted,
            )

    def _add(self, part: Sequence[WriteItem], urgency: Urgency) -> None:
        """Put a portion at the end of the queue, as far as there is room for it."""
        entry = _Entry(tuple(part), urgency, ("",) * len(part), None)
        notes = self._own_notes()
        place = None if notes is None else notes.write(_noted(entry))
        note = None if notes is None or place is None else (notes, place)
        is_turns = not any(isinstance(item, MemoryOperation) for item in part)
        limit = MAX_CHARS * TURNS_SHARE if is_turns else MAX_CHARS
        if self._chars + entry.chars > limit:
            shorter = _wordless(entry, 0)
            self.overflowed += sum(1 for digest in shorter.digests if digest)
            entry = shorter
        if len(self._entries) >= MAX_ENTRIES or (entry.is_whole and self._chars + entry.chars > MAX_CHARS):
            # The next process still finds what is noted.
            self.overflowed += len(part)
            self.lost += 0 if note is not None else len(part)
            return
        self._enqueue(_Entry(entry.items, urgency, entry.digests, note))

    def _enqueue(self, entry: _Entry) -> None:
        self._entries[self._next] = entry
        self._next += 1
        self._chars += entry.chars
        self._held.update(entry.sessions)
        if entry.is_undo:
            self._undos.update(entry.sessions)

    def _dequeue(self, number: int) -> None:
        entry = self._entries.pop(number)
        self._chars -= entry.chars
        for key in entry.sessions:
            for book in (self._held, self._undos) if entry.is_undo else (self._held,):
                book[key] -= 1
                if not book[key]:
                    del book[key]

    def _take_over(self, notes: Notes) -> None:
        """Queue what a dead process has noted."""
        entries = [_read_note(payload, (notes, place)) for place, payload in notes.entries]
        notes.entries = []
        known = [entry for entry in entries if entry is not None]
        if len(known) < len(entries):
            # A newer version has noted it, and will understand it.
            notes.release()
            if notes.name not in self._foreign:
                self._foreign.add(notes.name)
                logger.warning("refused writes that a newer version has noted are left to it")
            return
        with self._lock:
            for entry in known:
                self._enqueue(entry)

    def _drain(self, entries: Sequence[tuple[int, _Entry]], append: Append, *, may_read: bool) -> tuple[int, bool]:
        """Append entries; return how many memory operations there were, and whether any was refused again."""
        passed: set[_SessionKey] = set()
        stopped: set[_SessionKey] = set()
        words = _Words(self, [entry for _, entry in entries]) if may_read else None
        memories = failures = 0
        self.problem = "" if may_read else self.problem
        for number, _ in entries:
            entry = self._entries.get(number)
            if entry is None:
                # An undo has withdrawn it.
                continue
            items = self._ready(entry, passed, stopped, words)
            if items:
                try:
                    append(items, entry.urgency)
                except (JournalError, OSError):
                    items = None
                    failures += 1
            if items is None:
                passed |= entry.sessions
                stopped |= entry.sessions if entry.is_undo else set()
                if failures >= MAX_FAILURES:
                    break
                continue
            memories += sum(isinstance(item, MemoryOperation) for item in items)
            self._finish(number, entry, recovered=len(items))
        return memories, failures > 0

    def _ready(
        self, entry: _Entry, passed: set[_SessionKey], stopped: set[_SessionKey], words: _Words | None
    ) -> tuple[WriteItem, ...] | None:
        """What of an entry can be appended now; None when it has to wait."""
        if not stopped.isdisjoint(entry.sessions):
            return None
        if entry.is_undo and not passed.isdisjoint(entry.sessions) and not self._withdraw(entry):
            return None
        if entry.is_whole:
            return entry.items
        return None if words is None else words.filled(entry)

    def _withdraw(self, undo: _Entry) -> bool:
        """Take turns that are named by an undo out of the queue; False when it does not name what it takes back."""
        named: set[tuple[_SessionKey, str, int]] = set()
        for item in undo.items:
            if isinstance(item, ForgetTurns):
                if any(ordinal < 1 for _, ordinal in item.turns):
                    return False
                named.update(((item.theme, item.session_id), digest, ordinal) for digest, ordinal in item.turns)
            elif _is_undo(item):
                return False
        with self._lock:
            for number, entry in list(self._entries.items()):
                if entry is undo:
                    break
                if undo.sessions.isdisjoint(entry.sessions):
                    continue
                kept = [n for n, key in enumerate(_keys(entry)) if key not in named]
                if len(kept) == len(entry.items):
                    continue
                if not kept:
                    self._finish(number, entry, recovered=len(entry.items))
                    continue
                items = tuple(entry.items[n] for n in kept)
                digests = tuple(entry.digests[n] for n in kept)
                self._chars += sum(map(_chars, items)) - entry.chars
                self._entries[number] = _Entry(items, entry.urgency, digests, entry.note)
        return True

    def _finish(self, number: int, entry: _Entry, *, recovered: int) -> None:
        lost = len(entry.items) - recovered
        with self._lock:
            self._dequeue(number)
            self.recovered += recovered
            self.lost += lost
        if entry.note is not None:
            notes, place = entry.note
            notes.done(place)
            if notes is not self._notes and notes.is_empty:
                notes.remove()
        if lost:
            logger.warning("%d refused turns are not in the host's %s and are lost", lost, host_store.FILE_NAME)

    def find(self, session_id: str, digests: list[str]) -> dict[str, str]:
        """Words of a session; HostStoreUnreadable when nobody knows."""
        return host_store.find_words(
            self._home, session_id, digests, max_chars=self._max_chars, clean_user=self.clean_user
        )


class _Words:
    """Words that one recovery finds in the host's store, read for many entries at once."""

    def __init__(self, refusals: Refusals, entries: Sequence[_Entry]) -> None:
        self._refusals = refusals
        self._asked: set[tuple[str, str]] = set()
        self._found: dict[tuple[str, str], str] = {}
        self._wanted: dict[str, list[str]] = {}
        self._obstacle: HostStoreUnreadable | None = None
        for entry in entries:
            for item, digest in zip(entry.items, entry.digests, strict=True):
                if digest and isinstance(item, AddTurn):
                    self._wanted.setdefault(item.session_id, []).append(digest)

    def filled(self, entry: _Entry) -> tuple[WriteItem, ...] | None:
        """The entry's items with their words, without those that are given up; None while they are waited for."""
        whole: list[WriteItem] = []
        for item, digest in zip(entry.items, entry.digests, strict=True):
            if not digest or not isinstance(item, AddTurn):
                whole.append(item)
                continue
            try:
                content = self._words(item.session_id, digest)
            except HostStoreUnreadable as error:
                self._obstacle = error
                self._refusals.problem = str(error)
                return None
            if content is not None:
                whole.append(replace(item, content=content))
            elif time.time() - item.when.wall_us / 1e6 < GIVE_UP_SECONDS:
                return None
        return tuple(whole)

    def _words(self, session_id: str, digest: str) -> str | None:
        if self._obstacle is not None:
            # A locked store is waited for once, not once for each session.
            raise self._obstacle
        if (session_id, digest) not in self._asked:
            waiting = self._wanted[session_id]
            first = waiting.index(digest)
            batch = waiting[first : first + READ_AT_ONCE]
            self._found = {(session_id, each): words for each, words in self._refusals.find(session_id, batch).items()}
            self._asked = {(session_id, each) for each in batch}
        return self._found.get((session_id, digest))


def _chars(item: WriteItem) -> int:
    texts = (getattr(item, name, "") for name in ("content", "task", "result"))
    return ITEM_CHARS + sum(len(text) for text in texts)


def _sessions(items: Iterable[WriteItem]) -> set[_SessionKey]:
    return {(item.theme, item.session_id) for item in items if not isinstance(item, MemoryOperation)}


def _is_undo(item: WriteItem) -> bool:
    return not isinstance(item, MemoryOperation | AddTurn | RecordDelegation)


def _keys(entry: _Entry) -> list[tuple[_SessionKey, str, int] | None]:
    """What an undo calls each item of an entry, if it is a turn."""
    return [
        ((item.theme, item.session_id), digest or turn_digest(item.role, item.content), item.ordinal)
        if isinstance(item, AddTurn)
        else None
        for item, digest in zip(entry.items, entry.digests, strict=True)
    ]


def _wordless(entry: _Entry, longest: int) -> _Entry:
    """The entry without the words of turns that the host has as well, but for short ones."""
    items: list[WriteItem] = []
    digests = []
    for item, digest in zip(entry.items, entry.digests, strict=True):
        if isinstance(item, AddTurn) and item.role in ("user", "assistant") and len(item.content) > longest:
            items.append(replace(item, content=""))
            digests.append(turn_digest(item.role, item.content))
        else:
            items.append(item)
            digests.append(digest)
    return _Entry(tuple(items), entry.urgency, tuple(digests), entry.note)


def _noted(entry: _Entry) -> bytes:
    short = _wordless(entry, NOTED_CHARS)
    head = json.dumps({"urgency": short.urgency.value, "digests": short.digests})
    return head.encode() + b"\n" + codec.encode(short.items)


def _read_note(payload: bytes, note: tuple[Notes, int]) -> _Entry | None:
    """The entry that was noted; None when it is of a form that this version does not know."""
    head, _, body = payload.partition(b"\n")
    try:
        told = json.loads(head)
        items = tuple(codec.decode(body))
        digests = tuple(str(each) for each in told["digests"])
        urgency = Urgency(told["urgency"])
    except (ValueError, KeyError, TypeError, MemoryPluginError):
        return None
    return _Entry(items, urgency, digests, note) if len(items) == len(digests) else None
