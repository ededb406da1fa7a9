"""Turns and memories from elsewhere on their way into Postgres, in portions, beside a memory that is in use.

Each portion is a transaction of its own: whoever is killed starts again, and nothing is stored twice. The portions of a
dry run are one transaction, which is taken back, so that it counts what a run would.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import gate, hidden, memories, turns, vectors
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.terminal.amounts import count
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.text.secrets import KEY_IN_METADATA, MASK_START, masker_for
from hermes_memory_pgvector.values import AddMemory, AddTurn, Kind
from hermes_memory_pgvector.writer.chunks import wants_vector
from hermes_memory_pgvector.writer.masking import without_secrets

PORTION_ROWS = 500
MOST_ROWS = 5000
"""How far a portion goes on where a session does, without a pause."""
PORTION_CHARS = 1_000_000
STORE_SECONDS = 300.0
DRY_SECONDS = 3600.0
PAUSE_SECONDS = 0.002
"""Between two portions, so that a process that waits for its turn gets it."""
WRITER = "import"
"""Where the operations come from that stand for memories without a history."""
FORGOTTEN = "that were forgotten here"
TurnKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """A row of another place."""

    item: AddTurn | AddMemory
    hidden_since: datetime | None = None
    """Since when it was hidden there; None when it was not."""
    next_us: float | None = None
    """When its session says the same words the next time, infinite for never; None where the source does not tell."""


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A stored turn that says the words of one that is brought."""

    id: int
    ordinal: int
    at_us: int
    is_undone: bool
    """Whether the user has taken it back."""


@dataclass(slots=True)
class Tally:
    """Counts of one import: rows by theme, and by reason what was not for storing."""

    new: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    """What was there already."""
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class RowIntake:
    """Stores rows portion by portion."""

    transaction: Callable[[], AbstractContextManager[Connection]]
    settings: Settings
    tally: Tally
    advance: Callable[[int], None]
    """Learns how much has been read."""
    _portion: list[Found] = field(default_factory=list)
    _chars: int = 0
    _taken: set[int] = field(default_factory=set)
    """The stored turns that are those of this source to the instant: none of them is another one's as well."""

    def add(self, found: Found) -> None:
        """Take a row; its secrets stay behind."""
        item = without_secrets(found.item, masker_for(self.settings.mask_secrets))
        assert isinstance(item, AddTurn | AddMemory)
        is_full = len(self._portion) >= PORTION_ROWS or self._chars >= PORTION_CHARS
        if is_full and not (len(self._portion) < MOST_ROWS and self._goes_on(item)):
            self.flush()
        self._portion.append(replace(found, item=item))
        self._chars += len(item.content)

    def _goes_on(self, item: AddTurn | AddMemory) -> bool:
        """Whether a turn may be taken for one of the row before it: such turns are told apart side by side."""
        last = self._portion[-1].item
        if not (isinstance(item, AddTurn) and isinstance(last, AddTurn)):
            return False
        is_near = abs(item.when.wall_us - last.when.wall_us) <= self.settings.turn_retry_window * 1e6
        return is_near and (item.theme, item.session_id) == (last.theme, last.session_id)

    def flush(self) -> None:
        """Store what has been collected."""
        portion, self._portion, self._chars = self._portion, [], 0
        if not portion:
            return
        with self.transaction() as connection:
            opened = gate.enter(connection)
            refused = opened.refused(connection, [each.item for each in portion])
            admitted = [
                replace(each, item=opened.renamed(each.item))
                for each, is_refused in zip(portion, refused, strict=True)
                if not is_refused
            ]
            self.tally.left_out[FORGOTTEN] += len(portion) - len(admitted)
            stored: list[hidden.Key] = []
            for here in buckets.apart(connection, admitted, lambda each: each.item.theme):
                said = self._missing(connection, here)
                noted = [(each.item, each.hidden_since) for each in here if isinstance(each.item, AddMemory)]
                new_turns = self._store_turns(connection, [turn for turn, _ in said])
                new_memories = self._store_memories(connection, [entry for entry, _ in noted])
                fresh = [hidden.Key(Kind.TURN, *row) for row in new_turns]
                fresh += [hidden.Key(Kind.MEMORY, *row) for row in new_memories]
                _hide(connection, [*said, *noted], set(fresh))
                stored += fresh
        new = Counter(key.theme for key in stored)
        self.tally.new += new
        self.tally.known += Counter(each.item.theme for each in admitted) - new
        time.sleep(PAUSE_SECONDS)

    def _missing(self, connection: Connection, portion: Sequence[Found]) -> list[tuple[AddTurn, datetime | None]]:
        """The turns that are not stored, with ordinals that are free, and since when each was hidden."""
        brought = [(each.item, each) for each in portion if isinstance(each.item, AddTurn)]
        # A source may say the same thing twice.
        distinct = {(turns.key_of(item), item.ordinal, item.when.wall_us): (item, each) for item, each in brought}
        held = _held_words(connection, [item for item, _ in distinct.values()])
        left = [(item, each) for item, each in distinct.values() if not self._takes_its_own(item, held)]
        used = {key: {each.ordinal for each in rows} for key, rows in held.items()}
        found = []
        for item, each in left:
            key = turns.key_of(item)
            if self._is_held(item, each.next_us, held[key]):
                continue
            ordinal = item.ordinal if item.ordinal not in used[key] else max(used[key]) + 1
            used[key].add(ordinal)
            found.append((replace(item, ordinal=ordinal), each.hidden_since))
        return found

    def _takes_its_own(self, item: AddTurn, held: Mapping[TurnKey, Sequence[HeldTurn]]) -> bool:
        """Whether a turn of this very instant is stored, which is then that of no other item."""
        same = [each for each in held[turns.key_of(item)] if item.is_dated and each.at_us == item.when.wall_us]
        own = next((each for each in same if each.ordinal == item.ordinal), None)
        own = own or next((each for each in same if each.id not in self._taken), None)
        if own is not None:
            self._taken.add(own.id)
        return own is not None

    def _is_held(self, item: AddTurn, next_us: float | None, held: Sequence[HeldTurn]) -> bool:
        """Whether one of these stored turns is this one.

        What has a time is known by it: that is the same turn which was said within the window, as for live traffic, or
        which was noted after this saying and before the next one. Live traffic notes an exchange when it is complete,
        and what it finds in a transcript even later. What has no time is counted.
        """
        held = [each for each in held if not each.is_undone]
        if not item.is_dated:
            return item.ordinal <= len(held)
        at_us, window_us = item.when.wall_us, int(self.settings.turn_retry_window * 1e6)
        until_us = at_us if next_us is None else next_us - window_us
        return any(
            abs(each.at_us - at_us) <= window_us or at_us < each.at_us < until_us
            for each in held
            if each.id not in self._taken
        )

    def _store_turns(self, connection: Connection, items: list[AddTurn]) -> list[tuple[str, int]]:
        stored = turns.insert(
            connection,
            items,
            retry_window=self.settings.turn_retry_window,
            wants_vector=partial(wants_vector, self.settings),
        )
        self._taken.update(row_id for _, row_id in stored)
        return stored

    def _store_memories(self, connection: Connection, items: list[AddMemory]) -> list[tuple[str, int]]:
        known = _held_memories(connection, items)
        # The number says which words these are: the same entry of the same time is brought once.
        placed = [
            Placed(item, WRITER, int(turn_digest(item.theme, f"{item.target}:{item.content}")[:15], 16), 0)
            for place, item in enumerate(items)
            if place not in known
        ]
        changed = memories.store(connection, placed)
        if self.settings.embed_on_write:
            vectors.enqueue(connection, [(theme, Kind.MEMORY.value, row_id) for theme, row_id in changed])
        return changed


