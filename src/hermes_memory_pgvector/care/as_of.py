"""Recall as it would have answered at a time: from the memories and turns of then."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hermes_memory_pgvector.care import themes, timeline
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.engine import Engine
from hermes_memory_pgvector.errors import CareError, EmbeddingError
from hermes_memory_pgvector.recall.recall import Answer
from hermes_memory_pgvector.store import as_of, history, vectors
from hermes_memory_pgvector.store.reach import OPERATOR, OVERVIEW
from hermes_memory_pgvector.store.search import search
from hermes_memory_pgvector.store.vectors import Made, Wanting
from hermes_memory_pgvector.values import TARGETS, Kind, Question, Scope
from hermes_memory_pgvector.writer.chunks import document_pieces


def recall_at(engine: Engine, questions: Sequence[Question], at: datetime, deadline: Deadline) -> list[Answer]:
    """Answers from the state of a theme at a time; turns that were deleted since are gone."""
    if any(question.scope is Scope.ALL for question in questions):
        raise CareError("the past is searched theme by theme; name one with --theme")
    with engine.pool.transaction(deadline, reach=OVERVIEW) as connection:
        themes.require(connection, questions[0].theme)
    return [
        _memories(engine, question, at, deadline)
        if question.kind is Kind.MEMORY
        else engine.search([_earlier(question, at)], deadline)[0]
        for question in questions
    ]


def _earlier(question: Question, at: datetime) -> Question:
    return replace(question, until=at if question.until is None else min(question.until, at), now=at)


def _memories(engine: Engine, question: Question, at: datetime, deadline: Deadline) -> Answer:
    asked = replace(question, now=at)
    ready = engine.recall.prepare(asked, deadline)
    thresholds = engine.recall.thresholds(asked, ready.meaning)
    model = None if ready.meaning is None else ready.meaning.model
    # A name that no theme has, and that scope `all` would not look into.
    scratch = f"dm-as-of-{secrets.token_hex(8)}"
    degraded = ready.degraded
    with engine.pool.transaction(deadline, reach=OPERATOR) as connection, connection.transaction(force_rollback=True):
        states = {
            target: timeline.heard_at(
                history.of_theme(connection, question.theme, target)[0],
                at,
                as_of.muted(connection, question.theme, target),
            )
            for target in TARGETS
        }
        wanting = as_of.put(connection, scratch, question.theme, states, model)
        if wanting and model is not None:
            try:
                vectors.store(connection, model, _made(engine, wanting, deadline), [])
            except EmbeddingError:
                degraded = (
                    "memories that are gone today were found by words only: the embedding service is out of reach"
                )
        hits = search(connection, replace(asked, theme=scratch), ready.meaning, ready.wording, thresholds)
    return Answer(tuple(replace(hit, theme=question.theme, id=0) for hit in hits), degraded)


def _made(engine: Engine, wanting: Sequence[Wanting], deadline: Deadline) -> list[Made]:
    pieces = [(row, chunk, text) for row in wanting for chunk, text in enumerate(document_pieces(row))]
    found = engine.embedder.embed_documents([text for _, _, text in pieces], deadline)
    return [
        Made(row, chunk, vector) for (row, chunk, _), vector in zip(pieces, found, strict=True) if vector is not None
    ]
