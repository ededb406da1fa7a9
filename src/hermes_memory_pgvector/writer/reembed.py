"""Makes the vectors of a new model beside those in use, until every row that has one of the old has one of the new.

Nothing but the rows themselves says how far it is: whoever starts it again goes on where it was left. Rows that are
stored meanwhile get their vector of the model in use from whoever embeds for recall, and the new one from here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Embedder
from hermes_memory_pgvector.errors import CareError, DatabaseUnavailable, EmbeddingUnavailable, MemoryPluginError
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import reembedding, vectors
from hermes_memory_pgvector.store.vectors import Key, Made, Wanting
from hermes_memory_pgvector.values import EmbeddingModel, Kind
from hermes_memory_pgvector.writer.chunks import document_pieces, piece_chars

P = ParamSpec("P")
T = TypeVar("T")

BATCH_ROWS = 256
LAST_ROWS = 256
"""So many rows may be left when writers are asked to wait for the switch."""
LAST_SECONDS = 5.0
"""So long may embedding those take."""
DATABASE_SECONDS = 60.0
COUNT_SECONDS = 600.0
FIRST_PAUSE_SECONDS = 0.5
MOST_PAUSE_SECONDS = 30.0
MOST_WAIT_SECONDS = 3600.0
"""Whoever is away for longer does not come back by itself."""
GIVEN_UP = (
    "waited for {minutes:.0f} minutes, then gave up: {reason}. The vectors made so far are kept, and recall goes on"
    " with the model in use; to go on: hermes-pgvector reembed"
)
TOO_FAST = (
    "rows are written as fast as they are embedded; it goes on, and is done at a quieter time or with a higher rate"
)
RATE_SECONDS = 30.0
"""The rate that is reported is that of the last half minute or so."""


class Cancelled(CareError):
    """the change of the model was cancelled"""


class Throttle:
    """Lets at most so many rows pass per second; 0 lets all pass."""

    def __init__(
        self, rate: float, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.rate = rate
        self._now = now
        self._sleep = sleep
        self._free_at = now()

    def batch(self, most: int) -> int:
        """How many rows to send together, so that they do not come in bursts of more than a second."""
        return most if not self.rate else max(1, min(most, int(self.rate)))

    def take(self, rows: int) -> None:
        """Wait until these rows may pass."""
        if not self.rate:
            return
        wait = self._free_at - self._now()
        if wait > 0:
            self._sleep(wait)
        self._free_at = max(self._now(), self._free_at) + rows / self.rate


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is."""

    done: int
    total: int
    rate: float
    """Rows per second."""
    problem: str = ""
    """What it waits for; empty while it goes on."""


