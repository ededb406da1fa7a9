"""Taking a poisoned batch out of every recall at once, and bringing it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hermes_memory_pgvector.care import audit, themes
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import gate, quarantine
from hermes_memory_pgvector.store.browse import Row
from hermes_memory_pgvector.store.quarantine import Concerned, Quarantine, Rule

SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Planned:
    """What a quarantine takes out of recall, before or after."""

    rule: Rule
    themes: tuple[Concerned, ...]
    samples: tuple[Row, ...]
    made: Quarantine | None = None

    @property
    def turns(self) -> int:
        """How many turns."""
        return sum(each.turns for each in self.themes)

    @property
    def memories(self) -> int:
        """How many memories."""
        return sum(each.memories for each in self.themes)

    @property
    def in_files(self) -> int:
        """How many of the memories stand in a MEMORY.md or USER.md."""
        return sum(each.in_files for each in self.themes)


def plan(connection: Connection, rule: Rule, actor: Actor, *, execute: bool) -> Planned:
    """Count what a rule is about and, if it is to be done, take it out of recall.

    A session that is named without an end is taken out with what it says from now on: the poison stands in its context.
    Any other rule ends now; what was said before and arrives late is held all the same.
    """
    if rule.session_id is None and rule.origin is None and rule.since is None:
        raise CareError("say what to quarantine: --session, --origin or --since")
    if rule.theme is not None:
        themes.require(connection, rule.theme)
    if rule.until is None and rule.session_id is None:
        rule = replace(rule, until=datetime.now(UTC))
    if rule.since is not None and rule.until is not None and rule.since >= rule.until:
        raise CareError("--since lies after --until, so nothing lies between them")
    if execute:
        # Whoever stores a row now has seen no quarantine yet; the next one will.
        gate.close(connection)
    found = tuple(quarantine.concerned(connection, rule))
    shown = tuple(quarantine.samples(connection, rule, SAMPLES))
    if not execute:
        return Planned(rule, found, shown)
    made = quarantine.hold(connection, rule, actor.name, actor.home_id)
    _note(connection, actor, "quarantine", made, made.turns, made.memories)
    return Planned(rule, found, shown, made)


def undo(connection: Connection, number: int, actor: Actor, *, execute: bool) -> Quarantine:
    """Bring a batch back into recall."""
    known = quarantine.listed(connection, number)
    if not known:
        raise CareError(f"there is no quarantine {number}; `quarantine --list` shows them")
    if known[0].undone_at is not None:
        raise CareError(f"quarantine {number} is over already")
    if not execute:
        return known[0]
    gate.close(connection)
    turns, memories = quarantine.release(connection, number)
    _note(connection, actor, "quarantine undo", known[0], turns, memories)
    return replace(known[0], turns=turns, memories=memories, undone_at=datetime.now(UTC))


def listed(connection: Connection) -> Sequence[Quarantine]:
    """All quarantines, the newest first."""
    return quarantine.listed(connection)


def _note(connection: Connection, actor: Actor, action: str, about: Quarantine, turns: int, memories: int) -> None:
    counts = {"turns": turns, "memories": memories}
    subject = f"quarantine {about.id}"
    audit.record(connection, actor, action, theme=about.rule.theme or "", subject=subject, counts=counts)
