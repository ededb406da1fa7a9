"""A turn is found by words of the turns before it, too: what follows one that has gone or changed is indexed anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.turns import context_of
from hermes_memory_pgvector.values import Kind


class TurnPlace(NamedTuple):
    """Where a turn stands or stood in its session."""

    theme: str
    session_id: str
    at: datetime
    id: int


def mend_following(connection: Connection, places: Sequence[TurnPlace]) -> int:
    """Give the turns that follow these the words and vectors they are found by now; return how many have changed.

    A vector knows of the turn just before, words of the two before. All other turns are left as they are.
    """
    rows: list[Any] = connection.execute(
        statement("turns/following"),
        {
            "themes": [place.theme for place in places],
            "session_ids": [place.session_id for place in places],
            "ats": [place.at for place in places],
            "ids": [place.id for place in places],
        },
    ).fetchall()
    if not rows:
        return 0
    changed = _set_before(connection, rows)
    next_ones = [(theme, row_id) for theme, row_id, is_next, *_ in rows if is_next]
    had_vector = _drop_vectors(connection, next_ones)
    vectors.enqueue(connection, [(theme, Kind.TURN.value, row_id) for theme, row_id in sorted(had_vector)])
    return len(had_vector | {(theme, row_id) for theme, row_id in changed})


def mend(connection: Connection, keys: Collection[tuple[str, int]], left_out: Sequence[int] = ()) -> int:
    """Give turns (theme, id) the words before them as they are, or will be without those left out; how many changed.

    For turns that were stored out of order: they may be found by words of any other turn.
    """
    asked = sorted(set(keys))
    if not asked:
        return 0
    named = {"themes": [theme for theme, _ in asked], "ids": [row_id for _, row_id in asked]}
    rows: list[Any] = connection.execute(
        statement("turns/with_context"), {**named, "left_out": list(left_out)}
    ).fetchall()
    changed = _set_before(connection, rows)
    had_vector = _drop_vectors(connection, [(theme, row_id) for theme, row_id in changed])
    vectors.enqueue(connection, [(theme, Kind.TURN.value, row_id) for theme, row_id in sorted(had_vector)])
    return len(changed)


def _set_before(connection: Connection, rows: Sequence[Any]) -> list[Any]:
    """Tell turns (theme, id, …, the turns before) what was said before them; those (theme, id) that did not know."""
    values = {
        "themes": [row[0] for row in rows],
        "ids": [row[1] for row in rows],
        "befores": [context_of(row[-1]) for row in rows],
    }
    return connection.execute(statement("turns/set_before"), values).fetchall()


def _drop_vectors(connection: Connection, turns: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
    """Delete the vectors of turns in every model; which of them had one."""
    keys = {"themes": [theme for theme, _ in turns], "ids": [row_id for _, row_id in turns]}
    models: list[Any] = connection.execute(statement("correct/model_ids")).fetchall()
    found: set[tuple[str, int]] = set()
    for (model_id,) in models:
        rows: list[Any] = connection.execute(model_statement("turns/drop_vectors", int(model_id)), keys).fetchall()
        found |= {(str(theme), int(row_id)) for theme, row_id in rows}
    return found
