"""Correcting the memory: its history, and taking back, restoring and editing what is in it.

Every change runs in the caller's transaction, goes the way every other write goes, and leaves a row in the audit log.
Without `execute` nothing is written, and the answer says what would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.care import audit, horizon, ids, reversal, see, themes, timeline
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.care.ids import RowName
from hermes_memory_pgvector.care.reversal import Blocked, Reversal
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import gate, memories, vectors
from hermes_memory_pgvector.store import history as events_store
from hermes_memory_pgvector.store.browse import StoredMemory, StoredTurn
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_state import State
from hermes_memory_pgvector.text.clean import entries_of, text_of
from hermes_memory_pgvector.values import TARGETS, Kind, Moment, Target


@dataclass(frozen=True, slots=True)
class Hand:
    """Whose hand makes a change, when, and whether rows that change want vectors."""

    actor: Actor
    now: Callable[[], Moment]
    wants_vectors: bool
    max_chars: int = 1_000_000
    """How long a text may be."""
    history_days: int = 0
    """For how many days the history is kept; 0 for good."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, and where the next page begins; None when this is the last."""

    events: tuple[Event, ...]
    following: str | None


@dataclass(frozen=True, slots=True)
class TargetChange:
    """What changes in a theme's MEMORY.md or USER.md entries."""

    target: Target
    remove: tuple[str, ...]
    restore: tuple[str, ...]
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """A change of memories, before or after it was made."""

    theme: str
    changes: tuple[TargetChange, ...]
    executed: bool
    event: Event | None = None
    """The event that is undone."""

    @property
    def removed(self) -> int:
        """How many entries go."""
        return sum(len(change.remove) for change in self.changes)

    @property
    def restored(self) -> int:
        """How many entries come back or get new words."""
        return sum(len(change.restore) for change in self.changes)

    @property
    def blocked(self) -> tuple[tuple[Target, Blocked], ...]:
        """The entries that files keep as they are."""
        return tuple((change.target, each) for change in self.changes for each in change.blocked)


@dataclass(frozen=True, slots=True)
class Edit:
    """Other words for a memory."""

    name: str
    theme: str
    before: str
    after: str
    blocked: tuple[Blocked, ...]
    executed: bool
    target: Target


def history(
    connection: Connection,
    *,
    theme: str | None = None,
    name: RowName | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int = 20,
) -> EventPage:
    """What happened to memories, the last to arrive first; of one memory, what made it what it is."""
    if theme is not None:
        themes.require(connection, theme)
    if name is not None:
        told = _story(connection, name, theme, since, until)
        kept = [event for event in reversed(told) if before is None or event.id < before]
    else:
        kept = events_store.newest(connection, theme=theme, since=since, until=until, before_id=before, limit=limit + 1)
    shown = tuple(kept[:limit])
    return EventPage(shown, f"e{shown[-1].id}" if len(kept) > limit else None)


def undo(connection: Connection, event_id: int, hand: Hand, *, execute: bool, theme: str | None = None) -> Correction:
    """Put back what an event changed."""
    if theme is not None:
        themes.require(connection, theme)
    found = events_store.find(connection, event_id, theme)
    if found is None:
        raise CareError(f"there is no event e{event_id}; `list events` shows them")
    own_theme, target = found

    def plan(events: Sequence[Event], now: State) -> tuple[Reversal, Event]:
        effect = next(each for each in timeline.replay(events) if each.event.id == event_id)
        concerned = reversal.homes_of(effect.came, now)
        return reversal.revert(effect, now, events_store.files(connection, target, concerned)), effect.event

    (change,), event = _correct(
        connection, own_theme, {target: plan}, hand, execute=execute, command="undo", note={"undoes": event_id}
    )
    assert event is not None
    if change.is_nothing and not change.blocked:
        raise CareError(
            f"event e{event_id} changed nothing that is still so: what it wrote is gone, what it took away is there"
        )
    if execute and not change.is_nothing:
        _note(connection, hand, "undo", own_theme, f"event e{event_id}", [change])
    return Correction(own_theme, (_told(target, change),), execute and not change.is_nothing, event)