class Reembed:
    """Makes the vectors of one new model; for one thread."""

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        former: EmbeddingModel,
        model: EmbeddingModel,
        *,
        embed_seconds: float,
        throttle: Throttle,
        watch: Callable[[Progress], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._pool = pool
        self._embedder = embedder
        self._former = former
        self._model = model
        self._embed_seconds = embed_seconds
        self._throttle = throttle
        self._watch = watch
        self._pause = pause
        self._without: dict[Key, bytes] = {}
        """Rows that the model has no vector for, with the digests of the texts it was asked about."""
        self._done = self._total = 0
        self._pace = _Pace()
        self.embedded = 0
        """How many rows got their vectors here."""

    def run(self) -> None:
        """Embed until only a few rows are left, which `finish` does in a moment; Cancelled when somebody says so.

        An embedder or a database that goes away is waited for, but not for ever.
        """
        self._patiently(self._count)
        before = None
        while (rows := self._run_through()) > LAST_ROWS:
            # Of the rows that came meanwhile there are fewer each time, unless they come too fast.
            self._patiently(self._count, TOO_FAST if before is not None and rows >= before else "")
            before = rows

    def finish(self, connection: Connection) -> bool:
        """Embed the last rows while nobody writes, on the connection that keeps them from it.

        False when there are too many of them, or the embedder does not answer in time.
        """
        rows: list[Wanting] = []
        for keys in _pages(lambda kind, after: self._wanting_keys(connection, kind, after)):
            rows += self._wanting(connection, keys)
            if len(rows) > LAST_ROWS:
                return False
        if rows:
            try:
                made, without = self._embed(rows, Deadline.after(LAST_SECONDS))
            except EmbeddingUnavailable:
                return False
            vectors.insert(connection, self._model, made)
            self._note(rows, without)
        return True

    @property
    def without_vector(self) -> int:
        """How many rows the new model has no vector for."""
        return len(self._without)

    def _run_through(self) -> int:
        """Embed every row that wants a vector, once; how many there were."""
        before = self.embedded
        for keys in _pages(lambda kind, after: self._patiently(self._next_page, kind, after)):
            self._embed_page(keys)
        return self.embedded - before

    def _embed_page(self, keys: Sequence[Key]) -> None:
        rows = self._patiently(self._read, keys)
        size = self._throttle.batch(BATCH_ROWS)
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            self._throttle.take(len(part))
            self._patiently(self._make, part)

    def _next_page(self, kind: Kind, after: tuple[str, int]) -> Sequence[Key]:
        with self._pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            return self._wanting_keys(connection, kind, after)

    def _wanting_keys(self, connection: Connection, kind: Kind, after: tuple[str, int]) -> Sequence[Key]:
        return reembedding.wanting(connection, self._former, self._model, kind, after, BATCH_ROWS)

    def _read(self, keys: Sequence[Key]) -> list[Wanting]:
        with self._pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            return self._wanting(connection, keys)

    def _wanting(self, connection: Connection, keys: Sequence[Key]) -> list[Wanting]:
        found = vectors.texts(connection, keys)
        return [row for row in found if self._without.get(row.key) != row.digest]

    def _make(self, rows: Sequence[Wanting]) -> None:
        made, without = self._embed(rows, Deadline.after(self._embed_seconds))
        with self._pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            vectors.insert(connection, self._model, made)
        self._note(rows, without)
        self._say()

    def _embed(self, rows: Sequence[Wanting], deadline: Deadline) -> tuple[list[Made], list[Wanting]]:
        size = piece_chars(self._model.name)
        pieces = [(row, chunk, text) for row in rows for chunk, text in enumerate(document_pieces(row, size))]
        found = self._embedder.embed_documents([text for _, _, text in pieces], deadline)
        made = [
            Made(row, chunk, vector)
            for (row, chunk, _), vector in zip(pieces, found, strict=True)
            if vector is not None
        ]
        have = {item.row.key for item in made}
        return made, [row for row in rows if row.key not in have]

    def _note(self, rows: Sequence[Wanting], without: Sequence[Wanting]) -> None:
        self._without.update({row.key: row.digest for row in without})
        self.embedded += len(rows)
        self._done += len(rows)
        self._total = max(self._total, self._done)
        self._pace.note(len(rows))

    def _count(self, problem: str = "") -> None:
        with self._pool.transaction(Deadline.after(COUNT_SECONDS)) as connection:
            made, wanting = reembedding.count(connection, self._former, self._model)
        self._done, self._total = made, made + wanting
        self._say(problem)

    def _say(self, problem: str = "") -> None:
        """Tell the database and whoever watches how far it is; Cancelled when there is nothing to be done any more."""
        progress = Progress(self._done, self._total, self._pace.rate(), problem)
        self._watch(progress)
        with self._pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            goes_on = reembedding.note_progress(
                connection,
                self._model,
                done=progress.done,
                total=progress.total,
                rate=progress.rate,
                problem=progress.problem,
            )
        if not goes_on:
            raise Cancelled

    def _patiently(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do one step, again and again while the embedder or the database is out of reach."""
        pause = FIRST_PAUSE_SECONDS
        wait = Deadline.after(MOST_WAIT_SECONDS)
        while True:
            try:
                return work(*args, **kwargs)
            except (EmbeddingUnavailable, DatabaseUnavailable) as error:
                if wait.is_over:
                    raise type(error)(GIVEN_UP.format(minutes=MOST_WAIT_SECONDS / 60, reason=error)) from None
                self._wait(error, pause)
                pause = min(MOST_PAUSE_SECONDS, 2 * pause)

    def _wait(self, error: MemoryPluginError, seconds: float) -> None:
        try:
            self._say(str(error))
        except DatabaseUnavailable:
            self._watch(Progress(self._done, self._total, 0.0, str(error)))
        self._pause(seconds)


def _pages(read: Callable[[Kind, tuple[str, int]], Sequence[Key]]) -> Iterator[Sequence[Key]]:
    """The keys of all rows that want a vector, once, page by page.

    A page that is not full is the last one. Whoever asked again until there is none would follow the last theme that is
    written to: with many rows a page takes so long that there is always another row, and the other themes fall behind.
    """
    for kind in Kind:
        after = reembedding.START
        while keys := read(kind, after):
            yield keys
            if len(keys) < BATCH_ROWS:
                break
            after = (keys[-1][0], keys[-1][2])


class _Pace:
    """How many rows are done per second, lately."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._rows = 0
        self._rate = 0.0

    def note(self, rows: int) -> None:
        self._rows += rows
        took = time.monotonic() - self._since
        if took >= RATE_SECONDS:
            self._rate = self._rows / took
            # Half of it counts on, so that the figure moves gently.
            self._since, self._rows = time.monotonic() - took / 2, self._rows // 2

    def rate(self) -> float:
        took = time.monotonic() - self._since
        return self._rows / took if took > 0.5 else self._rate
