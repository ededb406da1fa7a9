"""Turns in Postgres: stored once each, taken back when undone."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.socket import send_all
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.postgres.vector_types import (
    BOOLEAN_OID,
    INTEGER_OID,
    TSVECTOR_OID,
    Column,
    text_column,
    time_column,
)
from hermes_memory_pgvector.store import gate, vectors
from hermes_memory_pgvector.text.authors import author_told
from hermes_memory_pgvector.text.lexemes import Lexemes, lexemes_of
from hermes_memory_pgvector.values import AddTurn, ForgetTail, ForgetTurns, Kind, Moment, RecordDelegation

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONTEXT_TURNS = 2


def time_of(when: Moment) -> datetime:
    """The time people read."""
    return EPOCH + timedelta(microseconds=when.wall_us)


def insert(
    connection: Connection,
    turns: Sequence[AddTurn],
    *,
    retry_window: float,
    wants_vector: Callable[[AddTurn], bool],
    while_waiting: Callable[[], None] = lambda: None,
) -> list[tuple[str, int]]:
    """Store the turns that are not there yet and enqueue them for vectors; return (theme, id) of each new row."""
    turns = gate.enter(connection).admitted(connection, turns) if turns else []
    if not turns:
        return []
    lexemes = _lexemes(connection, turns)
    wishes = [wants_vector(turn) for turn in turns]
    values = {
        "themes": text_column(turn.theme for turn in turns),
        "session_ids": text_column(turn.session_id for turn in turns),
        "roles": text_column(turn.role for turn in turns),
        "contents": text_column(turn.content for turn in turns),
        "ts": time_column(turn.when.wall_us for turn in turns),
        "metadata": text_column(_json(turn.metadata) for turn in turns),
        "parent_session_ids": text_column(turn.parent_session_id for turn in turns),
        "digests": text_column(turn.digest for turn in turns),
        "ordinals": Column(INTEGER_OID, [turn.ordinal.to_bytes(4, "big") for turn in turns]),
        "lexemes": Column(TSVECTOR_OID, [each.binary for each in lexemes]),
        "home_ids": text_column(turn.home_id for turn in turns),
        "origins": text_column(turn.origin or "" for turn in turns),
        "trusts": text_column(turn.trust or "" for turn in turns),
        "wishes": Column(BOOLEAN_OID, [b"\x01" if wish else b"\x00" for wish in wishes]),
    }
    with connection.pipeline():
        cursor = connection.execute(statement("turns/insert"), values)
        send_all(connection)
        while_waiting()
        rows: list[Any] = cursor.fetchall()
    stored = [(turns[place - 1].theme, row_id) for place, row_id in rows]
    if len(rows) < len(turns):
        new_places = {place for place, _ in rows}
        for place, turn in enumerate(turns, start=1):
            if turn.is_live and place not in new_places:
                later = _later_occurrence(connection, turn, lexemes[place - 1].text, retry_window)
                if wants_vector(turn):
                    vectors.enqueue(connection, [(theme, Kind.TURN.value, row_id) for theme, row_id in later])
                stored += later
    return stored


def stored_keys(
    connection: Connection, themes: Sequence[str], session_ids: Sequence[str]
) -> list[tuple[str, str, str, int, int]]:
    """(theme, session, hex digest, ordinal, time in microseconds) of the turns stored in these sessions."""
    rows: list[Any] = connection.execute(
        statement("turns/stored_keys"), {"themes": list(themes), "session_ids": list(session_ids)}
    ).fetchall()
    return [tuple(row) for row in rows]


def forget(connection: Connection, item: ForgetTurns) -> int:
    """Take back turns by their keys; return how many rows went."""
    item = gate.enter(connection).renamed(item)
    return connection.execute(statement("turns/forget"), _undone(item, item.turns)).rowcount


def forget_tail(connection: Connection, item: ForgetTail) -> int:
    """Take back the last exchanges that were stored after the turns that remain; return how many rows went."""
    item = gate.enter(connection).renamed(item)
    named = {**_undone(item, item.kept), "exchanges": item.exchanges}
    return connection.execute(statement("turns/forget_tail"), named).rowcount


def delegate(connection: Connection, item: RecordDelegation) -> None:
    """Note an edge from a session to its subagent's session."""
    for edge in gate.enter(connection).admitted(connection, [item]):
        connection.execute(
            statement("turns/insert_delegation"),
            {
                "theme": edge.theme,
                "session_id": edge.session_id,
                "child_session_id": edge.child_session_id,
                "task": edge.task,
                "ts": time_of(edge.when),
                "metadata": _json(edge.metadata),
                "home_id": edge.home_id,
            },
        )


def _json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else "{}"


def _undone(item: ForgetTurns | ForgetTail, keys: Sequence[tuple[str, int]]) -> dict[str, Any]:
    return {
        "theme": item.theme,
        "session_id": item.session_id,
        "at": time_of(item.when),
        "digests": [digest for digest, _ in keys],
        "ordinals": [ordinal for _, ordinal in keys],
    }


def _later_occurrence(connection: Connection, turn: AddTurn, lexemes: str, window: float) -> list[tuple[str, int]]:
    row: Any = connection.execute(
        statement("turns/insert_later_occurrence"),
        {
            "theme": turn.theme,
            "session_id": turn.session_id,
            "role": turn.role,
            "content": turn.content,
            "digest": turn.digest,
            "ts": time_of(turn.when),
            "window": window,
            "metadata": _json(turn.metadata),
            "parent_session_id": turn.parent_session_id or None,
            "lexemes": lexemes,
            "home_id": turn.home_id,
            "origin": turn.origin,
            "trust": turn.trust,
        },
    ).fetchone()
    return [] if row is None else [(turn.theme, int(row[0]))]


def _lexemes(connection: Connection, turns: Sequence[AddTurn]) -> list[Lexemes]:
    """The lexemes that find each turn: of its own words, and of the two turns before it in its session."""
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
        context = before[turn.theme, turn.session_id]
        found.append(lexemes_of(turn.theme, turn.content, list(context), author_told(turn.metadata)))
        context.append(turn.content)
    return found
