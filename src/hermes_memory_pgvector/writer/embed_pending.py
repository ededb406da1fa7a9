"""Embeds rows that wait for a vector: those just stored, and those left over from an outage of the embedder.

All processes share one table of waiting rows and take rows from it on lease, so any process can finish what another
has begun.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from hermes_memory_pgvector.breaker import Breaker, BreakerStatus
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Embedder, ModelInfo
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL
from hermes_memory_pgvector.embedding.probe import measure
from hermes_memory_pgvector.errors import (
    DatabaseDenied,
    DatabaseError,
    EmbeddingError,
    EmbeddingMisconfigured,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from hermes_memory_pgvector.meters import EMBEDDED_ROWS, EMBEDDING_FAILURES, Meters
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.models import CurrentModel, current_of
from hermes_memory_pgvector.store.vectors import Made, Wanting
from hermes_memory_pgvector.values import EmbeddingModel
from hermes_memory_pgvector.writer.chunks import document_pieces, piece_chars

logger = logging.getLogger(__name__)

BATCH_ROWS = 64
REFUSED = "the embedder refuses its text at any length"
LEASE_MARGIN_SECONDS = 30.0
DATABASE_SECONDS = 30.0
RETURN_PAUSE_SECONDS = 10.0
AWAY_PAUSE_SECONDS = 30.0
HOLD_SECONDS = 30.0
LOOK_SECONDS = 300.0
TYPED_ROWS = 1000
MISMATCH_SECONDS = 5.0
"""How often we look whether the database's model has become ours."""
MISMATCH_PATIENCE_SECONDS = 60.0
"""Settings and `migrate` change one after the other; only what lasts longer than this is worth a line in the log."""
MIN_PAUSE_SECONDS = 0.1
REEMBED_COMMAND = "hermes-pgvector reembed"


