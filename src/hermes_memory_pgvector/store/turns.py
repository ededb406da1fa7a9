"""Turns in Postgres: stored once each."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.postgres.vector_types import (
    BOOLEAN_OID,
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
    values = {
        "themes": text_column(turn.theme for turn in turns),
        "session_ids": text_column(turn.session_id for turn in turns),
        "roles": text_column(turn.role for turn in turns),
        "contents": text_column(turn.content for turn in turns),
        "ts": time_column(turn.when.wall_us for turn in turns),
        "metadata": text_column(_json(turn.metadata) for turn in turns),
        "parent_session_ids": text_column(turn.parent_session_id for turn in turns),
        "digests": [bytes.fromhex(key_of(turn)[2]) for turn in turns],
        "ordinals": Column(INTEGER_OID, [turn.ordinal.to_bytes(4, "big") for turn in turns]),
        "lives": Column(BOOLEAN_OID, [b"\x01" if turn.is_live else b"\x00" for turn in turns]),
        "befores": text_column(_befores(connection, turns)),
        "home_ids": text_column(turn.home_id for turn in turns),
        "origins": text_column(turn.origin or "" for turn in turns),
        "untrusted": [turn.untrusted for turn in turns],
        "window": retry_window,
    }
    rows: list[Any] = connection.execute(statement("turns/insert"), values).fetchall()
    wanting = {key_of(turn) for turn in turns if wants_vector(turn)}
    vectors.enqueue(connection, [(row[0], Kind.TURN.value, row[4]) for row in rows if tuple(row[:3]) in wanting])
    return [(row[0], row[4]) for row in rows]


def key_of(turn: AddTurn) -> tuple[str, str, str]:
    """The theme, the session and the digest of what was said: equal for turns that may be the same."""
    return turn.theme, turn.session_id, turn.digest or turn_digest(turn.role, turn.content)


def drop(connection: Connection, theme: str, session_id: str, digests: Sequence[str]) -> int:
    """Delete turns of a session by their words; return how many."""
    values = {"theme": theme, "session_id": session_id, "digests": list(digests)}
    return connection.execute(statement("turns/drop"), values).rowcount


def _json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else "{}"


def context_of(earlier: Iterable[str]) -> str:
    """What a turn is found by beside its own words: beginning and end of the turns before it."""
    return "\n".join(edges(text, CONTEXT_CHARS) for text in earlier)


def _befores(connection: Connection, turns: Sequence[AddTurn]) -> list[str]:
    """What was said just before each turn in its session."""
    sessions = list(dict.fromkeys((turn.theme, turn.session_id) for turn in turns))
    rows: list[Any] = connection.execute(
        statement("turns/before"),
        {"themes": [theme for theme, _ in sessions], "session_ids": [session for _, session in sessions]},
    ).fetchall()
    before: dict[tuple[str, str], deque[str]] = defaultdict(lambda: deque(maxlen=CONTEXT_TURNS))
    for theme, session_id, content in rows:
        before[theme, session_id].append(content)
    found = []
    for turn in turns:
        earlier = before[turn.theme, turn.session_id]
        found.append(context_of(earlier))
        earlier.append(turn.content)
    return found
