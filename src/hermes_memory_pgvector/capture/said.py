"""What this process has recorded of each conversation: bounded, in memory, shared by all providers of the process.

The database sees to it that a turn is stored once. This keeps the common repeats from getting that far, and knows what
only the process can know: that the host shows a turn in other words than it reported, and which question is under way.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hermes_memory_pgvector.capture.transcript import Turn
from hermes_memory_pgvector.text.masks import MASK

SessionKey = tuple[str, str]
"""(theme, session id)"""
MAX_SESSIONS = 2000
MAX_TURNS = 5000
MAX_EXCHANGES = 50


@dataclass(slots=True)
class _Exchange:
    """A question, and the digests of its turns once they are reported."""

    question: str
    turns: tuple[str, ...] = ()


@dataclass(slots=True)
class _Conversation:
    """What one conversation has recorded, by the digests of its turns."""

    known: OrderedDict[str, None] = field(default_factory=OrderedDict)
    found: set[str] = field(default_factory=set)
    """Those that a transcript showed first: the report that comes for them is no new turn."""
    begun: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Questions that nobody has reported yet; nobody ever does when the user interrupts."""
    exchanges: deque[_Exchange] = field(default_factory=lambda: deque(maxlen=MAX_EXCHANGES))


class Said:
    """The conversations of a process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conversations: OrderedDict[SessionKey, _Conversation] = OrderedDict()
        self.short = 0
        """How many turns were too short to be stored."""

    def count_short(self, turns: int) -> None:
        """So many turns were too short."""
        if turns:
            with self._lock:
                self.short += turns

    def begin(self, key: SessionKey, question: Turn | None) -> None:
        """A turn starts; whoever asks again means it."""
        with self._lock:
            conversation = self._of(key)
            digest = question.digest if question is not None else ""
            conversation.exchanges.append(_Exchange(digest))
            if question is not None:
                conversation.found.discard(digest)
                _remember(conversation.begun, digest, MAX_EXCHANGES)

    def report(self, key: SessionKey, asked: str, forms: Sequence[tuple[str, ...]]) -> list[bool]:
        """An exchange is complete: whether each of its turns is new; `asked` is the digest of its question, if any.

        Each comes as the digest of its words and those of the words that transcripts may have for it.
        """
        with self._lock:
            conversation = self._of(key)
            new = []
            for digests in forms:
                new.append(conversation.found.isdisjoint(digests))
                conversation.found.difference_update(digests)
                for digest in digests:
                    conversation.begun.pop(digest, None)
                    _remember(conversation.known, digest, MAX_TURNS)
            waiting = [each for each in conversation.exchanges if not each.turns]
            found = next((each for each in reversed(waiting) if each.question == asked), None)
            if found is None:
                found = _Exchange(asked)
                conversation.exchanges.append(found)
            found.turns = tuple(digests[0] for digests in forms)
            return new

    def find(self, key: SessionKey, turns: Iterable[Turn]) -> list[tuple[Turn, bool]]:
        """A transcript was seen: its turns that nobody has reported, each with whether it was only just said."""
        with self._lock:
            conversation = self._of(key)
            new = []
            for turn in turns:
                digest = turn.digest
                if MASK.search(turn.content) and turn.outline in conversation.known:
                    # Reported before the host knew that it has something to hide.
                    continue
                is_begun = digest in conversation.begun
                if is_begun or digest not in conversation.known:
                    conversation.begun.pop(digest, None)
                    conversation.found.add(digest)
                    _remember(conversation.known, digest, MAX_TURNS)
                    new.append((turn, is_begun))
            return new

    def undo(self, key: SessionKey) -> tuple[str, ...]:
        """The last exchange was undone: the digests of its turns, none if nobody has reported them."""
        with self._lock:
            conversation = self._of(key)
            if not conversation.exchanges:
                return ()
            last = conversation.exchanges.pop()
            if last.question:
                # No transcript from before the undo brings it back; asking again does.
                conversation.begun.pop(last.question, None)
                _remember(conversation.known, last.question, MAX_TURNS)
            return last.turns

    def knows_any(self, key: SessionKey, turns: Iterable[Turn]) -> bool:
        """Whether a session has recorded or begun any of these turns."""
        with self._lock:
            conversation = self._conversations.get(key)
            return conversation is not None and any(
                digest in conversation.known or digest in conversation.begun
                for digest in (turn.digest for turn in turns)
            )

    def continue_as(self, old: SessionKey, new: SessionKey, *, is_copy: bool) -> None:
        """A conversation goes on under another id, alone or beside the one it was copied from."""
        with self._lock:
            conversation = self._of(old)
            if old != new:
                self._conversations[new] = (
                    _Conversation(OrderedDict(conversation.known), set(conversation.found)) if is_copy else conversation
                )

    def _of(self, key: SessionKey) -> _Conversation:
        conversation = self._conversations.get(key)
        if conversation is None:
            conversation = self._conversations[key] = _Conversation()
            if len(self._conversations) > MAX_SESSIONS:
                self._conversations.popitem(last=False)
        else:
            self._conversations.move_to_end(key)
        return conversation


def _remember(book: OrderedDict[str, None], key: str, most: int) -> None:
    book[key] = None
    book.move_to_end(key)
    if len(book) > most:
        book.popitem(last=False)
