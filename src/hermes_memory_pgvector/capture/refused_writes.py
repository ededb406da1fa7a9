"""Writes that the journal had no room for: a queue that is appended in order when there is room again.

The queue is in memory and bounded. Of turns beyond the bound, and of long turns of a dead process, only the digest is
kept; their text is read back from the host's own session store. Within a session nothing overtakes an undo, and an undo
overtakes nothing that it may delete.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_memory_pgvector.capture import host_store
from hermes_memory_pgvector.capture.host_store import CleanUser, HostStoreUnreadable
from hermes_memory_pgvector.capture.refusal_notes import FOLDER_NAME, Notes, noted_payloads
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError, MemoryPluginError
from hermes_memory_pgvector.journal import Urgency, codec
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.values import (
    AddTurn,
    ForgetTurns,
    JudgeMemories,
    MemoryOperation,
    RecordDelegation,
    WriteItem,
)

logger = logging.getLogger(__name__)

MAX_CHARS = 32 * 1024 * 1024
"""How much text may wait in memory; each item counts ITEM_CHARS on top of its text."""
TURNS_SHARE = 0.75
"""Turns can be read back from the host, memory operations cannot: the last quarter is kept for them."""
ITEM_CHARS = 512
MAX_ENTRIES = 100_000
NOTED_CHARS = 1024
"""A turn up to this length is noted with its text, a longer one by its digest."""
READ_AT_ONCE = 256
HOOK_ENTRIES = 16
MAX_FAILURES = 64
GIVE_UP_SECONDS = 3600.0
"""The host's disk was full too, so it may write a turn late; after this time the turn is given up."""
LEFT_SECONDS = 30.0
RESERVE_SECONDS = 1.0

_SessionKey = tuple[str, str]
Append = Callable[[Sequence[WriteItem], Urgency], None]
Rewrite = Callable[[Sequence[WriteItem]], Sequence[WriteItem | None]]
"""What becomes of items: of each the same item, another one, or None for one that goes."""