@contextmanager
def taking_in(
    pool: Pool, settings: Settings, tally: Tally, *, is_dry: bool, advance: Callable[[int], None] = lambda _: None
) -> Iterator[RowIntake]:
    """Takes rows in for the length of the block; what comes before a line that says nothing is stored."""
    with ExitStack() as stack:
        transaction: Callable[[], AbstractContextManager[Connection]]
        if is_dry:
            only = stack.enter_context(pool.transaction(Deadline.after(DRY_SECONDS)))
            stack.enter_context(only.transaction(force_rollback=True))
            transaction = lambda: nullcontext(only)  # noqa: E731
        else:
            transaction = lambda: pool.transaction(Deadline.after(STORE_SECONDS))  # noqa: E731
        intake = RowIntake(transaction, settings, tally, advance)
        try:
            yield intake
        except ConfigError as error:
            intake.flush()
            if not is_dry and (stored := intake.tally.new.total()):
                raise ConfigError(
                    f"{error}; {count(stored, 'row')} before it {'is' if stored == 1 else 'are'} stored, "
                    "and nothing is stored twice when this is run again"
                ) from None
            raise
        intake.flush()


def _held_words(connection: Connection, items: Sequence[AddTurn]) -> dict[TurnKey, list[HeldTurn]]:
    """The stored turns that say the words of each of these."""
    asked = {turns.key_of(item): item for item in items}
    held: dict[TurnKey, list[HeldTurn]] = {key: [] for key in asked}
    if not asked:
        return held
    values = {
        "themes": [theme for theme, _, _ in asked],
        "session_ids": [session for _, session, _ in asked],
        "digests": [digest for _, _, digest in asked],
        "roles": [item.role for item in asked.values()],
        "masked": [item.content if _is_masked(item) else None for item in asked.values()],
        "are_original": [bool(item.digest) for item in asked.values()],
    }
    keys = list(asked)
    for place, row_id, ordinal, at_us, is_undone in run(connection, "carry/held_words", **values):
        held[keys[int(place) - 1]].append(HeldTurn(int(row_id), int(ordinal), int(at_us), bool(is_undone)))
    return held


def _is_masked(item: AddTurn) -> bool:
    return KEY_IN_METADATA in item.metadata or MASK_START in item.content


def _held_memories(connection: Connection, items: Sequence[AddMemory]) -> dict[int, int]:
    """The ids of those memories that are stored, by their places in the list."""
    columns = {"themes": "theme", "targets": "target", "contents": "content"}
    values = {name: [getattr(item, each) for item in items] for name, each in columns.items()}
    rows = run(connection, "carry/held_memories", **values) if items else ()
    return {int(place) - 1: int(row_id) for place, row_id in rows}


def _hide(
    connection: Connection, brought: Sequence[tuple[AddTurn | AddMemory, datetime | None]], new: set[hidden.Key]
) -> None:
    """Hide rows that were hidden where they come from, each since its time; what was here already stays as it is."""
    said = [(item, at) for item, at in brought if at and isinstance(item, AddTurn)]
    noted = [(item, at) for item, at in brought if at and isinstance(item, AddMemory)]
    held = _held_words(connection, [item for item, _ in said])
    wanted = [
        (hidden.Key(Kind.TURN, item.theme, each.id), at)
        for item, at in said
        for each in held[turns.key_of(item)]
        if each.ordinal == item.ordinal
    ]
    for place, row_id in _held_memories(connection, [item for item, _ in noted]).items():
        item, at = noted[place]
        wanted.append((hidden.Key(Kind.MEMORY, item.theme, row_id), at))
    hidden.bring(connection, [(key, at) for key, at in wanted if key in new])
