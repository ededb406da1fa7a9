"""A search that says how it came to its hits: how near and which words, what a hit must reach, what took the time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.store.search import AskedTerm, Wording, send
from hermes_memory_pgvector.store.search_statement import MEANING_WEIGHT, SEARCHED
from hermes_memory_pgvector.values import EmbeddingModel, Hit, Question, Scope


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about."""

    question: Question
    hits: tuple[Hit, ...]
    terms: tuple[AskedTerm, ...]
    model: EmbeddingModel | None
    bar: float
    """What the best hit must reach; the others half of it."""
    bar_by_meaning: float
    """How many standard deviations reach it alone."""
    wording: Wording
    degraded: str | None
    milliseconds: Mapping[str, float]


def explain(recall: Recall, pool: Pool, question: Question, deadline: Deadline) -> Explanation:
    """Search as always, and tell the time each part takes."""
    started = time.perf_counter()
    ready = recall.prepare(question, deadline)
    prepared = time.perf_counter()
    connected: list[float] = []

    def ask(connection: Connection) -> tuple[list[Hit], list[AskedTerm]]:
        connected.append(time.perf_counter())
        half_life = recall.half_life_days
        return send(connection, question, ready.meaning, ready.wording, half_life, wants_terms=True)()

    shortfall = ""
    if question.scope is Scope.ALL and pool.buckets(deadline) > 1:
        told = buckets.each(pool, deadline, ask)
        hits = [hit for found, _ in told.found.values() for hit in found]
        hits = sorted(hits, key=lambda hit: (hit.rank, hit.ts, hit.id), reverse=True)[: question.limit]
        terms, shortfall = next(iter(told.found.values()))[1], told.shortfall
    else:
        with pool.transaction(deadline, theme=question.theme) as connection:
            hits, terms = ask(connection)
    searched = time.perf_counter()
    return Explanation(
        question=question,
        hits=tuple(hits),
        terms=tuple(terms),
        model=None if ready.meaning is None else ready.meaning.model,
        bar=float(SEARCHED[question.kind].bar),
        bar_by_meaning=round(float(SEARCHED[question.kind].bar) / MEANING_WEIGHT, 1),
        wording=ready.wording,
        degraded="; ".join(filter(None, (ready.degraded, shortfall))) or None,
        milliseconds={
            "embedding": round(1000 * (prepared - started), 1),
            "connection": round(1000 * (connected[0] - prepared), 1),
            "search": round(1000 * (searched - connected[0]), 1),
        },
    )