@dataclass(frozen=True, slots=True)
class RefusalStatus:
    """Counts for an operator."""

    turns: int
    memories: int
    waiting: int
    recovered: int
    overflowed: int
    """There was no room for their text here; it is looked up in the host's store."""
    lost: int
    problem: str
    """What prevents recovery, when it is not the journal."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """Items that were refused together and are appended together."""

    items: tuple[WriteItem, ...]
    urgency: Urgency
    digests: tuple[str, ...]
    """For each item the digest of its text where that is not kept here, otherwise empty."""
    note: tuple[Notes, int] | None

    @property
    def chars(self) -> int:
        """Its share of the bound."""
        return sum(_chars(item) for item in self.items)

    @property
    def sessions(self) -> set[_SessionKey]:
        """The sessions it belongs to."""
        return _sessions(self.items)

    @property
    def is_undo(self) -> bool:
        """Whether it deletes turns."""
        return any(map(_is_undo, self.items))

    @property
    def is_whole(self) -> bool:
        """Whether all text is here."""
        return not any(self.digests)


class Refusals:
    """The queue of refused writes; engines that succeed each other on a home share it."""

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
        self._recovered_since_log = 0
        self._has_logged_problem = False
        self._of_newer_version: set[str] = set()
        self._notes: Notes | None = None
        self._looked_at = float("-inf")
        self._reserve_at = float("-inf")

    @property
    def waits(self) -> bool:
        """Whether anything waits to be recovered."""
        return bool(self._entries)

    def status(self) -> RefusalStatus:
        """A snapshot for status and doctor."""
        with self._lock:
            waiting = sum(len(entry.items) for entry in self._entries.values())
        return RefusalStatus(
            self.turns, self.memories, waiting, self.recovered, self.overflowed, self.lost, self.problem
        )

    def note(self, items: Sequence[WriteItem], urgency: Urgency, *, is_refusal: bool = True) -> bool:
        """Queue these; True for the first refusal since the journal last accepted writes."""
        with self._lock:
            first = is_refusal and not self._is_refusing
            self._is_refusing = self._is_refusing or is_refusal
            for part in codec.portions(items):
                self.turns += sum(isinstance(item, AddTurn) for item in part)
                self.memories += sum(isinstance(item, MemoryOperation) for item in part)
                self._add(part, urgency)
            return first

    def holds_back(self, items: Sequence[WriteItem]) -> bool:
        """Whether these must wait behind queued writes of their session."""
        with self._lock:
            ahead = self._held if any(map(_is_undo, items)) else self._undos
            return not ahead.keys().isdisjoint(_sessions(items))

    def recover_session(self, items: Iterable[WriteItem], append: Append) -> None:
        """Append queued writes of these items' sessions, from a hook: a few, and none that need the host's store."""
        sessions = _sessions(items)
        if not self._draining.acquire(blocking=False):
            return
        try:
            with self._lock:
                ahead = [(n, entry) for n, entry in self._entries.items() if not sessions.isdisjoint(entry.sessions)]
            self._drain(ahead[:HOOK_ENTRIES], append, may_read=False)
        finally:
            self._draining.release()

    def recover(self, append: Append, *, hurry: Deadline | None = None) -> int:
        """Append what waits, in order; return how many memory operations were among it.

        What `append` refuses, and what cannot be read back yet, keeps waiting. A caller in a hurry does not read the
        host's store, and does not wait for somebody who asks Postgres about this queue.
        """
        if not self._draining.acquire(timeout=-1 if hurry is None else hurry.remaining()):
            return 0
        try:
            with self._lock:
                entries = list(self._entries.items())
            before = self.recovered
            memories, failed = self._drain(entries, append, may_read=hurry is None)
            with self._lock:
                self._is_refusing = self._is_refusing and failed
                is_over = not self._entries
        finally:
            self._draining.release()
        self._log_progress(is_over=is_over, recovered=self.recovered - before)
        return memories

    def tend(self) -> None:
        """Reserve a file for notes, and take over the notes of dead processes."""
        self._own_notes()
        now = time.monotonic()
        if now - self._looked_at < LEFT_SECONDS:
            return
        self._looked_at = now
        for notes in Notes.left_behind(self._folder):
            self._take_over(notes)

    def redact(self, rewrite: Rewrite) -> tuple[int, bool]:
        """Take items out of the queue and of all notes on disk; how many, and whether no old note is left on disk.

        Notes are written anew into another file before the old one goes, so that none is lost in between.
        """
        with self._draining:
            for notes in Notes.left_behind(self._folder):
                self._take_over(notes)
            fresh = Notes.reserve(self._folder)
            try:
                with self._lock:
                    entries = dict(self._entries)
                # Judging asks Postgres and the host's store, and a hook that records must not wait for them.
                judged = {number: self._judged(entry, rewrite, fresh) for number, entry in entries.items()}
            except BaseException:
                if fresh is not None:
                    fresh.remove()
                raise
            with self._lock:
                return self._exchange(judged, fresh)

    def _judged(self, entry: _Entry, rewrite: Rewrite, fresh: Notes | None) -> tuple[_Entry | None, int]:
        """What remains of an entry, noted in the fresh file where there is room, and how many items have changed."""
        whole = _with_words(entry, lambda session_id, digest: self.find(session_id, [digest]))
        new = [item if now is told else now for item, told, now in zip(entry.items, whole, rewrite(whole), strict=True)]
        pairs = [(item, digest) for item, digest in zip(new, entry.digests, strict=True) if item is not None]
        changed = sum(now is not was for was, now in zip(entry.items, new, strict=True))
        if not pairs:
            return None, changed
        kept = _Entry(tuple(item for item, _ in pairs), entry.urgency, tuple(digest for _, digest in pairs), entry.note)
        return _noted_in(fresh, kept), changed

    def _exchange(self, judged: Mapping[int, tuple[_Entry | None, int]], fresh: Notes | None) -> tuple[int, bool]:
        """Put judged entries in the place of those they come from; what was queued meanwhile stays behind them."""
        old = {entry.note[0] for entry in self._entries.values() if entry.note is not None}
        if self._notes is not None:
            old.add(self._notes)
        for number, entry in list(self._entries.items()):
            kept, changed = judged[number] if number in judged else (_noted_in(fresh, entry), 0)
            if kept is None:
                self._dequeue(number)
                continue
            if changed:
                self._uncount(entry)
                self._count(kept)
            # An assignment keeps the place in the queue.
            self._entries[number] = kept
        total = sum(changed for _, changed in judged.values())
        if fresh is None:
            return total, not any(notes.bytes_written for notes in old)
        still = {entry.note[0] for entry in self._entries.values() if entry.note is not None}
        for notes in old - still:
            notes.remove()
        self._notes = fresh
        return total, not old & still

    def _log_progress(self, *, is_over: bool, recovered: int) -> None:
        """Log a line when the host's store turns out to be unreadable, and one when everything has been recovered."""
        self._recovered_since_log += recovered
        if self.problem and not self._has_logged_problem:
            logger.warning("%s; %d refused writes wait for it", self.problem, self.status().waiting)
        self._has_logged_problem = bool(self.problem)
        if is_over and self._recovered_since_log:
            logger.warning("the journal has room again; %d refused writes were recovered", self._recovered_since_log)
            self._recovered_since_log = 0

    def _own_notes(self) -> Notes | None:
        """The file of this process; if there was no room for one, try again now and then."""
        now = time.monotonic()
        with self._lock:
            if self._notes is None and now >= self._reserve_at:
                self._notes = Notes.reserve(self._folder)
                self._reserve_at = now + RESERVE_SECONDS
            return self._notes

    def close(self) -> None:
        """End: what is noted is left to the next process."""
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
        """Put a portion at the end of the queue, as far as there is room."""
        entry = _Entry(tuple(part), urgency, ("",) * len(part), None)
        notes = self._own_notes()
        offset = None if notes is None else notes.write(_noted(entry))
        note = None if notes is None or offset is None else (notes, offset)
        is_turns = not any(isinstance(item, MemoryOperation) for item in part)
        limit = MAX_CHARS * TURNS_SHARE if is_turns else MAX_CHARS
        if self._chars + entry.chars > limit:
            shorter = _without_words(entry, 0)
            self.overflowed += sum(1 for digest in shorter.digests if digest)
            entry = shorter
        if len(self._entries) >= MAX_ENTRIES or (entry.is_whole and self._chars + entry.chars > MAX_CHARS):
            # What is noted, the next process will find.
            self.overflowed += len(part)
            self.lost += 0 if note is not None else len(part)
            return
        self._enqueue(_Entry(entry.items, urgency, entry.digests, note))

    def _enqueue(self, entry: _Entry) -> None:
        self._entries[self._next] = entry
        self._next += 1
        self._count(entry)

    def _dequeue(self, number: int) -> None:
        self._uncount(self._entries.pop(number))

    def _count(self, entry: _Entry) -> None:
        self._chars += entry.chars
        self._held.update(entry.sessions)
        if entry.is_undo:
            self._undos.update(entry.sessions)

    def _uncount(self, entry: _Entry) -> None:
        self._chars -= entry.chars
        for key in entry.sessions:
            for book in (self._held, self._undos) if entry.is_undo else (self._held,):
                book[key] -= 1
                if not book[key]:
                    del book[key]

    def _take_over(self, notes: Notes) -> None:
        """Queue the notes of a dead process."""
        entries = [_read_note(payload, (notes, offset)) for offset, payload in notes.entries]
        notes.entries = []
        known = [entry for entry in entries if entry is not None]
        if len(known) < len(entries):
            # A newer version wrote it and will understand it.
            notes.release()
            if notes.name not in self._of_newer_version:
                self._of_newer_version.add(notes.name)
                logger.warning("refused writes noted by a newer version are left to it")
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
                # An undo has removed it from the queue.
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
        """The items of an entry that can be appended now; None when it has to wait."""
        if not stopped.isdisjoint(entry.sessions):
            return None
        if entry.is_undo and not passed.isdisjoint(entry.sessions) and not self._withdraw(entry):
            return None
        if entry.is_whole:
            return entry.items
        return None if words is None else words.filled(entry)

    def _withdraw(self, undo: _Entry) -> bool:
        """Remove the turns that an undo names from the queue; False when it does not name them all."""
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
            notes, offset = entry.note
            notes.done(offset)
            if notes is not self._notes and notes.is_empty:
                notes.remove()
        if lost:
            logger.warning("%d refused turns are not in the host's %s and are lost", lost, host_store.FILE_NAME)

    def find(self, session_id: str, digests: list[str]) -> dict[str, str]:
        """The text of a session's turns by digest; raises HostStoreUnreadable."""
        return host_store.find_words(
            self._home, session_id, digests, max_chars=self._max_chars, clean_user=self.clean_user
        )


