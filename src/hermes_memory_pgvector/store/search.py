"""Runs the one statement that answers a question, and turns its rows into hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from hermes_memory_pgvector.store.statements import search_statement
from hermes_memory_pgvector.store.vector_types import HalfVector
from hermes_memory_pgvector.text.lexemes import Term
from hermes_memory_pgvector.text.time_phrases import Period
from hermes_memory_pgvector.values import EmbeddingModel, Hit, Kind, Question, Role, Scope

Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's vector and the model it is a vector of."""

    model: EmbeddingModel
    vector: Sequence[float]


@dataclass(frozen=True, slots=True)
class Wording:
    """What a question's words say: the terms to look for, who would have said it, and when."""

    terms: Sequence[Term] = ()
    asks_when: bool = False
    speaker: Role | None = None
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a hit must reach to be one, and how fast rank fades."""

    min_similarity: float
    """A hit by meaning alone: cosine at least this."""
    min_coverage: float
    """A hit by words: the share of the question's words, weighted by rarity, at least this."""
    half_life_days: float = 0.0
    """Rank halves in that many days; 0 leaves age out."""


def search(
    connection: Connection, question: Question, meaning: Meaning | None, wording: Wording, thresholds: Thresholds
) -> list[Hit]:
    """The best rows for a question, best first; the connection must be in a transaction."""
    return send(connection, question, meaning, wording, thresholds).receive()


@dataclass(frozen=True, slots=True)
class Pending:
    """A question on its way: in a pipeline several travel together."""

    kind: Kind
    cursor: psycopg.Cursor[dict[str, Any]]

    def receive(self) -> list[Hit]:
        """The answer."""
        with self.cursor:
            return [_hit(self.kind, row) for row in self.cursor.fetchall()]


def send(
    connection: Connection, question: Question, meaning: Meaning | None, wording: Wording, thresholds: Thresholds
) -> Pending:
    """Ask for the best rows; the connection must be in a transaction."""
    parameters: dict[str, Any] = {
        "theme": question.theme,
        "all_themes": question.scope is Scope.ALL,
        "narrow": _narrow(question),
        "since": question.since,
        "until": question.until,
        "terms": [term.lexemes[0] for term in wording.terms],
        "queries": [term.query for term in wording.terms],
        "own_queries": [term.own_query for term in wording.terms],
        "weights": [term.weight for term in wording.terms],
        "min_similarity": thresholds.min_similarity,
        "min_coverage": thresholds.min_coverage,
        "asks_when": wording.asks_when,
        "speaker": wording.speaker,
        "period_start": wording.period.start if wording.period else None,
        "period_end": wording.period.end if wording.period else None,
        "half_life_days": thresholds.half_life_days,
        "now": question.now or datetime.now(UTC),
        "limit": question.limit,
        "vector": HalfVector(meaning.vector) if meaning else None,
        "candidates": meaning.model.candidates if meaning else None,
    }
    cursor = connection.cursor(row_factory=dict_row)
    return Pending(question.kind, cursor.execute(_statement(question, meaning), parameters))


def _narrow(question: Question) -> list[str] | None:
    if question.kind is Kind.TURN:
        return [question.session_id] if question.scope is Scope.SESSION else None
    return list(question.targets) if len(question.targets) == 1 else None


def _statement(question: Question, meaning: Meaning | None) -> sql.Composed:
    is_turn = question.kind is Kind.TURN
    return search_statement("search_turns" if is_turn else "search_memories", meaning.model.id if meaning else None)


def _hit(kind: Kind, row: Mapping[str, Any]) -> Hit:
    similarity = row["similarity"]
    return Hit(
        kind=kind,
        id=row["id"],
        theme=row["agent_identity"],
        ts=row["ts"],
        content=row["content"],
        score=None if similarity is None else max(0.0, min(1.0, float(similarity))),
        rank=float(row["rank"]),
        target=row.get("target"),
        session_id=row.get("session_id"),
        role=row.get("role"),
        count=row["count"],
    )
