"""Search: the statement that answers a question, and the turns beside its hits.

`send` and `send_neighbours` only put a statement on its way, so that in a pipeline several travel together; what they
return waits for the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg.rows import dict_row

from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.postgres.vector_types import HalfVector
from hermes_memory_pgvector.store.search_statement import MEANING_WEIGHT, search_statement
from hermes_memory_pgvector.text.time_phrases import TIMES, Period
from hermes_memory_pgvector.text.words import ASKING
from hermes_memory_pgvector.values import EmbeddingModel, Hit, Kind, Neighbour, Question, Role, Scope

Connection = psycopg.Connection[tuple[Any, ...]]

SEVERAL_MEANING_WEIGHT = 0.1
"""The weight of meaning where the answer is in several sessions: few of them share the question's words."""
COUNTED = 10_000
"""So many rows are counted to say how many were searched; more are told as more than that."""

NEIGHBOUR_CHARS = 2000
"""How much of a neighbour is read: nobody shows more of it."""
SEARCH_SETTINGS: LiteralString = """\
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true), set_config('hnsw.ef_search', '400', true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true)"""
"""A search is right without them; they keep odd plans away and give the index over all themes its reach."""
NEIGHBOUR_SETTINGS: LiteralString = """\
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true)"""


class Meaning(NamedTuple):
    """A question's vector and the model it is a vector of."""

    model: EmbeddingModel
    vector: Sequence[float]


class Wording(NamedTuple):
    """What a question's words say: what to look for, who would have said it, and when."""

    text: str = ""
    """The words to look for; empty to go by meaning alone."""
    asks_when: bool = False
    asks_several: bool = False
    """Whether the answer is in several sessions rather than in one."""
    asks_now: bool = False
    """Whether of several answers the newest is right."""
    speaker: Role | None = None
    names: str | None = None
    """The people it may name, as a pattern of their names."""
    period: Period | None = None


def search(
    connection: Connection, question: Question, meaning: Meaning | None, wording: Wording, half_life_days: float = 0.0
) -> list[Hit]:
    """The best rows for a question, best first; the connection must be in a transaction."""
    return send(connection, question, meaning, wording, half_life_days)()[0]


class AskedTerm(NamedTuple):
    """A word of the question and how much it counts."""

    word: str
    weight: float
    """Its share of the question, by rarity."""
    is_absent: bool
    """Whether no row contains it."""


def send(
    connection: Connection,
    question: Question,
    meaning: Meaning | None,
    wording: Wording,
    half_life_days: float = 0.0,
    *,
    wants_terms: bool = False,
) -> Callable[[], tuple[list[Hit], list[AskedTerm]]]:
    """Ask for the best rows; the connection must be in a transaction.

    What is returned receives them, and the question's words if they are wanted and anything was found.
    """
    parameters: dict[str, Any] = {
        "theme": question.theme,
        "is_own": question.scope is not Scope.NAMED,
        "narrow": narrowed(question),
        "since": question.since,
        "until": question.until,
        "text": wording.text,
        "asking": ASKING,
        "is_ambient": question.is_ambient,
        "min_similarity": question.min_similarity,
        "mean": meaning.model.unrelated_mean if meaning else None,
        "sd": meaning.model.unrelated_sd if meaning else None,
        "times": TIMES if wording.asks_when else None,
        "speaker": wording.speaker,
        "names": wording.names,
        "period_start": wording.period.start if wording.period else None,
        "period_end": wording.period.end if wording.period else None,
        "half_life_days": half_life_days,
        "now": question.now or datetime.now(UTC),
        "meaning_weight": SEVERAL_MEANING_WEIGHT if wording.asks_several else MEANING_WEIGHT,
        "step": _step(question, wording),
        "asks_now": question.kind is Kind.TURN and wording.asks_now,
        "wants_terms": wants_terms,
        "limit": question.limit,
        "trusted_only": question.trusted_only,
        "vector": HalfVector(meaning.vector) if meaning else None,
    }
    model_id = meaning.model.id if meaning else None
    text = search_statement(question.kind, model_id, is_everywhere=question.scope is Scope.ALL)
    connection.execute(SEARCH_SETTINGS)
    sent = connection.cursor(row_factory=dict_row).execute(text, parameters)

    def receive() -> tuple[list[Hit], list[AskedTerm]]:
        with sent as cursor:
            rows = cursor.fetchall()
        terms = rows[0]["terms"] or [] if rows else []
        asked = [AskedTerm(word, round(share, 4), is_absent) for word, share, is_absent in terms]
        return [_hit(question.kind, row) for row in rows], asked

    return receive


def _step(question: Question, wording: Wording) -> float:
    """What each further hit of a session loses, at most four times."""
    if question.kind is Kind.MEMORY:
        return 0.0
    return 0.2 if question.by_session else 0.08 if wording.asks_several else 0.007


def similarity(connection: Connection, meaning: Meaning, kind: Kind, theme: str, row_id: int) -> float | None:
    """How near a row is to a question; None without a vector."""
    name = "explain/similarity_of_turn" if kind is Kind.TURN else "explain/similarity_of_memory"
    values = {"vector": HalfVector(meaning.vector), "theme": theme, "id": row_id}
    row: Any = connection.execute(model_statement(name, meaning.model.id), values).fetchone()
    return None if row[0] is None else float(row[0])


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
        meaning=row["meaning"],
        words=tuple(row["words"]),
        words_share=round(float(row["words_share"]), 4),
        target=row["place"] if kind is Kind.MEMORY else None,
        session_id=row["place"] if kind is Kind.TURN else None,
        role=row["role"],
        count=row["count"],
        origin=row["origin"],
        untrusted=row["untrusted"],
        tools=tuple(row["tools"] or ()),
    )


def send_neighbours(connection: Connection, hits: Sequence[Hit]) -> Callable[[], list[Hit]]:
    """Ask for the turns beside these, each in its own session and theme; the connection must be in a transaction.

    What is returned receives the same hits in the same order, with the neighbours that exist.
    """
    # However small the table is, and whatever its statistics say, a session is read from its timeline.
    connection.execute(NEIGHBOUR_SETTINGS)
    values = {
        "themes": [hit.theme for hit in hits],
        "session_ids": [hit.session_id for hit in hits],
        "ts": [hit.ts for hit in hits],
        "ids": [hit.id for hit in hits],
        "chars": NEIGHBOUR_CHARS,
    }
    sent = connection.cursor().execute(statement("turns/beside"), values)

    def receive() -> list[Hit]:
        found = list(hits)
        with sent as cursor:
            for place, side, role, ts, content, untrusted in cursor.fetchall():
                hit, beside = found[place - 1], Neighbour(role, ts, content, untrusted)
                found[place - 1] = replace(hit, before=beside) if side == "before" else replace(hit, after=beside)
        return found

    return receive