def noted_items(home: Path, folder: Path, *, max_chars: int) -> Iterator[WriteItem]:
    """What the notes of all processes of a home hold, with the words that only the host's store has."""
    for payload in noted_payloads(folder / FOLDER_NAME):
        entry = _read_note(payload, None)
        if entry is not None:
            yield from _with_words(
                entry,
                lambda session_id, digest: host_store.find_words(
                    home, session_id, [digest], max_chars=max_chars, clean_user=None
                ),
            )


def _with_words(entry: _Entry, find: Callable[[str, str], Mapping[str, str]]) -> list[WriteItem]:
    """The items with the text that is only in the host's store, as far as it can be read now."""
    whole: list[WriteItem] = []
    for item, digest in zip(entry.items, entry.digests, strict=True):
        found = None
        if digest and isinstance(item, AddTurn):
            with suppress(HostStoreUnreadable):
                found = find(item.session_id, digest).get(digest)
        whole.append(item if found is None or not isinstance(item, AddTurn) else replace(item, content=found))
    return whole


class _Words:
    """Text that one recovery finds in the host's store, read for many entries at once."""

    def __init__(self, refusals: Refusals, entries: Sequence[_Entry]) -> None:
        self._refusals = refusals
        self._looked_up: set[tuple[str, str]] = set()
        self._found: dict[tuple[str, str], str] = {}
        self._wanted: dict[str, list[str]] = {}
        self._obstacle: HostStoreUnreadable | None = None
        for entry in entries:
            for item, digest in zip(entry.items, entry.digests, strict=True):
                if digest and isinstance(item, AddTurn):
                    self._wanted.setdefault(item.session_id, []).append(digest)

    def filled(self, entry: _Entry) -> tuple[WriteItem, ...] | None:
        """The entry's items with their text, without those given up; None while some text is still missing."""
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
            # Wait for a locked store once, not once per session.
            raise self._obstacle
        if (session_id, digest) not in self._looked_up:
            waiting = self._wanted[session_id]
            first = waiting.index(digest)
            batch = waiting[first : first + READ_AT_ONCE]
            self._found = {(session_id, each): words for each, words in self._refusals.find(session_id, batch).items()}
            self._looked_up = {(session_id, each) for each in batch}
        return self._found.get((session_id, digest))


