"""The self-check of vector search: is what it finds what brute force would find?"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from hermes_memory_pgvector.store.statements import model_statement, statement
from hermes_memory_pgvector.values import EmbeddingModel

Connection = psycopg.Connection[tuple[object, ...]]

WANTED_RECALL = 0.995
MOST_CANDIDATES = 25_600


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
    rows = connection.execute(model_statement("search_verify", model.id), parameters).fetchall()
    if not rows:
        return Check(0, 1.0, candidates)
    recall = sum(float(str(row[0])) for row in rows) / len(rows)
    if recall < WANTED_RECALL and candidates < MOST_CANDIDATES:
        candidates = min(MOST_CANDIDATES, candidates * 2)
        connection.execute(statement("search_raise_candidates"), {"id": model.id, "candidates": candidates})
    return Check(len(rows), recall, candidates)
