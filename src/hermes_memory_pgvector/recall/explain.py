"""A search that says how it came to its hits: what each channel found, what a hit must reach, what took the time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.store import explain as channels_of
from hermes_memory_pgvector.store.search import search
from hermes_memory_pgvector.text.time_phrases import Period
from hermes_memory_pgvector.values import Hit, Question, Role


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A word of the question and how much it counts."""

    word: str
    weight: float
    """Its share of the question, by rarity."""
    is_absent: bool
    """Whether no row contains it."""


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    """A hit and its place in each channel."""

    hit: Hit
    meaning_place: int | None
    """Its place among the rows nearest by meaning; None when it was not among them."""
    words_place: int | None
    """Its place among the rows found by words."""
    words: tuple[str, ...]
    """The words of the question it contains."""
    words_share: float
    """How much of the question these are, by rarity."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about."""

    question: Question
    hits: tuple[ExplainedHit, ...]
    terms: tuple[ExplainedTerm, ...]
    model: str | None
    min_similarity: float
    min_coverage: float
    needs_both: bool
    candidates: int | None
    """How many rows are compared exactly, at most."""
    near: int
    """How many rows meaning found."""
    by_words: int
    """How many rows words found."""
    asks_when: bool
    speaker: Role | None
    period: Period | None
    """The time that the question names."""
    degraded: str | None
    milliseconds: Mapping[str, float]


def explain(
    recall: Recall, pool: Pool, question: Question, deadline: Deadline, *, asks_meaning: bool = True
) -> Explanation:
    """Search as always, then ask each channel by itself.

    What meaning finds alone takes as long as the search; without `asks_meaning` no hit has a place by meaning.
    """
    started = time.perf_counter()
    ready = recall.prepare(question, deadline)
    prepared = time.perf_counter()
    thresholds = recall.thresholds(question, ready.meaning)
    with pool.transaction(deadline) as connection:
        connected = time.perf_counter()
        hits = search(connection, question, ready.meaning, ready.wording, thresholds)
        searched = time.perf_counter()
        alone = ready.meaning if asks_meaning else None
        found = channels_of.channels(connection, question, alone, ready.wording, thresholds)
        matched = channels_of.matched(connection, question.kind, hits, ready.wording)
    total = sum(found.idf) or 1.0
    words = [term.lexemes[0] for term in ready.wording.terms]
    near = {key: place for place, (key, _) in enumerate(found.near, start=1)}
    by_words = {key: place for place, key in enumerate(found.by_words, start=1)}
    return Explanation(
        question=question,
        hits=tuple(
            ExplainedHit(
                hit,
                near.get((hit.theme, hit.id)),
                by_words.get((hit.theme, hit.id)),
                tuple(words[term] for term in terms),
                round(sum(found.idf[term] for term in terms if term < len(found.idf)) / total, 4),
            )
            for hit, terms in zip(hits, matched, strict=True)
        ),
        terms=tuple(
            ExplainedTerm(word, round(idf / total, 4), absent)
            for word, idf, absent in zip(words, found.idf, found.is_absent, strict=False)
        ),
        model=None if ready.meaning is None else ready.meaning.model.name,
        min_similarity=thresholds.min_similarity,
        min_coverage=thresholds.min_coverage,
        needs_both=thresholds.needs_both,
        candidates=None if ready.meaning is None else ready.meaning.model.candidates,
        near=len(found.near),
        by_words=len(found.by_words),
        asks_when=ready.wording.asks_when,
        speaker=ready.wording.speaker,
        period=ready.wording.period,
        degraded=ready.degraded,
        milliseconds={
            "embedding": round(1000 * (prepared - started), 1),
            "connection": round(1000 * (connected - prepared), 1),
            "search": round(1000 * (searched - connected), 1),
        },
    )
