"""The queue of rows that want a vector: filled when rows are stored, leased and embedded by any process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.postgres.vector_types import vector_array
from hermes_memory_pgvector.values import EmbeddingModel, Kind

Key = tuple[str, str, int]
"""(theme, kind, id) of a row."""


@dataclass(frozen=True, slots=True)
class Wanting:
    """A row that wants a vector, with the text its vector is made from."""

    theme: str
    kind: Kind
    id: int
    content: str
    before: str = ""
    """The turn before it in its session."""
    digest: bytes = b""
    """Identifies the content, so that a vector never outlives an edit."""
    lease: datetime | None = None
    """Until when it is leased; None for a row that was not claimed."""

    @property
    def key(self) -> Key:
        """What identifies the row."""
        return (self.theme, self.kind.value, self.id)


@dataclass(frozen=True, slots=True)
class Made:
    """A vector for one piece of a row's text."""

    row: Wanting
    chunk: int
    vector: Sequence[float]


def enqueue(connection: Connection, keys: Sequence[Key]) -> None:
    """Note that these rows want a vector."""
    if keys:
        connection.execute(statement("vectors/enqueue"), _columns(dict.fromkeys(keys)))


def enqueue_typed(connection: Connection, model: EmbeddingModel, limit: int) -> int:
    """Note that rows which somebody typed into the tables want a vector; how many have."""
    found: list[Any] = []
    for name in ("vectors/typed_memories", "vectors/typed_turns"):
        found += connection.execute(model_statement(name, model.id), {"limit": limit}).fetchall()
    enqueue(connection, [(str(theme), str(kind), int(row_id)) for theme, kind, row_id in found])
    return len(found)


def claim(connection: Connection, *, limit: int, lease_seconds: float) -> tuple[list[Wanting], list[Key]]:
    """Lease rows that want a vector; also the keys of queued rows that no longer exist."""
    due: list[Any] = connection.execute(statement("vectors/due"), {"limit": limit}).fetchall()
    keys: list[Key] = [(str(theme), str(kind), int(row_id)) for theme, kind, row_id in due]
    if not keys:
        return [], []
    lease = _now(connection) + timedelta(seconds=lease_seconds)
    connection.execute(statement("vectors/lease"), {**_columns(keys), "until": lease})
    found = [replace(row, lease=lease) for row in texts(connection, keys)]
    known = {row.key for row in found}
    return found, [key for key in keys if key not in known]


def texts(connection: Connection, keys: Sequence[Key]) -> list[Wanting]:
    """These rows with the texts their vectors are made from, without those that are hidden or gone."""
    found = _turns(connection, [key for key in keys if key[1] == Kind.TURN])
    return found + _memories(connection, [key for key in keys if key[1] == Kind.MEMORY])


def store(connection: Connection, model: EmbeddingModel, made: Sequence[Made], vectorless: Sequence[Wanting]) -> None:
    """Store vectors, and take their rows and those that get none off the queue.

    Rows that changed meanwhile stay there, and all of them when the current model is another one by now.
    """
    insert(connection, model, made)
    done = {row.key: row.lease for row in (*(item.row for item in made), *vectorless)}
    if done:
        values = {**_columns(done), "leases": list(done.values()), "model_id": model.id}
        connection.execute(statement("vectors/finish_claimed"), values)


def insert(connection: Connection, model: EmbeddingModel, made: Sequence[Made]) -> None:
    """Store vectors of a model, except of rows that changed meanwhile."""
    for kind, name in ((Kind.TURN, "vectors/insert_of_turns"), (Kind.MEMORY, "vectors/insert_of_memories")):
        part = [item for item in made if item.row.kind is kind]
        if not part:
            continue
        values: dict[str, Any] = {
            "themes": [item.row.theme for item in part],
            "ids": [item.row.id for item in part],
            "chunks": [item.chunk for item in part],
            "digests": [item.row.digest for item in part],
            "vectors": vector_array(model, [item.vector for item in part]),
        }
        connection.execute(model_statement(name, model.id), values)


def finish(connection: Connection, keys: Sequence[Key]) -> None:
    """Take rows off the queue, in the transaction that claimed or changed them."""
    if keys:
        connection.execute(statement("vectors/finish_pending"), _columns(keys))


def give_up(connection: Connection, rows: Sequence[Wanting], reason: str) -> None:
    """Note why these rows get no vector; they are tried again when their text changes, or the model."""
    if rows:
        values = {**_columns([row.key for row in rows]), "leases": [row.lease for row in rows], "reason": reason}
        connection.execute(statement("vectors/give_up"), values)


def give_back(connection: Connection, keys: Sequence[Key], pause_seconds: float) -> None:
    """Give leases back; the rows are due again after a pause that grows with their attempts."""
    if keys:
        values = {**_columns(keys), "pause": pause_seconds, "now": _now(connection)}
        connection.execute(statement("vectors/return_pending"), values)


def set_scale(
    connection: Connection, model: EmbeddingModel, scale: tuple[float, float] | None, prefixes: tuple[str, str]
) -> None:
    """Note the cosine of unrelated texts in a model, and what its texts have before them, unless somebody was first."""
    mean, sd = scale or (None, None)
    values = {"id": model.id, "mean": mean, "sd": sd, "query_prefix": prefixes[0], "document_prefix": prefixes[1]}
    connection.execute(statement("vectors/set_scale"), values)


def model_ids(connection: Connection) -> list[int]:
    """Every model that has vector tables."""
    rows: list[Any] = connection.execute(statement("correct/model_ids")).fetchall()
    return [int(row[0]) for row in rows]


def seconds_until_next(connection: Connection) -> float | None:
    """Seconds until the next row that was leased or put off is due; None when none waits."""
    row: Any = connection.execute(statement("vectors/seconds_until_next")).fetchone()
    return None if row[0] is None else float(row[0])


def count(connection: Connection) -> tuple[int, int]:
    """(rows that want a vector, those due now); without those that were given up."""
    row: Any = connection.execute(statement("vectors/count_pending")).fetchone()
    return int(row[0]), int(row[1])


def given_up(connection: Connection) -> dict[str, int]:
    """How many rows get no vector, by the reason."""
    rows: list[Any] = connection.execute(statement("vectors/given_up")).fetchall()
    return {str(reason): int(count) for reason, count in rows}


def _now(connection: Connection) -> datetime:
    """The server's time."""
    row: Any = connection.execute(statement("vectors/clock")).fetchone()
    now: datetime = row[0]
    return now


def _turns(connection: Connection, keys: Sequence[Key]) -> list[Wanting]:
    if not keys:
        return []
    rows: list[Any] = connection.execute(statement("vectors/pending_turns"), _ids(keys)).fetchall()
    return [
        Wanting(theme, Kind.TURN, row_id, content, before=before or "", digest=bytes(digest))
        for theme, row_id, content, before, digest in rows
    ]


def _memories(connection: Connection, keys: Sequence[Key]) -> list[Wanting]:
    if not keys:
        return []
    rows: list[Any] = connection.execute(statement("vectors/pending_memories"), _ids(keys)).fetchall()
    return [
        Wanting(theme, Kind.MEMORY, row_id, content, digest=bytes(digest)) for theme, row_id, content, digest in rows
    ]


def _ids(keys: Sequence[Key]) -> dict[str, Any]:
    return {"themes": [key[0] for key in keys], "ids": [key[2] for key in keys]}


def _columns(keys: Any) -> dict[str, Any]:
    listed = list(keys)
    return {
        "themes": [key[0] for key in listed],
        "kinds": [key[1] for key in listed],
        "ids": [key[2] for key in listed],
    }
