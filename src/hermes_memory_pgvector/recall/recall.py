"""From a question to hits, within a Deadline.

Embedding the question may use a part of the time. When it fails or takes too long, recall falls back to keyword search,
and the answer says so. Database errors are raised to the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    DatabaseError,
    DatabaseUnavailable,
    DeadlineExceeded,
    EmbeddingError,
    EmbeddingMisconfigured,
    Held,
    MemoryPluginError,
    SchemaError,
)
from hermes_memory_pgvector.store import reach
from hermes_memory_pgvector.store.current_model import CurrentModel
from hermes_memory_pgvector.store.errors import concerns_everyone
from hermes_memory_pgvector.store.reach import UPKEEP, Reach, everywhere, within
from hermes_memory_pgvector.store.search import (
    Check,
    Connection,
    Meaning,
    Thresholds,
    Wording,
    count_searched,
    send,
    send_neighbours,
    verify_theme,
)
from hermes_memory_pgvector.text.lexemes import author_query, likely_speaker, question_terms
from hermes_memory_pgvector.text.secrets import NOTHING, Masker
from hermes_memory_pgvector.text.time_phrases import asks_when, named_period
from hermes_memory_pgvector.values import Hit, Question, Scope

logger = logging.getLogger(__name__)

EMBED_SHARE = 0.6
"""The part of the time that embedding may use; the rest is for the search."""
EVERY_ROW = 2**31 - 1
AMBIENT_CANDIDATES = 400
"""Rows compared for prefetch, where only a near hit is worth offering."""


class QueryEmbedder(Protocol):
    """What recall needs from an embedder."""

    @property
    def model(self) -> str:
        """The name its vectors are stored under."""

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float] | None:
        """The vector of a question, or None when the text has none."""


class RecallSettings(Protocol):
    """What the operator decides about recall."""

    @property
    def embed_timeout(self) -> float:
        """Seconds that embedding a question may take."""

    @property
    def hybrid_search(self) -> bool:
        """Whether keywords count beside vectors; without vectors they always do."""

    @property
    def exact(self) -> bool:
        """Whether every vector of a theme is compared."""

    @property
    def recency_half_life_days(self) -> float:
        """Days after which a hit counts half; 0 ignores age."""


Search = Callable[[Sequence[Question]], list["Answer"]]
"""Answers questions that share the same words, within the caller's deadline."""
Reading = Callable[[Deadline, Reach], AbstractContextManager[Connection]]
"""Lends a connection for one read: a transaction that sees what it says it is about, and ends at the deadline."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found."""

    hits: tuple[Hit, ...]
    degraded: str | None = None
    """What was left out of the search and why, in words for a model or a user; None when it was complete."""
    searched: int | None = None
    """Where nothing was found: how many rows were searched, counted up to store.search.COUNTED; None if unknown."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question as the search takes it."""

    meaning: Meaning | None
    wording: Wording
    degraded: str | None


