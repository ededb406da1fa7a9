"""`forget --secrets`: keys, tokens and passwords that were stored before are masked, as new ones are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.ops.forget import stored
from hermes_memory_pgvector.ops.forget.stored import ANYTHING, ForgettableRow
from hermes_memory_pgvector.ops.memory import Memory, NamedRow
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import flatten, history, memories, vectors
from hermes_memory_pgvector.store.gate import theme_names
from hermes_memory_pgvector.store.turns import mend
from hermes_memory_pgvector.terminal.operation import Note, Plan
from hermes_memory_pgvector.text.secrets import KEY_IN_METADATA, Masker, masker_for
from hermes_memory_pgvector.values import TARGETS, AddMemory, Kind, Target
from hermes_memory_pgvector.writer.masking import without_secrets

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.memory_state import State

SAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Masking(Plan):
    """What is masked."""

    kinds: dict[str, int] = field(default_factory=dict)
    """How many secrets of each kind."""
    unreadable: int = 0
    """Rejected records that cannot be read."""


def mask(memory: Memory, theme: str | None, *, execute: bool) -> Masking:
    """Look through everything, and mask what is found, in one transaction."""
    from hermes_memory_pgvector.ops import audit

    settings = memory.parsed.settings
    with memory.rewriting(theme, execute=execute) as connection:
        # Whoever turned masking off for new rows may still want to know what is there.
        search = _Search(connection, masker_for(settings.mask_secrets or True), theme, execute, settings.embed_on_write)
        for _ in buckets.within(connection):
            search.run()
        counts = dict(search.counts)
        if execute and counts:
            audit.record(connection, memory.actor, "forget", theme=theme or "", subject="secrets", counts=counts)
    notes = [Note("note", f"{kind}: {count}") for kind, count in search.kinds.most_common()]
    if execute and counts:
        notes.append(Note("note", "whoever could read them may have: change what was stored in plain text"))
    if search.unreadable:
        notes.append(Note("warning", f"{search.unreadable} rejected records could not be read"))
    return Masking(
        "mask secrets in", "masked secrets in", counts, search.samples, execute, notes, kinds=dict(search.kinds),
        unreadable=search.unreadable,
    )  # fmt: skip


@dataclass(slots=True)
class _Search:
    connection: Connection
    masker: Masker
    theme: str | None
    execute: bool
    wants_vectors: bool
    counts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    samples: list[NamedRow] = field(default_factory=list)
    unreadable: int = 0

    def run(self) -> None:
        """Turn by turn, theme by theme, question by question; rejected records belong to no theme."""
        self._turns()
        for theme in theme_names(self.connection) if self.theme is None else [self.theme]:
            for target in TARGETS:
                self._memories(theme, target)
        asked = {**ANYTHING, "theme": self.theme}
        for theme, row_id, query, _ in run(self.connection, "forget/recalls", **asked).fetchall():
            masked = self.masker.mask(query or "")
            if masked.counts:
                self._note("questions", masked.counts)
                self._write("forget/set_question", theme=theme, id=row_id, query=masked.text)
        if self.theme is None:
            for row_id, _, items in stored.letters(self.connection):
                masked_items = [without_secrets(item, self.masker) for item in items or ()]
                self.unreadable += items is None
                if items and masked_items != items:
                    self._note("rejected", {})
                    self._write("forget/set_letter", id=row_id, payload=codec.encode(masked_items))

    def _turns(self) -> None:
        found: list[ForgettableRow] = []
        for row in stored.rows(self.connection, "t", {**ANYTHING, "theme": self.theme}):
            masked = self.masker.mask(row.content)
            counts = Counter(masked.counts)
            told = self.masker.mask_all(row.metadata, counts)
            if counts:
                self._note("turns", counts, NamedRow(row.name, row.theme, masked.text))
                found.append(row._replace(content=masked.text, metadata={**told, KEY_IN_METADATA: dict(counts)}))
        for row in found:
            told = json.dumps(row.metadata)
            self._write("forget/set_turn", theme=row.theme, id=row.id, content=row.content, metadata=told)
        if self.execute and found:
            vectors.drop(self.connection, Kind.TURN, [(row.theme, row.id) for row in found])
            mend(self.connection, {(row.theme, row.place): None for row in found})
            if self.wants_vectors:
                vectors.enqueue(self.connection, [(row.theme, Kind.TURN.value, row.id) for row in found])

    def _memories(self, theme: str, target: Target) -> None:
        """Entries in other words, and a history of nothing but them: a part of the old words would be of none."""
        before = memories.entries(self.connection, theme, target)
        events = history.of_theme(self.connection, theme, target)
        concerned = 0
        for event in events:
            counts: Counter[str] = Counter()
            self.masker.mask_all([event.content, event.old_text, event.previous, event.metadata], counts)
            concerned += bool(counts)
            self.kinds.update(counts)
        after, masked = self._masked(before)
        changed = [content for content in before if content not in after]
        if not concerned and not masked:
            return
        self.counts["events"] += concerned
        self.counts["memories"] += masked
        self.samples += [
            NamedRow(f"m{before[content].id}", theme, self.masker.mask(content).text) for content in changed
        ]
        del self.samples[SAMPLES:]
        if not self.execute:
            return
        rest = flatten.flattened(events, flatten.shape(events))
        flatten.apply(self.connection, theme, rest)
        for event in rest.of(events):
            told = without_secrets(event.operation(), self.masker)
            assert isinstance(told, AddMemory)
            metadata = json.dumps(dict(told.metadata))
            self._write("forget/set_event", theme=theme, id=event.id, content=told.content, metadata=metadata)
        new = memories.set_entries(self.connection, theme, target, before, after)
        if self.wants_vectors:
            vectors.enqueue(self.connection, [(name, Kind.MEMORY.value, row_id) for name, row_id in new])

    def _masked(self, before: State) -> tuple[State, int]:
        """The entries in other words, and of how many; of two that say the same then, the one that did before stays."""
        after: State = {}
        masked = 0
        for entry in before.values():
            counts: Counter[str] = Counter()
            content = self.masker.mask_all(entry.content, counts)
            metadata = self.masker.mask_all(dict(entry.metadata), counts)
            if counts:
                masked += 1
                metadata[KEY_IN_METADATA] = dict(counts)
            kept = after.get(content) or before.get(content) or entry
            told = metadata if kept is entry else kept.metadata
            after[content] = replace(kept, content=content, metadata=told, homes={**entry.homes, **kept.homes})
        return after, masked

    def _note(self, what: str, kinds: Mapping[str, int], sample: NamedRow | None = None) -> None:
        self.counts[what] += 1
        self.kinds.update(kinds)
        if sample is not None and len(self.samples) < SAMPLES:
            self.samples.append(sample)

    def _write(self, name: Any, **values: Any) -> None:
        if self.execute:
            run(self.connection, name, **values)
