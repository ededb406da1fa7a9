"""Asks a home's recall log again: a regression set made of questions that were really asked.

Needs `recall_log: text` for as long as questions are to be collected. Nothing is written, and no text is printed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.setup import parts
from hermes_memory_pgvector.values import Kind, Question, Scope

LOGGED = """
SELECT agent_identity, session_id, caller, kind, scope, query, at, hits FROM recall_log
WHERE query IS NOT NULL ORDER BY id"""
SCOPES = {scope.value for scope in Scope}


@dataclass(frozen=True, slots=True)
class Replay:
    """How the answers of today compare with those of the log."""

    questions: int
    found_again: float
    """The share of logged hits that are hits again."""
    same_first: float
    """The share of questions whose best hit is the same."""
    p50_ms: float
    p95_ms: float


def replay(home: Path) -> Replay:
    """Ask every logged question again, as of the time it was asked."""
    again = hits = same = 0
    took: list[float] = []
    with parts.open_engine(home) as engine:
        with engine.pool.transaction(Deadline.after(60)) as connection:
            rows: list[Any] = connection.execute(LOGGED.encode()).fetchall()
        for theme, session_id, caller, kind, scope, query, at, logged in rows:
            named = scope not in SCOPES
            question = Question(
                text=query,
                kind=Kind(kind),
                theme=scope if named else theme,
                scope=Scope.NAMED if named else Scope(scope),
                session_id=session_id,
                limit=max(5, len(logged)),
                is_ambient=caller == "prefetch",
                now=at,
            )
            began = time.perf_counter()
            answer = engine.search([question], Deadline.after(60))[0]
            took.append(1000 * (time.perf_counter() - began))
            found = [(hit.theme, hit.id) for hit in answer.hits]
            wanted = [(hit["theme"], hit["id"]) for hit in logged]
            hits += len(wanted)
            again += sum(key in found for key in wanted)
            same += found[:1] == wanted[:1]
    took.sort()
    asked = len(took)
    return Replay(
        asked,
        round(again / hits, 4) if hits else 1.0,
        round(same / asked, 4) if asked else 1.0,
        round(took[asked // 2], 1) if took else 0.0,
        round(took[int(0.95 * (asked - 1))], 1) if took else 0.0,
    )
