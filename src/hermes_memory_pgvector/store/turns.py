"""Turns in Postgres: stored once each, and found by words of the turns before them, too."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.postgres.vector_types import (
    INTEGER_OID,
    Column,
    text_column,
    time_column,
)
from hermes_memory_pgvector.store import gate, vectors
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.text.words import edges
from hermes_memory_pgvector.values import AddTurn, Kind, Moment

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONTEXT_TURNS = 2
CONTEXT_CHARS = 600
"""How much of each of the turns before a turn it is found by."""


def time_of(when: Moment) -> datetime:
    """The time people read."""
    return EPOCH + timedelta(microseconds=when.wall_us)


def insert(
    connection: Connection,
    turns: Sequence[AddTurn],
    *,
    retry_window: float,
    wants_vector: Callable[[AddTurn], bool],
) -> list[tuple[str, int]]:
    """Store the turns that are not there yet and enqueue them for vectors; return (theme, id) of each new row.

    No two turns without an ordinal may be equal: the statement sees only what was stored before it.
    """
    turns = gate.enter(connection).admitted(connection, turns) if turns else []
    if not turns:
        return []
    found = run(
        connection,
        "turns/insert",
        themes=text_column(turn.theme for turn in turns),
        session_ids=text_column(turn.session_id for turn in turns),
        roles=text_column(turn.role for turn in turns),
        contents=text_column(turn.content for turn in turns),
        ts=time_column(turn.when.wall_us for turn in turns),
        metadata=text_column(json.dumps(dict(turn.metadata), ensure_ascii=False) for turn in turns),
        parent_session_ids=text_column(turn.parent_session_id for turn in turns),
        digests=[bytes.fromhex(key_of(turn)[2]) for turn in turns],
        ordinals=Column(INTEGER_OID, [turn.ordinal.to_bytes(4, "big") for turn in turns]),
        lives=[turn.is_live for turn in turns],
        befores=text_column(_befores(connection, turns)),
        home_ids=text_column(turn.home_id for turn in turns),
        origins=text_column(turn.origin or "" for turn in turns),
        untrusted=[turn.untrusted for turn in turns],
        window=retry_window,
    ).fetchall()
    wanting = {key_of(turn) for turn in turns if wants_vector(turn)}
    vectors.enqueue(connection, [(row[0], Kind.TURN.value, row[4]) for row in found if row[:3] in wanting])
    return [(row[0], row[4]) for row in found]


def key_of(turn: AddTurn) -> tuple[str, str, str]:
    """The theme, the session and the digest of what was said: equal for turns that may be the same."""
    return turn.theme, turn.session_id, turn.digest or turn_digest(turn.role, turn.content)


def drop(connection: Connection, theme: str, session_id: str, digests: Sequence[str]) -> int:
    """Delete turns of a session by their words; return how many."""
    return run(connection, "turns/drop", theme=theme, session_id=session_id, digests=list(digests)).rowcount


def _befores(connection: Connection, turns: Sequence[AddTurn]) -> list[str]:
    """What was said just before each turn in its session."""
    sessions = dict.fromkeys((turn.theme, turn.session_id) for turn in turns)
    themes, session_ids = map(list, zip(*sessions, strict=True))
    before: dict[tuple[str, str], deque[str]] = defaultdict(lambda: deque(maxlen=CONTEXT_TURNS))
    for theme, session_id, content in run(connection, "turns/before", themes=themes, session_ids=session_ids):
        before[theme, session_id].append(content)
    found = []
    for turn in turns:
        earlier = before[turn.theme, turn.session_id]
        found.append(_context_of(earlier))
        earlier.append(turn.content)
    return found


def _context_of(earlier: Iterable[str]) -> str:
    """What a turn is found by beside its own words: beginning and end of the turns before it."""
    return "\n".join(edges(text, CONTEXT_CHARS) for text in earlier)


def mend(connection: Connection, sessions: Mapping[tuple[str, str], list[int] | None]) -> None:
    """Let turns of sessions (theme, session id) be found by what stands before them now.

    Those that have changed, by their ids, and what follows them; without ids, all. Turns before which other words stand
    than before get new vectors, too; all others stay as they are.
    """
    for (theme, session_id), ids in sorted(sessions.items()):
        rows = run(connection, "turns/with_context", theme=theme, session_id=session_id, changed=ids).fetchall()
        values = {"ids": [row_id for row_id, _ in rows], "befores": [_context_of(earlier) for _, earlier in rows]}
        changed = run(connection, "turns/set_before", theme=theme, **values).fetchall()
        embedded = vectors.drop(connection, Kind.TURN, changed)
        vectors.enqueue(connection, [(theme, Kind.TURN.value, row_id) for _, row_id in sorted(embedded)])
