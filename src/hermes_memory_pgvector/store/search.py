"""Search: the statement that answers a question, the turns beside its hits, and the self-check against brute force.

`send` and `send_neighbours` only put a statement on its way, so that in a pipeline several travel together; `receive`
waits for the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from hermes_memory_pgvector.postgres.statements import model_statement, search_statement, statement
from hermes_memory_pgvector.postgres.vector_types import HalfVector
from hermes_memory_pgvector.text.lexemes import Term
from hermes_memory_pgvector.text.time_phrases import Period
from hermes_memory_pgvector.values import EmbeddingModel, Hit, Kind, Neighbour, Question, Role, Scope, Trust

Connection = psycopg.Connection[tuple[Any, ...]]

COUNTED = 10_000
"""So many rows are counted to say how many were searched; more are told as more than that."""

NEIGHBOUR_CHARS = 2000
"""How much of a neighbour is read: nobody shows more of it."""
NEIGHBOUR_SETTINGS: LiteralString = """\
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true)"""
WANTED_RECALL = 0.995
MAX_CANDIDATES = 25_600


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
    authors: str | None = None
    """The people it may name, as a tsquery of their markers."""
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
    needs_both: bool = False
    """Whether one of the two is not enough, as for a question nobody asked; sql/functions/is_hit.sql has the rule."""


def search(
    connection: Connection, question: Question, meaning: Meaning | None, wording: Wording, thresholds: Thresholds
) -> list[Hit]:
    """The best rows for a question, best first; the connection must be in a transaction."""
    return send(connection, question, meaning, wording, thresholds).receive()


@dataclass(frozen=True, slots=True)
class PendingHits:
    """A question on its way."""

    kind: Kind
    cursor: psycopg.Cursor[dict[str, Any]]

    def receive(self) -> list[Hit]:
        """The answer."""
        with self.cursor:
            return [_hit(self.kind, row) for row in self.cursor.fetchall()]


def send(
    connection: Connection, question: Question, meaning: Meaning | None, wording: Wording, thresholds: Thresholds
) -> PendingHits:
    """Ask for the best rows; the connection must be in a transaction."""
    parameters: dict[str, Any] = {
        "theme": question.theme,
        "is_own": question.scope is not Scope.NAMED,
        "all_themes": question.scope is Scope.ALL,
        "narrow": narrowed(question),
        "since": question.since,
        "until": question.until,
        "terms": [term.lexemes[0] for term in wording.terms],
        "queries": [term.query for term in wording.terms],
        "own_queries": [term.own_query for term in wording.terms],
        "weights": [term.weight for term in wording.terms],
        "is_exact": [term.is_exact for term in wording.terms],
        "min_similarity": thresholds.min_similarity,
        "min_coverage": thresholds.min_coverage,
        # Without words to share there is nothing but nearness to judge by.
        "needs_both": thresholds.needs_both and bool(wording.terms),
        "unrelated": meaning.model.min_similarity if meaning else 0.0,
        "asks_when": wording.asks_when,
        "speaker": wording.speaker,
        "authors": wording.authors,
        "period_start": wording.period.start if wording.period else None,
        "period_end": wording.period.end if wording.period else None,
        "half_life_days": thresholds.half_life_days,
        "now": question.now or datetime.now(UTC),
        "by_session": question.by_session,
        "limit": question.limit,
        "trust": question.trust,
        "vector": HalfVector(meaning.vector) if meaning else None,
        "candidates": meaning.model.candidates if meaning else None,
    }
    cursor = connection.cursor(row_factory=dict_row)
    return PendingHits(question.kind, cursor.execute(_statement(question, meaning), parameters))


def count_searched(connection: Connection, questions: Sequence[Question]) -> list[int]:
    """How many rows each question is about, at most COUNTED + 1; the connection must be in a transaction."""
    cursors = [
        connection.execute(
            statement("search/size"),
            {
                "kind": question.kind.value,
                "theme": question.theme,
                "narrow": narrowed(question),
                "since": question.since,
                "until": question.until,
                "limit": COUNTED + 1,
            },
        )
        for question in questions
    ]
    return [int(row[0]) for cursor in cursors for row in cursor.fetchall()]


def narrowed(question: Question) -> list[str] | None:
    """The sessions or targets a question is limited to; None for all."""
    if question.kind is Kind.TURN:
        return [question.session_id] if question.scope is Scope.SESSION else None
    return list(question.targets) if len(question.targets) == 1 else None


def _statement(question: Question, meaning: Meaning | None) -> sql.Composed:
    is_turn = question.kind is Kind.TURN
    return search_statement("search/turns" if is_turn else "search/memories", meaning.model.id if meaning else None)


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
        origin=row["origin"],
        trust=row["trust"] and Trust(row["trust"]),
        tools=tuple(row["tools"] or ()),
    )


@dataclass(frozen=True, slots=True)
class PendingNeighbours:
    """Hits whose neighbours are on their way."""

    hits: Sequence[Hit]
    cursor: psycopg.Cursor[Any]

    def receive(self) -> list[Hit]:
        """The same hits in the same order, with the neighbours that exist."""
        hits = list(self.hits)
        with self.cursor:
            for place, side, role, ts, content, is_untrusted in self.cursor.fetchall():
                found = Neighbour(role, ts, content, is_untrusted)
                hit = hits[place - 1]
                hits[place - 1] = replace(hit, before=found) if side == "before" else replace(hit, after=found)
        return hits


def add_neighbours(connection: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Turns found, with the turns beside them; the connection must be in a transaction."""
    return send_neighbours(connection, hits).receive() if hits else []


def send_neighbours(connection: Connection, hits: Sequence[Hit]) -> PendingNeighbours:
    """Ask for the turns beside these, each in its own session and theme; the connection must be in a transaction."""
    # However small the table is, and whatever its statistics say, a session is read from its timeline.
    connection.execute(NEIGHBOUR_SETTINGS)
    values = {
        "themes": [hit.theme for hit in hits],
        "session_ids": [hit.session_id for hit in hits],
        "ts": [hit.ts for hit in hits],
        "ids": [hit.id for hit in hits],
        "chars": NEIGHBOUR_CHARS,
    }
    return PendingNeighbours(hits, connection.cursor().execute(statement("turns/beside"), values))


@dataclass(frozen=True, slots=True)
class Check:
    """How a sample of searches compares with brute force."""

    searches: int
    recall: float
    """The share of the true ten nearest that were found."""
    candidates: int
    """How many rows are compared exactly from now on, at most."""


def verify_theme(connection: Connection, model: EmbeddingModel, theme: str, *, samples: int) -> Check:
    """Search a theme for sampled vectors, of its own and of others, and raise `candidates` when too few are found."""
    candidates = model.candidates
    parameters = {"theme": theme, "samples": samples, "candidates": candidates}
    rows = connection.execute(model_statement("search/verify", model.id), parameters).fetchall()
    if not rows:
        return Check(0, 1.0, candidates)
    recall = sum(float(str(row[0])) for row in rows) / len(rows)
    if recall < WANTED_RECALL and candidates < MAX_CANDIDATES:
        candidates = min(MAX_CANDIDATES, candidates * 2)
        connection.execute(statement("search/raise_candidates"), {"id": model.id, "candidates": candidates})
    return Check(len(rows), recall, candidates)


def refresh_statistics(connection: Connection) -> None:
    """Bring the statistics on how rare each word is up to date."""
    connection.execute(statement("search/refresh_statistics"))
