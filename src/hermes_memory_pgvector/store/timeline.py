"""What operations on memories made of the memory, one after the other. Pure.

The rules are those of `store/memory_state.py`; here they are replayed to tell what each operation changed, what a theme
held at a time, and how an entry came to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.store.memory_state import Entry, State, apply, fold


@dataclass(frozen=True, slots=True)
class Effect:
    """What one operation changed: the entries it concerned, before and after; None where there was none."""

    event: Event
    before: Mapping[str, Entry | None]
    after: Mapping[str, Entry | None]

    @property
    def gone(self) -> tuple[str, ...]:
        """Entries that were there before it and not after."""
        return tuple(content for content, entry in self.before.items() if entry is not None and self._lost(content))

    @property
    def came(self) -> tuple[str, ...]:
        """Entries that were there after it and not before."""
        return tuple(content for content, entry in self.before.items() if entry is None and not self._lost(content))

    def _lost(self, content: str) -> bool:
        return self.after.get(content) is None


def replay(events: Iterable[Event]) -> Iterator[Effect]:
    """What each operation changed, in the order they were made."""
    state: State = {}
    for event in events:
        before = apply(state, event.operation())
        yield Effect(event, before, {content: state.get(content) for content in before})


def last_known(events: Iterable[Event]) -> State:
    """Every entry there ever was, as it was last."""
    known: State = {}
    for effect in replay(events):
        known.update({content: entry for content, entry in effect.after.items() if entry is not None})
    return known


def state_of(events: Iterable[Event]) -> State:
    """What the operations made together."""
    return fold(event.operation() for event in events)


def state_at(events: Iterable[Event], at: datetime) -> State:
    """What a theme held at a time: what the operations made until then had made."""
    return state_of(event for event in events if event.at <= at)


def former_words(events: Iterable[Event], at: datetime) -> dict[str, str]:
    """What the entries that were reworded since a time said then, by what they say now."""
    names: dict[str, str] = {}
    for effect in replay(events):
        if effect.event.at > at and len(effect.came) == len(effect.gone) == 1:
            (came,), (gone,) = effect.came, effect.gone
            names[came] = names.pop(gone, gone)
    return names


def lineage(events: Sequence[Event], content: str) -> tuple[Event, ...]:
    """How the entry of this content came to be: the operations that made it what it is, oldest first."""
    stories: dict[str, list[Event]] = {}
    for effect in replay(events):
        inherited = [event for gone in effect.gone for event in stories.pop(gone, [])]
        for came in effect.came:
            stories[came] = [*inherited, effect.event]
        if not effect.came and not effect.gone:
            for touched, entry in effect.after.items():
                if entry is not None and effect.before[touched] != entry:
                    stories.setdefault(touched, []).append(effect.event)
    return tuple(stories.get(content, ()))
