"""Why rows are hits: what each channel of the search finds by itself, and which words a row contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.postgres.vector_types import HalfVector
from hermes_memory_pgvector.store.search import Meaning, Thresholds, Wording, narrowed
from hermes_memory_pgvector.values import Hit, Kind, Question, Scope

Key = tuple[str, int]
"""A row: its theme and id."""
_NEAR = {Kind.TURN: "explain/near_turns", Kind.MEMORY: "explain/near_memories"}
_WORDS = {Kind.TURN: "explain/words_turns", Kind.MEMORY: "explain/words_memories"}
_SIMILARITY = {Kind.TURN: "explain/similarity_of_turn", Kind.MEMORY: "explain/similarity_of_memory"}
_MATCHED = {Kind.TURN: "explain/matched_turns", Kind.MEMORY: "explain/matched_memories"}


@dataclass(frozen=True, slots=True)
class Channels:
    """What meaning and words find, each by itself, best first."""

    near: tuple[tuple[Key, float], ...]
    by_words: tuple[Key, ...]
    idf: tuple[float, ...]
    """How much each term of the question counts among the rows searched."""
    is_absent: tuple[bool, ...]
    """Which terms no row contains."""


def channels(
    connection: Connection, question: Question, meaning: Meaning | None, wording: Wording, thresholds: Thresholds
) -> Channels:
    """Ask both channels by themselves."""
    values: dict[str, Any] = {
        "theme": question.theme,
        "all_themes": question.scope is Scope.ALL,
        "narrow": narrowed(question),
        "since": question.since,
        "until": question.until,
        "trust": question.trust,
    }
    near: list[Any] = []
    if meaning is not None:
        given = {
            "vector": HalfVector(meaning.vector),
            "candidates": meaning.model.candidates,
            "min_similarity": thresholds.min_similarity,
            "limit": question.limit,
        }
        nearest = model_statement(_NEAR[question.kind], meaning.model.id)
        near = connection.execute(nearest, {**values, **given}).fetchall()
    terms = {
        "terms": [term.lexemes[0] for term in wording.terms],
        "queries": [term.query for term in wording.terms],
        "weights": [term.weight for term in wording.terms],
    }
    words: Any = connection.execute(statement(_WORDS[question.kind]), {**values, **terms}).fetchone()
    themes, ids, idf, absent = words or ([], [], [], [])
    return Channels(
        tuple(((str(theme), int(row_id)), float(similarity)) for theme, row_id, similarity in near),
        tuple(zip(themes or [], ids or [], strict=True)),
        tuple(idf or ()),
        tuple(absent or ()),
    )


def matched(connection: Connection, kind: Kind, hits: Sequence[Hit], wording: Wording) -> list[tuple[int, ...]]:
    """Which terms of the question each hit contains itself."""
    values = {
        "themes": [hit.theme for hit in hits],
        "ids": [hit.id for hit in hits],
        "own_queries": [term.own_query for term in wording.terms],
    }
    rows: list[Any] = connection.execute(statement(_MATCHED[kind]), values).fetchall()
    found = {int(place): tuple(int(term) - 1 for term in terms) for place, terms in rows}
    return [found.get(place, ()) for place in range(1, len(hits) + 1)]


def similarity(connection: Connection, meaning: Meaning, kind: Kind, theme: str, row_id: int) -> float | None:
    """How near a row is to a question; None without a vector."""
    values = {"vector": HalfVector(meaning.vector), "theme": theme, "id": row_id}
    row: Any = connection.execute(model_statement(_SIMILARITY[kind], meaning.model.id), values).fetchone()
    return None if row[0] is None else float(row[0])
