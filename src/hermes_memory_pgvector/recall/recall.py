"""From a question to hits, within a Deadline.

Embedding the question may use a part of the time. When it fails or takes too long, recall falls back to keyword search,
and the answer says so. Database errors are raised to the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    DatabaseDenied,
    DatabaseError,
    DatabaseUnavailable,
    DeadlineExceeded,
    EmbeddingError,
    EmbeddingMisconfigured,
    Held,
    MemoryPluginError,
    SchemaError,
)
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.errors import SCHEMA_STATES, concerns_everyone
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.store.models import CurrentModel, send_models
from hermes_memory_pgvector.store.search import (
    Connection,
    Meaning,
    Wording,
    count_searched,
    send,
    send_neighbours,
)
from hermes_memory_pgvector.text.secrets import NOTHING, Masker
from hermes_memory_pgvector.text.time_phrases import asks_about_now, asks_when, named_period
from hermes_memory_pgvector.text.words import asked, asks_for_several, likely_speaker, names_in
from hermes_memory_pgvector.values import EmbeddingModel, Hit, Question, Scope

logger = logging.getLogger(__name__)

EMBED_SHARE = 0.6
"""The part of the time that embedding may use; the rest is for the search."""
OTHER_MODEL = "keyword search only for some rows: this home embeds with another model than the database uses"
UNMEASURED = "keyword search only: the embedding model is not measured yet; the first process that embeds does it"


class QueryEmbedder(Protocol):
    """What recall needs from an embedder."""

    @property
    def model(self) -> str:
        """The name its vectors are stored under."""

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float] | None:
        """The vector of a question, or None when the text has none."""


Search = Callable[[Sequence[Question]], list["Answer"]]
"""Answers questions that share the same words, within the caller's deadline."""
Reading = Callable[[Deadline], AbstractContextManager[Connection]]
"""Lends a connection for one read: a transaction that ends at the deadline."""


class Answer(NamedTuple):
    """What was found."""

    hits: tuple[Hit, ...]
    degraded: str | None = None
    """What was left out of the search and why, in words for a model or a user; None when it was complete."""
    searched: int | None = None
    """Where nothing was found: how many rows were searched, counted up to store.search.COUNTED; None if unknown."""


class Prepared(NamedTuple):
    """A question as the search takes it."""

    meaning: Meaning | None
    wording: Wording
    degraded: str | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        return self.meaning is None and not self.wording.text


