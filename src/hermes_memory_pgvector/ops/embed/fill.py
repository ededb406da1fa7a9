"""Makes the vectors of a model that are missing, while agents write and ask.

Nothing but the rows says how far it is: whoever starts it again goes on where it was left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Embedder
from hermes_memory_pgvector.errors import CareError, DatabaseDenied, DatabaseUnavailable, EmbeddingUnavailable
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import models, vectors
from hermes_memory_pgvector.store.vectors import Key, Made, Wanting
from hermes_memory_pgvector.terminal.progress import Bar
from hermes_memory_pgvector.values import EmbeddingModel
from hermes_memory_pgvector.writer.chunks import SUBSTANTIVE_CHARS
from hermes_memory_pgvector.writer.embed_pending import vectors_of

P = ParamSpec("P")
T = TypeVar("T")
Read = Callable[[Connection], list[Key]]

BATCH_ROWS = 256
LAST_ROWS = 256
"""So many rows may be left when writers are asked to wait for the switch."""
LAST_SECONDS = 5.0
"""So long may embedding those take."""
DATABASE_SECONDS = 60.0
COUNT_SECONDS = 600.0
EVERY_ROW = 2**31 - 2
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.5, 30.0
MOST_WAIT_SECONDS = 3600.0
"""Whoever is away for longer does not come back by itself."""
GIVEN_UP = (
    "waited for {minutes:.0f} minutes, then gave up: {reason}. The vectors made so far are kept; to go on, run this"
    " again"
)
CANCELLED = "the change of the model was cancelled: its vectors are gone"


@dataclass(slots=True)
class Fill:
    """Gives rows their vectors of one model; for one thread."""

    pool: Pool
    embedder: Embedder
    model: EmbeddingModel
    settings: Settings
    bar: Bar
    embedded: int = 0
    """How many rows got their vectors here."""
    _without: dict[Key, bytes] = field(default_factory=dict)
    """Rows that the model has no vector for, with the digests of the texts it was asked about."""

    @property
    def without_vector(self) -> int:
        """How many rows the model has no vector for."""
        return len(self._without)

    def run(self) -> None:
        """Embed until only a few rows are left, which `finish` does in a moment.

        An embedder or a database that goes away is waited for, but not for ever.
        """
        left = self._patiently(self._count)
        self.bar.update(self.embedded, self.embedded + left)
        while self._run_through() > LAST_ROWS:
            # Of the rows that came meanwhile there are fewer each time.
            pass

    def finish(self, connection: Connection) -> bool:
        """Embed the last rows while nobody writes, on the connection that keeps them from it.

        False when there are too many of them, or the embedder does not answer in time.
        """
        rows: list[Wanting] = []
        for keys in self._pages(lambda read: read(connection)):
            rows += self._wanting(connection, keys)
            if len(rows) > LAST_ROWS:
                return False
        try:
            made, without = vectors_of(self.embedder, rows, Deadline.after(LAST_SECONDS)) if rows else ([], [])
        except EmbeddingUnavailable:
            return False
        for part in buckets.apart(connection, made, _theme_of):
            vectors.insert(connection, self.model, part)
        self._note(rows, without)
        return True

    def _run_through(self) -> int:
        """Embed every row that wants a vector, once, the newest first; how many there were."""
        before = self.embedded
        for keys in self._pages(lambda read: self._patiently(self._within, read)):
            rows = self._patiently(self._within, partial(self._wanting, keys=keys))
            if rows:
                self._patiently(self._make, rows)
        return self.embedded - before

    def _pages(self, call: Callable[[Read], list[Key]]) -> Iterator[list[Key]]:
        """The keys of the rows that want a vector, page by page: what comes meanwhile is newer, and not among them."""
        policy = self.settings.conversation_embed_policy
        shortest = SUBSTANTIVE_CHARS if policy == "substantive_only" else 0
        kinds: list[Callable[..., list[Key]]] = [
            models.missing_memories,
            partial(models.missing_turns, shortest=shortest),
        ]
        for read in kinds[:1] if policy == "none" else kinds:
            below = None
            while keys := call(partial(read, model=self.model, below=below, limit=BATCH_ROWS)):
                yield keys
                below = keys[-1][2]

    def _within(self, work: Callable[[Connection], T]) -> T:
        with self.pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            return work(connection)

    def _wanting(self, connection: Connection, keys: Sequence[Key]) -> list[Wanting]:
        return [row for row in vectors.texts(connection, keys) if self._without.get(row.key) != row.digest]

    def _make(self, rows: Sequence[Wanting]) -> None:
        made, without = vectors_of(self.embedder, rows, Deadline.after(self.settings.batch_embed_seconds))
        try:
            self._within(partial(self._store, made=made))
        except DatabaseDenied:
            if not self._within(lambda connection: models.exists(connection, self.model)):
                raise CareError(CANCELLED) from None
            raise
        self._note(rows, without)

    def _store(self, connection: Connection, made: Sequence[Made]) -> None:
        for part in buckets.apart(connection, made, _theme_of):
            vectors.insert(connection, self.model, part)
            if part and self.model.is_current:
                models.finish_made(connection, self.model, [item.row.key for item in part])

    def _note(self, rows: Sequence[Wanting], without: Sequence[Wanting]) -> None:
        self._without.update({row.key: row.digest for row in without})
        self.embedded += len(rows)
        self.bar.advance(len(rows))

    def _count(self) -> int:
        with self.pool.transaction(Deadline.after(COUNT_SECONDS)) as connection:
            return models.count_missing(connection, self.model, EVERY_ROW)

    def _patiently(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do one step, again and again while the embedder or the database is out of reach."""
        pause, wait = FIRST_PAUSE_SECONDS, Deadline.after(MOST_WAIT_SECONDS)
        while True:
            try:
                done = work(*args, **kwargs)
            except (EmbeddingUnavailable, DatabaseUnavailable) as error:
                if wait.is_over:
                    raise type(error)(GIVEN_UP.format(minutes=MOST_WAIT_SECONDS / 60, reason=error)) from None
                self.bar.waits_for(str(error))
                time.sleep(pause)
                pause = min(MOST_PAUSE_SECONDS, 2 * pause)
            else:
                self.bar.goes_on()
                return done


def _theme_of(made: Made) -> str:
    return made.row.theme
