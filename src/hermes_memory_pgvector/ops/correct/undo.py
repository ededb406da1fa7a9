"""`undo`: put back what an event changed, or a theme's memories as they were at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops.correct.changing import (
    Background,
    Correction,
    Drafter,
    Rewording,
    carry_out,
    past,
)
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.values import TARGETS, Target

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection


def undo(
    memory: Memory, *, event: RecordName | None, to: datetime | None, theme: str | None, execute: bool
) -> Correction:
    """Put back what was."""
    if (event is None) == (to is None) or (to is not None and theme is None):
        raise UsageError("name an event (e5), or a time and a theme: --to 2h --theme market")
    with memory.reading(theme) as connection:
        if event is not None:
            draft = _event(memory, connection, event, theme)
        else:
            assert to is not None
            assert theme is not None
            draft = _time(memory, connection, theme, to)
    executed = execute and bool(draft.operations)
    subject = f"event {event}" if to is None else to.astimezone(UTC).isoformat(timespec="seconds")
    notes = carry_out(memory, draft, "undo", subject) if executed else []
    in_files = {each.new for exchanges in draft.exchanges.values() for each in exchanges}
    recalled = [content for content in draft.texts("+") if content not in in_files]
    if recalled:
        told = "what comes back is recalled, but stands in no file: to have it in the prompt, add it there"
        notes.append(Note("note", told))
    return draft.plan(executed=executed, notes=notes)


def _event(memory: Memory, connection: Connection, event: RecordName, theme: str | None) -> Drafter:
    from hermes_memory_pgvector.store import history

    found = history.find(connection, event.number, theme)
    if found is None:
        raise CareError(f"there is no event {event}; `list events` shows them")
    own_theme, target = found
    known = past(connection, own_theme, target)
    effect = next(each for each in history.replay(known.events) if each.event.id == event.number)
    if not effect.came and not effect.gone:
        why = "what it wrote was there already"
        if effect.event.action == "remove":
            why = "what it was to take away was not there, or stays because another home holds it"
        raise CareError(f"event {event} changed no memory: {why}")
    came = [content for content in effect.came if content in known.now]
    gone = [content for content in effect.gone if content not in known.now]
    if not came and not gone:
        raise CareError(
            f"event {event} changed nothing that is still so: what it wrote is gone, what it took away is there"
        )
    drafter = Drafter(memory, connection, own_theme, {"command": "undo", "undoes": event.number})
    drafter.change(known, _paired(target, came, gone))
    if drafter.left:
        # All of it, or nothing: half an event undone is another event.
        drafter.operations.clear()
        drafter.exchanges.clear()
        drafter.changes.clear()
        drafter.memories = 0
    return drafter


def _paired(target: Target, came: list[str], gone: list[str]) -> Iterator[Rewording]:
    if len(came) == len(gone) == 1:
        yield Rewording(target, came[0], gone[0])
        return
    yield from (Rewording(target, content, None) for content in came)
    yield from (Rewording(target, None, content) for content in gone)


def _time(memory: Memory, connection: Connection, theme: str, at: datetime) -> Drafter:
    if at > datetime.now(UTC):
        raise CareError("that time has not come yet; give one in the past")
    pasts = {target: past(connection, theme, target) for target in TARGETS}
    _require_history(memory, theme, at, pasts)
    drafter = Drafter(memory, connection, theme, {"command": "undo", "undoes_to": at.isoformat()})
    for target, known in pasts.items():
        drafter.change(known, _toward(target, known, at))
    return drafter


def _toward(target: Target, known: Background, at: datetime) -> Iterator[Rewording]:
    from hermes_memory_pgvector.store import history

    wanted = history.state_at(known.events, at)
    missing = [content for content in wanted if content not in known.now]
    names = history.former_words(known.events, at)
    for content in known.now:
        if content in wanted:
            continue
        former = names.get(content)
        if former in missing:
            missing.remove(former)
            yield Rewording(target, content, former)
        else:
            yield Rewording(target, content, None)
    yield from (Rewording(target, None, content) for content in missing)


def _require_history(memory: Memory, theme: str, at: datetime, pasts: dict[Target, Background]) -> None:
    """Refuse a time of which the history is no longer known: what it held would be taken for nothing."""
    days = memory.parsed.settings.history_days
    since = datetime.now(UTC) - timedelta(days=days)
    if days and at < since:
        raise CareError(
            f"the history is kept for {days} days (history_days), so what {theme} held at that time is not known; give"
            f" a time after {since:%Y-%m-%d %H:%M}"
        )
    oldest = min((event.at for known in pasts.values() for event in known.events), default=None)
    if oldest is not None and at < oldest:
        raise CareError(
            f"the history of {theme} begins at {oldest.astimezone(UTC):%Y-%m-%d %H:%M:%S}; what it held before is not"
            " known, and `forget` is what deletes everything"
        )


UNDO: Final = Operation(
    "undo",
    "put back what an event changed, or a theme's memories as they were",
    (
        Option("event", "e5, as `list events` names it", parse.event_name, metavar="EVENT"),
        Option("--to", f"make the memories of --theme those of then: {parse.FORMS}", parse.moment, metavar="TIME"),
        Option("--theme", "the theme", parse.filled, metavar="THEME"),
    ),
    undo,
    (
        ("undo e57", "show what undoing event 57 would change"),
        ("undo e57 --execute", "undo it; this is an event too, and can be undone"),
        ("undo --to 2h --theme marketing", "what two hours ago was otherwise"),
    ),
    group="correct",
    changes=True,
)  # fmt: skip