def _chars(item: WriteItem) -> int:
    texts = (getattr(item, name, "") for name in ("content", "task", "result"))
    return ITEM_CHARS + sum(len(text) for text in texts)


def _sessions(items: Iterable[WriteItem]) -> set[_SessionKey]:
    return {(item.theme, item.session_id) for item in items if not isinstance(item, MemoryOperation)}


def _is_undo(item: WriteItem) -> bool:
    return not isinstance(item, MemoryOperation | AddTurn | RecordDelegation | JudgeMemories)


def _keys(entry: _Entry) -> list[tuple[_SessionKey, str, int] | None]:
    """How an undo names each item of an entry; None for items that are not turns."""
    return [
        ((item.theme, item.session_id), digest or turn_digest(item.role, item.content), item.ordinal)
        if isinstance(item, AddTurn)
        else None
        for item, digest in zip(entry.items, entry.digests, strict=True)
    ]


def _without_words(entry: _Entry, longest: int) -> _Entry:
    """The entry without the text of turns that the host has too, except short ones."""
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
    short = _without_words(entry, NOTED_CHARS)
    head = json.dumps({"urgency": short.urgency.value, "digests": short.digests})
    return head.encode() + b"\n" + codec.encode(short.items)


def _noted_in(notes: Notes | None, entry: _Entry) -> _Entry:
    """The entry noted in a file, or as it was noted before where that has no room."""
    offset = None if notes is None else notes.write(_noted(entry))
    note = entry.note if notes is None or offset is None else (notes, offset)
    return _Entry(entry.items, entry.urgency, entry.digests, note)


def _read_note(payload: bytes, note: tuple[Notes, int] | None) -> _Entry | None:
    """The entry behind a note; None when this version does not know its format."""
    head, _, body = payload.partition(b"\n")
    try:
        known = json.loads(head)
        items = tuple(codec.decode(body))
        digests = tuple(str(each) for each in known["digests"])
        urgency = Urgency(known["urgency"])
    except (ValueError, KeyError, TypeError, MemoryPluginError):
        return None
    return _Entry(items, urgency, digests, note) if len(items) == len(digests) else None
