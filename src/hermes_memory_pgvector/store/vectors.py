"""The queue of rows that want a vector: filled when rows are stored, leased and embedded by any process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.postgres.vector_types import vector_array
from hermes_memory_pgvector.values import EmbeddingModel, Kind

Key = tuple[str, str, int]
"""(theme, kind, id) of a row."""
TEXTS: Final = {Kind.TURN: "vectors/pending_turns", Kind.MEMORY: "vectors/pending_memories"}
INSERT: Final = {Kind.TURN: "vectors/insert_of_turns", Kind.MEMORY: "vectors/insert_of_memories"}
DROP: Final = {Kind.TURN: "vectors/drop_of_turns", Kind.MEMORY: "vectors/drop_of_memories"}


class Wanting(NamedTuple):
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


class Made(NamedTuple):
    """A vector for one piece of a row's text."""

    row: Wanting
    chunk: int
    vector: Sequence[float]


def enqueue(connection: Connection, keys: Iterable[Key]) -> None:
    """Note that these rows want a vector."""
    wanted = list(dict.fromkeys(keys))
    if wanted:
        run(connection, "vectors/enqueue", **_columns(wanted))


def enqueue_typed(connection: Connection, model: EmbeddingModel, limit: int) -> int:
    """Note that rows which somebody typed into the tables want a vector; how many have."""
    found: list[Key] = []
    for name in ("vectors/typed_memories", "vectors/typed_turns"):
        found += run(connection, name, model.id, limit=limit)
    enqueue(connection, found)
    return len(found)


def claim(connection: Connection, *, limit: int, lease_seconds: float) -> tuple[list[Wanting], list[Key]]:
    """Lease rows that want a vector; also the keys of queued rows that no longer exist."""
    keys: list[Key] = list(run(connection, "vectors/due", limit=limit))
    if not keys:
        return [], []
    lease = _now(connection) + timedelta(seconds=lease_seconds)
    run(connection, "vectors/lease", **_columns(keys), until=lease)
    found = [row._replace(lease=lease) for row in texts(connection, keys)]
    known = {row.key for row in found}
    return found, [key for key in keys if key not in known]


def texts(connection: Connection, keys: Sequence[Key]) -> list[Wanting]:
    """These rows with the texts their vectors are made from, without those that are hidden or gone."""
    found = []
    for kind, name in TEXTS.items():
        columns = _columns([key for key in keys if key[1] == kind])
        del columns["kinds"]
        rows = run(connection, name, **columns) if columns["ids"] else ()
        found += [
            Wanting(theme, kind, row_id, content, before or "", bytes(digest))
            for theme, row_id, content, before, digest in rows
        ]
    return found


def store(connection: Connection, model: EmbeddingModel, made: Sequence[Made], vectorless: Sequence[Wanting]) -> None:
    """Store vectors, and take their rows and those that get none off the queue.

    Rows that changed meanwhile stay there, and all of them when the current model is another one by now.
    """
    insert(connection, model, made)
    done = {row.key: row.lease for row in (*(item.row for item in made), *vectorless)}
    if done:
        leases = list(done.values())
        run(connection, "vectors/finish_claimed", **_columns(done), leases=leases, model_id=model.id)


def insert(connection: Connection, model: EmbeddingModel, made: Sequence[Made]) -> None:
    """Store vectors of a model, except of rows that changed meanwhile."""
    for kind, name in INSERT.items():
        part = [item for item in made if item.row.kind is kind]
        if part:
            run(
                connection, name, model.id,
                themes=[item.row.theme for item in part], ids=[item.row.id for item in part],
                chunks=[item.chunk for item in part], digests=[item.row.digest for item in part],
                vectors=vector_array(model, [item.vector for item in part]),
            )  # fmt: skip


def finish(connection: Connection, keys: Sequence[Key]) -> None:
    """Take rows off the queue, in the transaction that claimed or changed them."""
    if keys:
        run(connection, "vectors/finish_pending", **_columns(keys))


def give_up(connection: Connection, rows: Sequence[Wanting], reason: str) -> None:
    """Note why these rows get no vector; they are tried again when their text changes, or the model."""
    if rows:
        leases = [row.lease for row in rows]
        run(connection, "vectors/give_up", **_columns([row.key for row in rows]), leases=leases, reason=reason)


def give_back(connection: Connection, keys: Sequence[Key], pause_seconds: float) -> None:
    """Give leases back; the rows are due again after a pause that grows with their attempts."""
    if keys:
        run(connection, "vectors/return_pending", **_columns(keys), pause=pause_seconds, now=_now(connection))


def set_scale(
    connection: Connection, model: EmbeddingModel, scale: tuple[float, float] | None, prefixes: tuple[str, str]
) -> None:
    """Note the cosine of unrelated texts in a model, and what its texts have before them, unless somebody was first."""
    mean, sd = scale or (None, None)
    query, document = prefixes
    run(
        connection, "vectors/set_scale", id=model.id, mean=mean, sd=sd, query_prefix=query, document_prefix=document
    )  # fmt: skip


def model_ids(connection: Connection) -> list[int]:
    """Every model that has vector tables."""
    return [model_id for (model_id,) in run(connection, "vectors/model_ids")]


def drop(connection: Connection, kind: Kind, rows: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
    """Delete the vectors of rows (theme, id) in every model; which of them had one."""
    keys = {"themes": [theme for theme, _ in rows], "ids": [row_id for _, row_id in rows]}
    found: set[tuple[str, int]] = set()
    for model_id in model_ids(connection) if rows else ():
        found.update(run(connection, DROP[kind], model_id, **keys))
    return found


def seconds_until_next(connection: Connection) -> float | None:
    """Seconds until the next row that was leased or put off is due; None when none waits."""
    seconds: float | None = one(connection, "vectors/seconds_until_next")[0]
    return seconds


def count(connection: Connection) -> tuple[int, int]:
    """(rows that want a vector, those due now); without those that were given up."""
    counted: tuple[int, int] = one(connection, "vectors/count_pending")
    return counted


def given_up(connection: Connection) -> dict[str, int]:
    """How many rows get no vector, by the reason."""
    return dict(run(connection, "vectors/given_up").fetchall())


def _now(connection: Connection) -> datetime:
    """The server's time."""
    now: datetime = one(connection, "vectors/clock")[0]
    return now


def _columns(keys: Collection[Key]) -> dict[str, list[Any]]:
    columns = list(map(list, zip(*keys, strict=True))) or [[], [], []]
    return dict(zip(("themes", "kinds", "ids"), columns, strict=True))