class Backlog:
    """Embeds waiting rows. One thread calls `run`; any thread may call the rest."""

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        current_model: CurrentModel,
        *,
        embed_seconds: float,
        make_tables: Callable[[], bool] = lambda: False,
        meters: Meters | None = None,
    ) -> None:
        self._pool = pool
        self._embedder = embedder
        self._current_model = current_model
        self._embed_seconds = embed_seconds
        self._make_tables = make_tables
        self._meters = meters or Meters()
        self.breaker = Breaker("embedding of new rows", threshold=1, on_open=_outage_begins, on_close=_outage_ends)
        self._lock = threading.Lock()
        self._requested = 1
        self._served = 0
        self._look_again_at = 0.0
        self._typed_looked_at: dict[int, float] = defaultdict(lambda: -LOOK_SECONDS)
        self._usable: EmbeddingModel | None = None
        """The database's model when it was last found to be ours."""
        self.problem = ""
        self._problem_since = 0.0
        self._told_problem = ""
        self.embedded = 0
        self._batch_rows = BATCH_ROWS

    def request(self) -> None:
        """There may be rows that wait for a vector."""
        with self._lock:
            self._requested += 1

    def is_due(self) -> bool:
        """Whether to look for rows now."""
        return self._requested != self._served or time.monotonic() >= self._look_again_at

    def run(self, *, takes_typed: bool = False) -> float:
        """Embed one batch; return the seconds until the next one is due. `takes_typed`: also rows typed by hand."""
        if not self.is_due():
            return self._look_again_at - time.monotonic()
        if not self.breaker.allows():
            return max(0.1, self.breaker.retry_in())
        self._look_again_at = time.monotonic() + LOOK_SECONDS
        requested = self._requested
        try:
            more = self._run_batch(takes_typed=takes_typed)
        except EmbeddingError as error:
            self._meters.count(EMBEDDING_FAILURES, of="rows")
            hold = None if isinstance(error, EmbeddingUnavailable) else HOLD_SECONDS
            self.breaker.failed(str(error), hold_seconds=hold, is_told=not isinstance(error, EmbeddingMisconfigured))
            return max(0.1, self.breaker.retry_in())
        except BaseException:
            self.breaker.released()
            raise
        if more:
            self._look_again_at = 0.0
            return 0.0
        self._served = requested
        return 0.0 if self._requested != requested else max(0.0, self._look_again_at - time.monotonic())

    def _run_batch(self, *, takes_typed: bool) -> bool:
        model = self._usable_model()
        if model is None:
            self.breaker.released()
            self._look_again_at = time.monotonic() + MISMATCH_SECONDS
            return False
        more, failures = False, []
        count = self._pool.buckets(Deadline.after(DATABASE_SECONDS))
        for bucket in range(count):
            try:
                more = self._run_bucket(bucket, model, takes_typed=takes_typed) or more
            except DatabaseError as error:
                failures.append(error)
        if len(failures) == count:
            raise failures[0]
        if failures:
            self.breaker.released()
            self._look_again_at = min(self._look_again_at, time.monotonic() + AWAY_PAUSE_SECONDS)
        return more

    def _run_bucket(self, bucket: int, model: EmbeddingModel, *, takes_typed: bool) -> bool:
        lease = self._embed_seconds + LEASE_MARGIN_SECONDS
        with self._pool.transaction(Deadline.after(DATABASE_SECONDS), bucket=bucket) as connection:
            found = current_of(self._current_model.read(connection))
            if found is not None and found.id == model.id and model.is_measured and not found.is_measured:
                # This bucket was away when the model was measured.
                _note_scale(connection, model)
                found = model
            if found != model:
                # It has just changed: what we would make is of no use, or of less.
                self.breaker.released()
                return True
            rows, gone = vectors.claim(connection, limit=self._batch_rows, lease_seconds=lease)
            vectors.finish(connection, gone)
            if takes_typed and not rows and time.monotonic() - self._typed_looked_at[bucket] >= LOOK_SECONDS:
                # A row without meaning for the model gets no vector, and is found again: not at once.
                self._typed_looked_at[bucket] = time.monotonic()
                if vectors.enqueue_typed(connection, model, TYPED_ROWS):
                    self.breaker.released()
                    return True
            later = None if rows else vectors.seconds_until_next(connection)
        if later is not None:
            # Rows on lease elsewhere, or put off after a failure, become due later without a request.
            later_at = time.monotonic() + min(LOOK_SECONDS, max(MIN_PAUSE_SECONDS, later))
            self._look_again_at = later_at if bucket == 0 else min(self._look_again_at, later_at)
        if not rows:
            self.breaker.released()
            return bool(gone)
        try:
            made, without = vectors_of(self._embedder, rows, Deadline.after(self._embed_seconds))
        except EmbeddingError:
            # A slow embedder has time for fewer rows at once.
            self._batch_rows = max(1, len(rows) // 2)
            with self._pool.transaction(Deadline.after(DATABASE_SECONDS), bucket=bucket) as connection:
                vectors.give_back(connection, [row.key for row in rows], RETURN_PAUSE_SECONDS)
            raise
        self._batch_rows = min(BATCH_ROWS, 2 * self._batch_rows)
        try:
            with self._pool.transaction(Deadline.after(DATABASE_SECONDS), bucket=bucket) as connection:
                refused = [row for row in without if row.content.strip() and self._embedder.model != LOCAL_MODEL]
                vectors.store(connection, model, made, [row for row in without if row not in refused])
                vectors.give_up(connection, refused, REFUSED)
        except DatabaseDenied:
            # The model's vectors may have been dropped since; the rows are due again when the lease ends.
            self._read_model()
            raise
        self.embedded += len(rows)
        self._meters.count(EMBEDDED_ROWS, len(rows))
        self.breaker.succeeded()
        return True

    def _usable_model(self) -> EmbeddingModel | None:
        """The database's current model if this process embeds with the same one."""
        if self._usable is not None and self._usable in self._current_model.remembered()[:1]:
            return self._usable
        # The embedder first: without it there is no need for a connection.
        info = self._embedder.info(Deadline.after(self._embed_seconds))
        model = self._read_model()
        if model is None and self._make_tables():
            model = self._read_model()
        self._note(mismatch(model, info))
        problem = self.problem
        self._usable = None if problem or model is None else self._measured(model, info)
        return self._usable

    def _measured(self, model: EmbeddingModel, info: ModelInfo) -> EmbeddingModel:
        """The model, measured once for everybody: only then can recall judge what is near in it."""
        if model.is_measured and model.query_prefix is not None:
            return model
        try:
            scale = None if model.is_measured else measure(self._embedder, Deadline.after(self._embed_seconds))
        except EmbeddingRejected as error:
            # Rows get their vectors all the same; recall goes by words and says so.
            self._note(str(error))
            return model
        measured = None if scale is None else (scale.mean, scale.sd)

        def note(connection: Connection) -> EmbeddingModel:
            vectors.set_scale(connection, model, measured, (info.query_prefix, info.document_prefix))
            return current_of(self._current_model.read(connection)) or model

        told = buckets.each(self._pool, Deadline.after(DATABASE_SECONDS), note).found
        return next(iter(told.values()))

    def _note(self, problem: str) -> None:
        """Remember how the models differ, and log it once it has lasted."""
        now = time.monotonic()
        if problem != self.problem:
            self.problem, self._problem_since = problem, now
        if problem and problem != self._told_problem and now - self._problem_since >= MISMATCH_PATIENCE_SECONDS:
            logger.warning("%s", problem)
        elif problem or not self._told_problem:
            return
        else:
            logger.warning("the database's vectors are of this process's model again; waiting rows are embedded now")
        self._told_problem = problem

    def _read_model(self) -> EmbeddingModel | None:
        return current_of(buckets.any_of(self._pool, Deadline.after(DATABASE_SECONDS), self._current_model.read))


def _note_scale(connection: Connection, model: EmbeddingModel) -> None:
    assert model.unrelated_mean is not None
    assert model.unrelated_sd is not None
    scale, prefixes = (
        (model.unrelated_mean, model.unrelated_sd),
        (model.query_prefix or "", model.document_prefix or ""),
    )
    vectors.set_scale(connection, model, scale, prefixes)


def vectors_of(embedder: Embedder, rows: Sequence[Wanting], deadline: Deadline) -> tuple[list[Made], list[Wanting]]:
    """The vectors of these rows, and the rows that the model has none for."""
    size = piece_chars(embedder.model)
    pieces = [
        (row, chunk, text) for row in rows for chunk, text in enumerate(document_pieces(row.content, row.before, size))
    ]
    found = embedder.embed_documents([text for _, _, text in pieces], deadline)
    made = [
        Made(row, chunk, vector) for (row, chunk, _), vector in zip(pieces, found, strict=True) if vector is not None
    ]
    have = {item.row.key for item in made}
    return made, [row for row in rows if row.key not in have]


def mismatch(model: EmbeddingModel | None, info: ModelInfo) -> str:
    """How the database's model differs from ours; empty when they are the same."""
    if model is None:
        return "the database has no vector tables yet; rows wait for their vectors; run: hermes-pgvector migrate"
    if (model.name, model.dim) != (info.name, info.dim):
        return (
            f"the database's vectors are of {model.name} ({model.dim} dimensions), this process embeds with "
            f"{info.name} ({info.dim}); rows wait for their vectors; set embed_model to the database's model, "
            f"or change that for everybody with: {REEMBED_COMMAND}"
        )
    known = (model.query_prefix, model.document_prefix)
    if None not in known and known != (info.query_prefix, info.document_prefix):
        return (
            f"the database's vectors of {model.name} were made with other prefixes than this process uses; rows wait "
            "for their vectors; set embed_prefixes as where they were made"
        )
    return ""


def _outage_begins(status: BreakerStatus) -> None:
    logger.warning("%s; rows are stored without vectors until it is back", status.reason)


def _outage_ends(status: BreakerStatus) -> None:
    seconds = time.time() - (status.since or time.time())
    logger.warning("embedding works again after %.0f s; waiting rows are embedded now", seconds)
