"""`scan`: secrets that are stored already, found and masked by the rules that keep new ones out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from hermes_memory_pgvector.care import audit, themes
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import browse, corrections, gate, other_words, vectors
from hermes_memory_pgvector.store.other_words import Text
from hermes_memory_pgvector.text.secrets import KEY_IN_METADATA, Masker
from hermes_memory_pgvector.values import Kind, MemoryOperation, Target
from hermes_memory_pgvector.writer.masking import without_secrets

PAGE = 500
STEP_SECONDS = 60.0
MOST_SAMPLES = 5

Key = tuple[str, int]
START: Key = ("", -1)


@dataclass(frozen=True, slots=True)
class Sample:
    """A row that holds a secret, as it will read."""

    name: str
    theme: str
    content: str


@dataclass(slots=True)
class Findings:
    """What a scan has found so far."""

    rows: Counter[str] = field(default_factory=Counter)
    """By what they are: turns, memories, events, questions, delegations, dead letters."""
    kinds: Counter[str] = field(default_factory=Counter)
    themes: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    unreadable: int = 0
    """Dead letters that no version of ours can read; they are left as they are."""


class Scan:
    """Goes through what is stored, table by table and page by page; each page is a transaction of its own."""

    def __init__(
        self,
        pool: Pool,
        masker: Masker,
        actor: Actor,
        *,
        wants_vectors: bool,
        theme: str | None,
        execute: bool,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._pool = pool
        self._masker = masker
        self._actor = actor
        self._wants_vectors = wants_vectors
        self._theme = theme
        self._execute = execute
        self._progress = progress
        self._found = Findings()

    def run(self) -> Findings:
        """Scan everything; an audit row says what was masked, also when only a part was."""
        with self._pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
            if self._theme is not None:
                themes.require(connection, self._theme)
            groups = other_words.histories(connection, self._theme)
        for theme, target in groups:
            self._memories(theme, target)
        self._walk(self._turns)
        self._walk(self._questions)
        self._walk(self._edges)
        if self._theme is None:
            self._dead_letters()
        return self._found

    def _walk(self, page: Callable[[Connection, Key], Key | None]) -> None:
        after: Key | None = START
        while after is not None:
            with self._step() as connection:
                after = page(connection, after)

    def _step(self) -> AbstractContextManager[Connection]:
        return self._pool.transaction(Deadline.after(STEP_SECONDS))

    def _memories(self, theme: str, target: Target) -> None:
        with self._step() as connection:
            if self._execute:
                gate.enter(connection)
                other_words.lock_memories(connection, theme, target)
            counts: Counter[str] = Counter()
            events = 0
            for item in other_words.operations(connection, theme, target):
                self._progress(1)
                found = _secrets_in(item, self._masker)
                events += bool(found)
                counts.update(found)
            entries = other_words.entries(connection, theme, target)
            held = {text: self._masker.mask(text) for text in entries}
            concerned = [masked for masked in held.values() if masked.counts]
            if not counts and not concerned:
                return
            self._note("events", theme, events, counts)
            self._note("memories", theme, len(concerned), Counter())
            self._found.samples += [Sample(f"{theme}/{target}", theme, masked.text) for masked in concerned]
            if self._execute:
                changed = other_words.reword_memories(connection, theme, target, self._masked)
                if self._wants_vectors:
                    vectors.enqueue(connection, [(name, Kind.MEMORY.value, row_id) for name, row_id in changed])
                self._record(connection, theme, {"events": events, "memories": len(concerned)})

    def _turns(self, connection: Connection, after: Key) -> Key | None:
        page = other_words.turns(connection, self._theme, after, PAGE)
        masked: Counter[str] = Counter()
        for text in page:
            self._progress(1)
            found = self._masker.mask(text.content)
            counts = Counter(found.counts)
            metadata = self._masker.mask_all(text.metadata, counts)
            if not counts:
                continue
            self._note("turns", text.theme, 1, counts)
            self._found.samples.append(Sample(f"t{text.id}", text.theme, found.text))
            if self._execute and self._mask_turn(connection, text, found.text, {**metadata, KEY_IN_METADATA: counts}):
                masked[text.theme] += 1
        for theme, number in sorted(masked.items()):
            self._record(connection, theme, {"turns": number})
        return (page[-1].theme, page[-1].id) if page else None

    def _mask_turn(self, connection: Connection, text: Text, content: str, metadata: dict[str, Any]) -> bool:
        gate.enter(connection)
        row = browse.find_turn(connection, text.id, text.theme)
        return row is not None and corrections.edit_turn(
            connection, row, content, metadata, wants_vector=self._wants_vectors
        )

    def _questions(self, connection: Connection, after: Key) -> Key | None:
        page = other_words.questions(connection, self._theme, after, PAGE)
        for theme, row_id, query in page:
            found = self._masker.mask(query)
            if found.counts:
                self._note("questions", theme, 1, Counter(found.counts))
                if self._execute:
                    other_words.set_question(connection, theme, row_id, found.text)
                    self._record(connection, theme, {"questions": 1})
        return page[-1][:2] if page else None

    def _edges(self, connection: Connection, after: Key) -> Key | None:
        page = other_words.edges(connection, self._theme, after, PAGE)
        for theme, row_id, metadata in page:
            counts: Counter[str] = Counter()
            masked = self._masker.mask_all(metadata, counts)
            if counts:
                self._note("delegations", theme, 1, counts)
                if self._execute:
                    other_words.set_edge(connection, theme, row_id, masked)
                    self._record(connection, theme, {"delegations": 1})
        return page[-1][:2] if page else None

    def _dead_letters(self) -> None:
        after: int | None = -1
        while after is not None:
            with self._step() as connection:
                page = other_words.dead_letters(connection, after, PAGE)
                for row_id, payload in page:
                    self._dead_letter(connection, row_id, payload)
                after = page[-1][0] if page else None

    def _dead_letter(self, connection: Connection, row_id: int, payload: bytes) -> None:
        try:
            items = codec.decode(payload)
        except ValueError:
            self._found.unreadable += 1
            return
        masked = [without_secrets(item, self._masker) for item in items]
        if masked != items:
            self._note("dead letters", items[0].theme, 1, Counter())
            if self._execute:
                other_words.set_dead_letter(connection, row_id, codec.encode(masked))
                self._record(connection, "", {"dead letters": 1})

    def _masked(self, operation: MemoryOperation) -> MemoryOperation:
        masked = without_secrets(operation, self._masker)
        assert isinstance(masked, MemoryOperation)
        return masked

    def _note(self, what: str, theme: str, rows: int, counts: Counter[str]) -> None:
        if rows:
            self._found.rows[what] += rows
            self._found.themes[theme] += rows
        self._found.kinds.update(counts)
        del self._found.samples[MOST_SAMPLES:]

    def _record(self, connection: Connection, theme: str, counts: dict[str, int]) -> None:
        audit.record(connection, self._actor, "scan", theme=theme, counts=counts)


def _secrets_in(operation: MemoryOperation, masker: Masker) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in _texts(operation):
        counts.update(masker.mask(text).counts)
    masker.mask_all(operation.metadata, counts)
    return counts


def _texts(operation: MemoryOperation) -> Iterator[str]:
    for name in ("content", "old_text", "previous"):
        text = getattr(operation, name, None)
        if text:
            yield text
