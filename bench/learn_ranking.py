"""The weights of the ranking (sql/functions/rank.sql): learned from questions whose answers are known.

    python -m bench recall --data FOLDER --learn

Features come from the product's own functions, candidates and all. The model is what hermes_rank computes, a weighted
sum, fitted so that the turns with the answer get the most of a softmax over the candidates. Both sets count the same,
however many questions they have. What is reported is measured on what was left out: on each dialogue of LoCoMo with
weights learned without it, on each fifth of LongMemEval likewise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from hermes_memory_pgvector.postgres.vector_types import HalfVector
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.values import EmbeddingModel, Kind, Question

Floats = NDArray[np.float32]
FEATURES = ("similarity", "coverage", "session_coverage", "period", "speaker", "when", "author")
"""In the order of sql/functions/rank.sql; weights are given in units of the second."""
SHIPPED = (0.7, 1.0, 0.5, 0.5, 0.35, 0.3, 0.2)
"""The weights in sql/functions/rank.sql; a test compares them."""
STEP = 0.007
"""How far further hits of one session step back, as in schema/sql_functions.py."""
PARTS = 5
"""LongMemEval is left out a part at a time."""

_MEASURED = """
WITH near AS MATERIALIZED (
    SELECT n.* FROM hermes_nearest_in_theme(NULL::{vectors}, %(theme)s::text, NULL, NULL, NULL,
                                            %(vector)s::halfvec, %(candidates)s::integer, %(unrelated)s::real, 50) AS n
), found AS MATERIALIZED (
    SELECT w.* FROM hermes_find_by_words(NULL::conversations, %(theme)s::text, false, NULL, NULL, NULL,
                                         %(terms)s::text[], %(queries)s::text[], %(weights)s::real[], 100) AS w
), candidates AS (
    SELECT n.id, n.similarity FROM near, unnest(near.ids, near.similarities) AS n (id, similarity)
    UNION ALL
    SELECT w.id, (SELECT (1 - min(cosine_distance(v.embedding, %(vector)s::halfvec)))::real FROM {vectors} AS v
                  WHERE v.agent_identity = %(theme)s AND v.id = w.id)
    FROM found, unnest(found.ids) AS w (id)
    WHERE NOT EXISTS (SELECT FROM near WHERE w.id = ANY (near.ids))
), listed AS (
    SELECT array_agg(%(theme)s::text) AS themes, array_agg(c.id) AS ids, array_agg(c.similarity) AS similarities
    FROM candidates AS c
)
SELECT m.id, m.place, m.similarity, m.coverage, m.session_coverage, m.is_in_period, m.is_by_speaker,
       m.answers_when, m.is_by_author
FROM listed, found, hermes_measure_hits(
    NULL::conversations, listed.themes, listed.ids, listed.similarities, NULL, %(queries)s::text[],
    %(own_queries)s::text[], %(is_exact)s::boolean[], found.idf, found.is_absent, %(asks_when)s::boolean,
    %(speaker)s::text, %(authors)s::text, %(period_start)s::timestamptz, %(period_end)s::timestamptz) AS m
"""


@dataclass(frozen=True, slots=True)
class Example:
    """A question, its candidates, and which of them have the answer."""

    group: str
    """What is left out together: a dialogue, or a part of the questions."""
    keys: tuple[str, ...]
    sessions: tuple[str, ...]
    features: Floats
    is_answer: NDArray[np.bool_]


def measure(
    connection: psycopg.Connection[Any],
    model: EmbeddingModel,
    keys: Mapping[int, str],
    question: Question,
    vector: Floats,
    evidence: frozenset[str],
    group: str,
) -> Example | None:
    """The candidates of a question as the database measures them; None when there are none."""
    wording = read_wording(question)
    rows = connection.execute(
        _MEASURED.format(vectors=f"turn_vectors_{model.id}").encode(),
        {
            "theme": question.theme,
            "vector": HalfVector(vector.tolist()),
            "candidates": model.candidates,
            "unrelated": model.min_similarity,
            "terms": [term.lexemes[0] for term in wording.terms],
            "queries": [term.query for term in wording.terms],
            "own_queries": [term.own_query for term in wording.terms],
            "weights": [term.weight for term in wording.terms],
            "is_exact": [term.is_exact for term in wording.terms],
            "asks_when": wording.asks_when,
            "speaker": wording.speaker,
            "authors": wording.authors,
            "period_start": wording.period.start if wording.period else None,
            "period_end": wording.period.end if wording.period else None,
        },
    ).fetchall()
    if not rows:
        return None
    assert question.kind is Kind.TURN
    unrelated = model.min_similarity
    features = [
        (
            0.0 if similarity is None else (similarity - unrelated) / (1 - unrelated),
            coverage,
            session_coverage,
            *marks,
        )
        for _, _, similarity, coverage, session_coverage, *marks in rows
    ]
    found = tuple(keys[row[0]] for row in rows)
    return Example(
        group,
        found,
        tuple(row[1] for row in rows),
        np.array(features, dtype=np.float32),
        np.array([key in evidence for key in found]),
    )


def learn(sets: Sequence[Sequence[Example]], rounds: int = 250) -> Floats:
    """Weights in units of coverage: gradient descent (Adam) on the softmax over each question's candidates."""
    useful = [(example, 1 / len(part)) for part in sets for example in part if example.is_answer.any()]
    most = max(len(example.keys) for example, _ in useful)
    inputs = np.zeros((len(useful), most, len(FEATURES)), np.float32)
    wanted = np.zeros((len(useful), most), np.float32)
    absent = np.full((len(useful), most), -1e9, np.float32)
    for place, (example, _) in enumerate(useful):
        count = len(example.keys)
        inputs[place, :count] = example.features
        wanted[place, :count] = example.is_answer / example.is_answer.sum()
        absent[place, :count] = 0
    share = np.array([share for _, share in useful], np.float32)
    share /= share.sum()
    weights, first, second = (np.zeros(len(FEATURES), np.float32) for _ in range(3))
    for turn in range(1, rounds + 1):
        scores = 10 * (inputs @ weights) + absent
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        slope = 10 * np.einsum("qc,qcf->f", (odds - wanted) * share[:, None], inputs) + 1e-3 * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        weights -= 0.05 * (first / (1 - 0.9**turn)) / (np.sqrt(second / (1 - 0.999**turn)) + 1e-8)
    return np.asarray(weights / weights[1], np.float32)


def ranked(example: Example, weights: Floats) -> list[str]:
    """The keys in the order that these weights give."""
    scores = example.features @ weights
    order = np.argsort(-scores, kind="stable")
    seen: dict[str, int] = defaultdict(int)
    for place in order:
        session = example.sessions[place]
        scores[place] -= STEP * min(4, seen[session])
        seen[session] += 1
    return [example.keys[place] for place in np.argsort(-scores, kind="stable")]


Judge = Callable[[Example, Sequence[str]], dict[str, float]]


def left_out(sets: Sequence[Sequence[Example]], judge: Judge) -> list[list[dict[str, float]]]:
    """Per set, the figures of every question under weights learned without its group."""
    figures: list[list[dict[str, float]]] = [[] for _ in sets]
    for place, examples in enumerate(sets):
        for group in sorted({example.group for example in examples}):
            rest = [example for example in examples if example.group != group]
            weights = learn([*sets[:place], *([rest] if rest else []), *sets[place + 1 :]])
            figures[place] += [
                judge(example, ranked(example, weights)) for example in examples if example.group == group
            ]
    return figures