class Recall:
    """Answers questions; thread-safe, holds no connection between them."""

    def __init__(
        self,
        reading: Reading,
        embedder: QueryEmbedder | None,
        settings: RecallSettings,
        current_model: CurrentModel | None = None,
        masker: Masker = NOTHING,
    ) -> None:
        self._reading = reading
        self._embedder = embedder
        self._settings = settings
        self._masker = masker
        self._current_model = current_model or CurrentModel()

    def search(self, question: Question, deadline: Deadline) -> Answer:
        """The best hits for a question; raises DatabaseError, or DeadlineExceeded when no time is left to search."""
        return self.search_together([question], deadline)[0]

    def search_together(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        """Answers to the same words for several kinds of hits: embedded once, searched in one round trip."""
        ready = self.prepare(questions[0], deadline)
        meaning, wording, degraded = ready.meaning, ready.wording, ready.degraded
        if meaning is None and not wording.terms:
            return [Answer((), degraded) for _ in questions]
        with self._reading(deadline, reach_of(questions)) as connection:
            pending = [
                send(
                    connection, question, _within_reach(question, meaning), wording, self.thresholds(question, meaning)
                )
                for question in questions
            ]
        # Results are read after the transaction, so that all statements and its end travel together.
        answers = [Answer(tuple(each.receive()), degraded) for each in pending]
        return self._with_sizes(
            questions,
            [
                self._with_neighbours(answer, deadline) if question.wants_neighbours and answer.hits else answer
                for question, answer in zip(questions, answers, strict=True)
            ],
            deadline,
        )

    def prepare(self, question: Question, deadline: Deadline) -> Prepared:
        """Read a question's words and embed it; without a vector that can be compared, words have to do."""
        # Rows are stored without secrets, and no embedding service gets to see one.
        question = replace(question, text=self._masker.mask(question.text).text)
        vector, degraded = self._embed(question.text, deadline)
        wording = read_wording(question)
        deadline.check()
        meaning = None
        if vector is not None:
            meaning = self._meaning(vector, deadline)
            degraded = None if meaning else _keywords_only("the stored vectors belong to another model")
        if meaning is not None and not self._settings.hybrid_search:
            wording = replace(wording, terms=())
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
            with self._reading(deadline, reach_of(asked)) as connection:
                sizes = count_searched(connection, asked)
        except (DatabaseError, DeadlineExceeded) as error:
            logger.debug("answering without the number of rows searched: %s", type(error).__name__)
            return answers
        counted = dict(zip(empty, sizes, strict=True))
        return [replace(answer, searched=counted.get(place)) for place, answer in enumerate(answers)]

    def _with_neighbours(self, answer: Answer, deadline: Deadline) -> Answer:
        """The same hits with the turns before and after them, or the hits alone when those cannot be read."""
        try:
            with self._reading(deadline, within(*(hit.theme for hit in answer.hits))) as connection:
                pending = send_neighbours(connection, answer.hits)
            return replace(answer, hits=tuple(pending.receive()))
        except (DatabaseError, DeadlineExceeded) as error:
            logger.debug("answering without neighbours: %s", type(error).__name__)
            return answer

    def verify(self, theme: str, deadline: Deadline, *, samples: int = 20) -> Check | None:
        """Compare sampled searches with brute force and widen the search where they differ; None without vectors."""
        with self._reading(deadline, UPKEEP) as connection:
            model = self._current_model.read(connection)
            return None if model is None else verify_theme(connection, model, theme, samples=samples)

    def _embed(self, text: str, deadline: Deadline) -> tuple[Sequence[float] | None, str | None]:
        if self._embedder is None:
            return None, _keywords_only("no embedder is configured")
        share = min(deadline.remaining() * EMBED_SHARE, self._settings.embed_timeout)
        try:
            return self._embedder.embed_query(text, deadline.earlier(share)), None
        except EmbeddingMisconfigured:
            return None, _keywords_only("a setting of the embedder is wrong")
        except (EmbeddingError, DeadlineExceeded) as error:
            logger.debug("keyword search only: %s", type(error).__name__)
            return None, _keywords_only("the embedding service is out of reach")

    def _meaning(self, vector: Sequence[float], deadline: Deadline) -> Meaning | None:
        """The vector with the model it can be compared within, if that is the model in use."""
        model = self._current_model.remembered()
        if model is None:
            with self._reading(deadline, reach.NOTHING) as connection:
                model = self._current_model.read(connection)
        if model is None or self._embedder is None:
            return None
        if model.dim != len(vector) or model.name != self._embedder.model:
            return None
        return Meaning(replace(model, candidates=EVERY_ROW) if self._settings.exact else model, vector)

    def thresholds(self, question: Question, meaning: Meaning | None) -> Thresholds:
        """What a hit must reach."""
        unrelated = meaning.model.min_similarity if meaning is not None else 0.0
        return Thresholds(
            unrelated if question.min_similarity is None else question.min_similarity,
            question.min_coverage,
            self._settings.recency_half_life_days,
            needs_both=question.is_ambient,
        )


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
        return answers


def reach_of(questions: Sequence[Question]) -> Reach:
    """What questions of one asker are about."""
    first = questions[0]
    if any(question.scope is Scope.ALL for question in questions):
        return everywhere(first.theme)
    return within(*(question.theme for question in questions), own="" if first.scope is Scope.NAMED else first.theme)


def _keywords_only(reason: str) -> str:
    return f"keyword search only: {reason}"


def _within_reach(question: Question, meaning: Meaning | None) -> Meaning | None:
    if meaning is None or not question.is_ambient or meaning.model.candidates == EVERY_ROW:
        return meaning
    return replace(meaning, model=replace(meaning.model, candidates=min(AMBIENT_CANDIDATES, meaning.model.candidates)))


def read_wording(question: Question) -> Wording:
    """What the words of a question tell the search."""
    return Wording(
        terms=question_terms(question.text),
        asks_when=asks_when(question.text),
        speaker=likely_speaker(question.text),
        authors=author_query(question.text),
        period=named_period(question.text, question.now or datetime.now(UTC)),
    )