def remove(connection: Connection, name: RowName, hand: Hand, *, execute: bool, theme: str | None = None) -> Correction:
    """Take a memory out: recall no longer finds it, its history keeps it, and undoing the event brings it back."""
    row = see.find(connection, name, theme)
    if isinstance(row, StoredTurn):
        raise CareError(f"{row_name(row)} is a turn; `mute` hides it, `forget` erases it")

    def plan(_: Sequence[Event], now: State) -> tuple[Reversal, None]:
        if row.content not in now:
            raise CareError(f"{row_name(row)} has changed meanwhile; look at it again")
        files = events_store.files(connection, row.target, reversal.homes_of([row.content], now))
        return reversal.toward([content for content in now if content != row.content], now, files), None

    (change,), _ = _correct(
        connection, row.theme, {row.target: plan}, hand, execute=execute, command="remove", note={"removes": row.id}
    )
    executed = execute and not change.is_nothing
    if executed:
        _note(connection, hand, "remove", row.theme, row_name(row), [change])
    return Correction(row.theme, (_told(row.target, change),), executed)


def restore(connection: Connection, theme: str, at: datetime, hand: Hand, *, execute: bool) -> Correction:
    """Make a theme's memories those it held at a time."""
    themes.require(connection, theme)
    if at > datetime.now(UTC):
        raise CareError("that time has not come yet; give one in the past")
    _require_history(connection, theme, at, hand)

    def plan_of(target: Target) -> _Plan:
        def plan(events: Sequence[Event], now: State) -> tuple[Reversal, Event | None]:
            wanted = timeline.state_at(events, at)
            surplus = [content for content in now if content not in wanted]
            files = events_store.files(connection, target, reversal.homes_of(surplus, now))
            return reversal.toward(list(wanted), now, files), None

        return plan

    plans = {target: plan_of(target) for target in TARGETS}
    changes, _ = _correct(
        connection, theme, plans, hand, execute=execute, command="restore", note={"restores": at.isoformat()}
    )
    told = tuple(_told(target, change) for target, change in zip(plans, changes, strict=True))
    does = any(not change.is_nothing for change in changes)
    if execute and does:
        _note(connection, hand, "restore", theme, at.astimezone(UTC).isoformat(timespec="seconds"), changes)
    return Correction(theme, told, execute and does)


def _require_history(connection: Connection, theme: str, at: datetime, hand: Hand) -> None:
    """Refuse a time of which the history is no longer known: what it held would be taken for nothing."""
    since = horizon.kept_since(hand.history_days)
    if since is not None and at < since:
        raise CareError(
            f"the history is kept for {hand.history_days} days (history_days), so what {theme} held at that time is not"
            f" known; give a time after {since:%Y-%m-%d %H:%M}"
        )
    oldest = min(
        (event.at for target in TARGETS for event in events_store.of_theme(connection, theme, target)[0]), default=None
    )
    if oldest is not None and at < oldest:
        raise CareError(
            f"the history of {theme} begins at {oldest.astimezone(UTC):%Y-%m-%d %H:%M:%S}; what it held before is not"
            " known, and `forget` is what deletes everything"
        )


def edit(
    connection: Connection,
    name: RowName,
    text: str,
    hand: Hand,
    *,
    execute: bool,
    theme: str | None = None,
    former: str | None = None,
) -> Edit:
    """Give a memory other words; `former` is the text that whoever edited it has seen."""
    row = see.find(connection, name, theme)
    if isinstance(row, StoredTurn):
        raise CareError(f"{row_name(row)} is a turn, which was said as it was; `mute` hides it, `forget` erases it")
    after = text_of(text)
    if not after:
        raise CareError("an empty text is no edit; `forget` deletes, `mute` hides")
    if len(after) > hand.max_chars:
        raise CareError(f"the text has {len(after)} characters, {hand.max_chars} are allowed")
    told = row_name(row)
    if former is not None and former != row.content:
        raise CareError(f"{told} has changed meanwhile; look at it again")
    if after == row.content:
        return Edit(told, row.theme, row.content, after, (), executed=False, target=row.target)
    return _edit_memory(connection, row, told, after, hand, execute=execute)


_Plan = Callable[[Sequence[Event], State], tuple[Reversal, Event | None]]


