"""Which stage of recall loses a row: not stored, another theme, hidden, no vector, too far, cut off, shown before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from hermes_memory_pgvector.care import see
from hermes_memory_pgvector.care.ids import RowName, name_of
from hermes_memory_pgvector.care.see import AmbiguousName
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import dead_letters, recall_log
from hermes_memory_pgvector.store.browse import StoredMemory
from hermes_memory_pgvector.values import Hit, Kind, Question, Scope, Trust, is_private_theme

Stage = Literal[
    "not stored", "other theme", "hidden", "untrusted",
    "outside the time", "no vector yet", "below the bar", "same text",
    "beyond the limit", "already shown", "found",
]  # fmt: skip
WIDE = 200
"""How many hits are looked at to find the place of one that the limit cuts off."""
DEAD_LETTERS = 1000

Search = Callable[[Question], list[Hit]]
Nearness = Callable[[Question, str, int], tuple[float | None, float]]
"""How many standard deviations a row is nearer to a question than unrelated texts, and how many alone make a hit."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Where a row was lost, in words."""

    name: str
    stage: Stage
    sentence: str
    place: int | None = None
    """Its place among the hits, if it has one."""
    score: float | None = None


def why_not(
    connection: Connection,
    search: Search,
    nearness: Nearness,
    name: RowName,
    question: Question,
    *,
    session_id: str | None = None,
) -> WhyNot:
    """Ask again, wider and wider, until the row appears; the stage that kept it away is the answer."""
    try:
        shown = see.show(connection, name)
    except CareError as error:
        if isinstance(error, AmbiguousName):
            raise
        return WhyNot(str(name), "not stored", _not_stored(connection))
    row, label = shown.row, shown.name
    kind = Kind.MEMORY if isinstance(row, StoredMemory) else Kind.TURN
    question = replace(question, kind=kind)
    if row.hidden_by is not None:
        told = f"it is hidden by rule {row.hidden_by}; `mute --undo {row.hidden_by} --execute` takes that back"
        return WhyNot(label, "hidden", told)
    outside = _outside(question, row.theme)
    if outside:
        return WhyNot(label, "other theme", outside)
    at = row.updated_at if isinstance(row, StoredMemory) else row.at
    if (question.since and at < question.since) or (question.until and at >= question.until):
        return WhyNot(label, "outside the time", "it lies outside --since and --until")
    if session_id is not None:
        before = _shown_before(connection, question.theme, session_id, kind, row.id)
        if before is not None:
            return WhyNot(
                label, "already shown", f"session {session_id} was given it in answer {before}; it is not repeated"
            )
    if _is_distrusted(question, row.trust):
        told = f"it is {row.trust}, and prefetch_trust keeps that from being offered unasked; the tools find it"
        return WhyNot(label, "untrusted", told)
    found = _look_for(search, question, row.theme, row.id, row.content, label)
    if found is not None:
        return found
    if not shown.vectors:
        told = "it has no vector yet, and its words do not match well enough; `backfill` makes vectors"
        return WhyNot(label, "no vector yet", told)
    return _too_far(search, nearness, question, row.theme, row.id, label)


def _is_distrusted(question: Question, trust: str | None) -> bool:
    if question.trust is None:
        return False
    return trust == Trust.UNTRUSTED or (question.trust == "strict" and trust == Trust.EXPOSED)


def _look_for(search: Search, question: Question, theme: str, row_id: int, content: str, label: str) -> WhyNot | None:
    """Whether it is a hit after all, or the same words are."""
    wide = search(replace(question, limit=WIDE))
    place = _place(wide, theme, row_id)
    if place is not None:
        score = wide[place - 1].score
        if place <= question.limit:
            return WhyNot(label, "found", f"it is hit number {place}", place, score)
        told = f"it is hit number {place}, and {question.limit} are asked for"
        return WhyNot(label, "beyond the limit", told, place, score)
    double = next((hit for hit in wide if hit.theme == theme and hit.content == content), None)
    if double is None:
        return None
    name = name_of(double.kind, double.id)
    return WhyNot(label, "same text", f"{name} says the same words and stands for it", score=double.score)


def _too_far(search: Search, nearness: Nearness, question: Question, theme: str, row_id: int, label: str) -> WhyNot:
    near, needed = nearness(question, theme, row_id)
    if near is None:
        told = "the question has no vector right now, and its words do not match well enough"
        return WhyNot(label, "below the bar", told)
    if near < needed:
        told = f"it is {near:.1f} sd nearer than unrelated texts, {needed:.1f} is needed; its words match too little"
        return WhyNot(label, "below the bar", told, score=near)
    if question.is_ambient and _place(search(replace(question, limit=WIDE, is_ambient=False)), theme, row_id):
        told = f"it is {near:.1f} sd nearer than unrelated texts: prefetch, which nobody asked for, wants more"
        return WhyNot(label, "below the bar", told, score=near)
    told = f"it is {near:.1f} sd nearer than unrelated texts, and enough other rows are nearer"
    return WhyNot(label, "beyond the limit", told, score=near)


def _place(hits: list[Hit], theme: str, row_id: int) -> int | None:
    return next((n for n, hit in enumerate(hits, start=1) if (hit.theme, hit.id) == (theme, row_id)), None)


def _outside(question: Question, theme: str) -> str:
    if theme == question.theme:
        return ""
    if question.scope is not Scope.ALL:
        return f"it belongs to theme {theme}, and {question.theme} was searched"
    if is_private_theme(theme):
        return f"it belongs to {theme}, which is private and seen by itself only"
    return ""


def _not_stored(connection: Connection) -> str:
    waiting = len(dead_letters.newest(connection, DEAD_LETTERS))
    letters = f"; {waiting} dead letters wait (`journal dead list`)" if waiting else ""
    return (
        "nothing is stored under this id: it was deleted, or never stored because it was noise (too short, a bare "
        f"acknowledgement), refused, or is still in the journal (`status` says how much waits){letters}"
    )


def _shown_before(connection: Connection, theme: str, session_id: str, kind: Kind, row_id: int) -> int | None:
    answers = recall_log.newest(
        connection, theme, session_id=session_id, caller="prefetch", limit=recall_log.KEPT_PER_THEME
    )
    for answer in answers:
        for hit in answer.hits:
            if (hit.kind, hit.id) == (kind, row_id) and hit.outcome == "given":
                return answer.id
    return None
