"""What recall answered lately, as rows: bounded for every theme, without texts unless an operator wants them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.values import Kind

KEPT_PER_THEME = 200

Caller = Literal["prefetch", "tool"]
Outcome = Literal["given", "in the prompt already", "of this session", "shown before", "beyond the limit", "no room"]
"""What became of a hit: given to the model, or why it was not."""


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """A hit without its text."""

    kind: Kind
    id: int
    theme: str
    score: float | None
    rank: float
    outcome: Outcome


class LoggedAnswer(NamedTuple):
    """One answer of recall."""

    theme: str
    at: datetime
    session_id: str
    caller: Caller
    kind: Kind
    scope: str
    query: str | None
    degraded: str | None
    hits: tuple[LoggedHit, ...]
    milliseconds: float
    id: int = 0
    """Its number, once it is stored."""


def insert(connection: Connection, answers: Sequence[LoggedAnswer]) -> None:
    """Add answers to the log, and take the oldest of their themes off it."""
    if not answers:
        return
    run(
        connection,
        "recall_log/insert",
        themes=[each.theme for each in answers],
        ats=[each.at for each in answers],
        session_ids=[each.session_id for each in answers],
        callers=[each.caller for each in answers],
        kinds=[each.kind.value for each in answers],
        scopes=[each.scope for each in answers],
        queries=[each.query for each in answers],
        degraded=[each.degraded for each in answers],
        hits=[json.dumps([asdict(hit) for hit in each.hits]) for each in answers],
        milliseconds=[each.milliseconds for each in answers],
    )
    run(connection, "recall_log/trim", themes=sorted({each.theme for each in answers}), keep=KEPT_PER_THEME)


def newest(
    connection: Connection, theme: str, *, session_id: str | None, caller: Caller | None, limit: int
) -> list[LoggedAnswer]:
    """The last answers a theme got, newest first."""
    found = run(connection, "recall_log/list", theme=theme, session_id=session_id, caller=caller, limit=limit)
    return [
        LoggedAnswer(
            theme, at, session, who, Kind(kind), scope, query, degraded,
            tuple(_hit(each) for each in hits), float(took), number,
        )
        for number, at, session, who, kind, scope, query, degraded, hits, took in found
    ]  # fmt: skip


def contents(connection: Connection, hits: Sequence[LoggedHit]) -> dict[tuple[Kind, int], str]:
    """The texts of hits that are still stored."""
    kinds, themes = [hit.kind.value for hit in hits], [hit.theme for hit in hits]
    found = run(connection, "recall_log/contents", kinds=kinds, themes=themes, ids=[hit.id for hit in hits])
    return {(Kind(kind), row_id): content for kind, row_id, content in found}


def _hit(raw: Any) -> LoggedHit:
    return LoggedHit(Kind(raw["kind"]), raw["id"], raw["theme"], raw["score"], raw["rank"], raw["outcome"])