def _correct(
    connection: Connection,
    theme: str,
    plans: Mapping[Target, Any],
    hand: Hand,
    *,
    execute: bool,
    command: str,
    note: Mapping[str, Any],
) -> tuple[list[Reversal], Event | None]:
    """Work out each target's change and, if it is to be done, do it while nobody else changes the theme's memories."""
    if execute:
        # Before any theme: whoever erases or renames has the gate closed while waiting for one.
        gate.enter(connection)
    drafts = {target: _draft(connection, theme, target, plan) for target, plan in plans.items()}
    if execute and not all(draft.change.is_nothing for draft in drafts.values()):
        homes = {home for draft in drafts.values() for home in draft.homes}
        events_store.lock(connection, theme, list(plans), homes)
        drafts = {target: _draft(connection, theme, target, plan) for target, plan in plans.items()}
        if not {home for draft in drafts.values() for home in draft.homes} <= homes:
            raise CareError("the memories have changed meanwhile; run it again")
        for target, draft in drafts.items():
            if not draft.change.is_nothing:
                _apply(connection, theme, target, draft, hand, {"command": command, **note})
    return [draft.change for draft in drafts.values()], next(draft.about for draft in drafts.values())


@dataclass(frozen=True, slots=True)
class _Draft:
    """A change that was worked out from what the memories are at this moment."""

    change: Reversal
    about: Event | None
    now: State
    former: State
    """Every entry there ever was, as it was last."""
    last: int
    """The place of the newest event it answers to."""

    @property
    def homes(self) -> Sequence[str]:
        return reversal.homes_of(self.change.remove, self.now)


def _draft(connection: Connection, theme: str, target: Target, plan: _Plan) -> _Draft:
    events, last = events_store.of_theme(connection, theme, target)
    now = timeline.state_of(events)
    change, about = plan(events, now)
    return _Draft(change, about, now, timeline.last_known(events), last)


def _apply(
    connection: Connection,
    theme: str,
    target: Target,
    draft: _Draft,
    hand: Hand,
    metadata: Mapping[str, Any],
) -> None:
    moment = hand.now()
    # It comes after everything it answers to, whatever the clocks of other machines say.
    when = Moment(moment.wall_us, max(moment.order_us, draft.last + 1))
    made = reversal.operations(
        draft.change, draft.now, draft.former, theme=theme, target=target, when=when, metadata=metadata
    )
    writer = f"operator:{hand.actor.home_id}"
    placed = [Placed(operation, writer, when.order_us, part) for part, operation in enumerate(made)]
    changed = memories.store(connection, placed)
    if hand.wants_vectors:
        vectors.enqueue(connection, [(name, Kind.MEMORY.value, row_id) for name, row_id in changed])


def _edit_memory(
    connection: Connection, row: StoredMemory, told: str, after: str, hand: Hand, *, execute: bool
) -> Edit:
    if entries_of(after, hand.max_chars) != [after]:
        raise CareError("the text has a line with nothing but §, which would make it several entries")

    def plan(_: Sequence[Event], now: State) -> tuple[Reversal, None]:
        if row.content not in now:
            raise CareError(f"{told} has changed meanwhile; look at it again")
        files = events_store.files(connection, row.target, reversal.homes_of([row.content], now))
        return reversal.exchange(row.content, after, now, files), None

    (change,), _ = _correct(
        connection, row.theme, {row.target: plan}, hand, execute=execute, command="edit", note={"edits": row.id}
    )
    executed = execute and not change.is_nothing
    if executed:
        audit.record(connection, hand.actor, "edit", theme=row.theme, subject=told, counts={"memories": 1})
    return Edit(told, row.theme, row.content, after, change.blocked, executed, row.target)


def _story(
    connection: Connection, name: RowName, theme: str | None, since: datetime | None, until: datetime | None
) -> list[Event]:
    shown = see.show(connection, name, theme)
    if isinstance(shown.row, StoredTurn):
        raise CareError(f"{name} is a turn, which has no history; only memories change")
    return [
        event for event in shown.history if (since is None or event.at >= since) and (until is None or event.at < until)
    ]


def _note(
    connection: Connection, hand: Hand, action: str, theme: str, subject: str, changes: Sequence[Reversal]
) -> None:
    counts = {
        "memories_removed": sum(len(change.remove) for change in changes),
        "memories_restored": sum(len(change.restore) for change in changes),
    }
    audit.record(connection, hand.actor, action, theme=theme, subject=subject, counts=counts)


def _told(target: Target, change: Reversal) -> TargetChange:
    return TargetChange(target, change.remove, change.restore, change.blocked)


def row_name(row: StoredMemory | StoredTurn) -> str:
    """How people name a row."""
    return ids.name_of(Kind.MEMORY if isinstance(row, StoredMemory) else Kind.TURN, row.id)