class Recall:
    """Answers questions; thread-safe, holds no connection between them."""

    def __init__(
        self,
        reading: Reading,
        embedder: QueryEmbedder | None,
        settings: Settings,
        current_model: CurrentModel | None = None,
        masker: Masker = NOTHING,
        pool: Pool | None = None,
    ) -> None:
        """`pool` is whose `reading` this is: where a theme lies in one of several buckets, it knows which."""
        self._reading = reading
        self._pool = pool
        self._embedder = embedder
        self._settings = settings
        self._masker = masker
        self._current_model = current_model or CurrentModel()

    def search(self, question: Question, deadline: Deadline) -> Answer:
        """The best hits for a question; raises DatabaseError, or DeadlineExceeded when no time is left to search."""
        return self.search_together([question], deadline)[0]

    def search_together(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        """Answers to the same words for several kinds of hits: embedded once, searched in one round trip."""
        return self._answer(questions, self.prepare(questions[0], deadline), deadline)

    def _answer(self, questions: Sequence[Question], ready: Prepared, deadline: Deadline) -> list[Answer]:
        if ready.is_empty:
            return [Answer((), ready.degraded) for _ in questions]
        try:
            answers = self._ask(questions, ready, deadline)
        except DatabaseDenied as error:
            # The vectors of the model we remember may have been dropped since; then it is no longer in use.
            if ready.meaning is None or error.sqlstate not in SCHEMA_STATES:
                raise
            self._current_model.forget()
            again = self.prepare(questions[0], deadline)
            if again.meaning is not None and again.meaning.model == ready.meaning.model:
                raise
            if again.is_empty:
                return [Answer((), again.degraded) for _ in questions]
            answers = self._ask(questions, again, deadline)
        return self._with_sizes(
            questions,
            [
                self._with_neighbours(answer, deadline) if question.wants_neighbours and answer.hits else answer
                for question, answer in zip(questions, answers, strict=True)
            ],
            deadline,
        )

    def _ask(self, questions: Sequence[Question], ready: Prepared, deadline: Deadline) -> list[Answer]:
        """The answers by one model's vectors or by words; the models as they are after that are remembered."""
        if self._pool is not None and questions[0].scope is Scope.ALL and self._pool.buckets(deadline) > 1:
            told = buckets.together(self._pool, deadline, lambda connection: self._send(connection, questions, ready))
            found, models = _merged(questions, list(told.found.values()))
            degraded = "; ".join(filter(None, (ready.degraded, told.shortfall))) or None
        else:
            with self._lend(deadline, questions[0]) as connection:
                receive = self._send(connection, questions, ready)
            # Results are read after the transaction, so that all statements and its end travel together.
            (found, models), degraded = receive(), ready.degraded
        if models:
            self._current_model.note(models)
        return [Answer(tuple(hits), degraded) for hits in found]

    def _send(
        self, connection: Connection, questions: Sequence[Question], ready: Prepared
    ) -> Callable[[], tuple[list[list[Hit]], tuple[EmbeddingModel, ...]]]:
        """Ask; what is returned receives the hits of each question, and the models as they are after that."""
        half_life = self._settings.recency_half_life_days
        pending = [send(connection, each, ready.meaning, ready.wording, half_life) for each in questions]
        models = None if self._embedder is None else send_models(connection)
        return lambda: ([receive()[0] for receive in pending], () if models is None else models())

    def _lend(self, deadline: Deadline, about: Question | Hit) -> AbstractContextManager[Connection]:
        """A connection to the tables that a theme lies in."""
        return self._reading(deadline) if self._pool is None else self._pool.reading(deadline, theme=about.theme)

    @property
    def half_life_days(self) -> float:
        """Days after which a hit counts half; 0 leaves age out."""
        return self._settings.recency_half_life_days

    def prepare(self, question: Question, deadline: Deadline) -> Prepared:
        """Read a question's words and embed it; without a vector that can be compared, words have to do."""
        # Rows are stored without secrets, and no embedding service gets to see one.
        question = replace(question, text=self._masker.mask(question.text).text)
        models = self._models(question, deadline) if self._embedder is not None else ()
        meaning, degraded = self._embed(question.text, models, deadline)
        wording = read_wording(question)
        deadline.check()
        if meaning is not None and not self._settings.hybrid_search:
            wording = wording._replace(text="")
        return Prepared(meaning, wording, degraded)

    def _with_sizes(self, questions: Sequence[Question], answers: list[Answer], deadline: Deadline) -> list[Answer]:
        """The same answers; those without hits also say how many rows were searched, if wanted and known."""
        empty = [
            place
            for place, (question, answer) in enumerate(zip(questions, answers, strict=True))
            if not answer.hits and not question.is_ambient and question.scope is not Scope.ALL
        ]
        if not empty:
            return answers
        try:
            asked = [questions[place] for place in empty]
            with self._lend(deadline, asked[0]) as connection:
                sizes = count_searched(connection, asked)
        except (DatabaseError, DeadlineExceeded) as error:
            logger.debug("answering without the number of rows searched: %s", type(error).__name__)
            return answers
        counted = dict(zip(empty, sizes, strict=True))
        return [answer._replace(searched=counted.get(place)) for place, answer in enumerate(answers)]

    def _with_neighbours(self, answer: Answer, deadline: Deadline) -> Answer:
        """The same hits with the turns before and after them, or the hits alone when those cannot be read."""
        try:
            is_one = self._pool is None or self._pool.buckets(deadline) == 1
            found: dict[int, Hit] = {}
            for theme in (None,) if is_one else dict.fromkeys(hit.theme for hit in answer.hits):
                places = [place for place, hit in enumerate(answer.hits) if theme in (None, hit.theme)]
                with self._lend(deadline, answer.hits[places[0]]) as connection:
                    pending = send_neighbours(connection, [answer.hits[place] for place in places])
                found |= zip(places, pending(), strict=True)
            return answer._replace(hits=tuple(hit for _, hit in sorted(found.items())))
        except (DatabaseError, DeadlineExceeded) as error:
            logger.debug("answering without neighbours: %s", type(error).__name__)
            return answer

    def _embed(
        self, text: str, models: tuple[EmbeddingModel, ...], deadline: Deadline
    ) -> tuple[Meaning | None, str | None]:
        """A question's vector with the model it can be compared within; else why there is none.

        It is of the model in use if we have an embedder for that, otherwise of one whose vectors are still there.
        """
        embedder = self._embedder
        if embedder is None:
            return None, _keywords_only("no embedder is configured")
        share = deadline.earlier(min(deadline.remaining() * EMBED_SHARE, self._settings.embed_timeout))
        # Without a model to compare with, an outage or a wrong setting is still worth telling.
        try:
            vector = embedder.embed_query(text, share)
        except EmbeddingMisconfigured:
            return None, _keywords_only("a setting of the embedder is wrong")
        except (EmbeddingError, DeadlineExceeded) as error:
            logger.debug("keyword search only: %s", type(error).__name__)
            return None, _keywords_only("the embedding service is out of reach")
        if vector is None:
            return None, None
        model = next((each for each in models if (each.name, each.dim) == (embedder.model, len(vector))), None)
        if model is None:
            return None, _keywords_only("the stored vectors belong to another model")
        if not model.is_measured:
            return None, UNMEASURED
        return Meaning(model, vector), None if model.is_current else OTHER_MODEL

    def _models(self, question: Question, deadline: Deadline) -> tuple[EmbeddingModel, ...]:
        models = self._current_model.remembered()
        if models:
            return models
        if self._pool is not None and question.scope is Scope.ALL:
            return buckets.any_of(self._pool, deadline, self._current_model.read)
        with self._lend(deadline, question) as connection:
            return self._current_model.read(connection)


class GuardedRecall:
    """Recall that says no at once while the database is known to be out of reach."""

    def __init__(
        self, recall: Recall, breaker: Breaker, *, hold: str, is_made: Callable[[], bool] = lambda: True
    ) -> None:
        """`is_made` is False while the writer is about to make the tables itself."""
        self._recall = recall
        self._breaker = breaker
        self._hold = hold
        self._is_made = is_made
        self.has_answered = False
        """Whether the database has ever answered."""

    def search(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        """As Recall.search_together; raises Held or DatabaseUnavailable at once when there is no database to ask."""
        if self._hold:
            raise Held(self._hold)
        if not self._breaker.allows():
            raise DatabaseUnavailable("the memory database is out of reach; it is tried again soon")
        try:
            answers = self._recall.search_together(questions, deadline)
        except MemoryPluginError as error:
            if concerns_everyone(error):
                self._breaker.failed(str(error), is_told=not isinstance(error, SchemaError) or self._is_made())
            else:
                # The fault is in this question: other callers may still get an answer.
                self._breaker.released()
            raise
        except BaseException:
            self._breaker.released()
            raise
        self._breaker.succeeded()
        self.has_answered = True
        return answers


def _merged(
    questions: Sequence[Question], told: Sequence[tuple[list[list[Hit]], tuple[EmbeddingModel, ...]]]
) -> tuple[list[list[Hit]], tuple[EmbeddingModel, ...]]:
    """The best of what several buckets found, for each question."""
    best = []
    for place, question in enumerate(questions):
        hits = [hit for found, _ in told for hit in found[place]]
        best.append(sorted(hits, key=lambda hit: (hit.rank, hit.ts, hit.id), reverse=True)[: question.limit])
    return best, next((models for _, models in told if models), ())


def _keywords_only(reason: str) -> str:
    return f"keyword search only: {reason}"


def read_wording(question: Question) -> Wording:
    """What the words of a question tell the search."""
    period = named_period(question.text, question.now or datetime.now(UTC))
    return Wording(
        text=asked(question.text),
        asks_when=asks_when(question.text),
        asks_several=asks_for_several(question.text),
        asks_now=period is None and asks_about_now(question.text),
        speaker=likely_speaker(question.text),
        names=names_in(question.text),
        period=period,
    )
