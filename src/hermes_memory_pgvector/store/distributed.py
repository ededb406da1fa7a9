"""Statements on a database whose rows are spread over the workers of a Citus cluster.

Most statements are the same there. Those that Citus does not take, or takes only at the price of asking every worker,
have another text under sql/citus/queries, by the same name and with the same answer. A text that begins with
`-- Per theme:` is about one theme, `%(theme)s`: it is sent once for each of `themes`, with the elements of those lists
that the statement unnests beside them; or with whole lists if it numbers their elements, from which it then takes the
theme's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, Self

import psycopg
from psycopg import sql

from hermes_memory_pgvector.store.statements import FOLDER, Named, statement
from hermes_memory_pgvector.store.vector_types import HalfVectors

PER_THEME = "-- Per theme:"
THEN = "\n-- Then:\n"
"""Stands between a text that is sent before, in the same transaction, and the one that answers."""
UNNESTED = re.compile(r"unnest\(((?:[^()]|%\(\w+\))*)\)")
PARAMETER = re.compile(r"%\((\w+)\)")


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Let a new connection speak as its database needs."""
    if is_distributed(connection):
        connection.cursor_factory = DistributedCursor


def is_distributed(connection: psycopg.Connection[Any]) -> bool:
    """Whether the tables are spread over a cluster."""
    return connection.execute(statement("schema/is_distributed")).fetchone() == (True,)


def is_adapted(connection: psycopg.Connection[Any]) -> bool:
    """Whether `adapt` has found this connection's tables spread over a cluster."""
    return issubclass(connection.cursor_factory, DistributedCursor)


def keep_in_sequence(connection: psycopg.Connection[Any]) -> None:
    """Let this transaction use one connection to each node: only such a one changes what every node has a copy of.

    It has to be said before anything else is done; on one server it is nothing.
    """
    if is_adapted(connection):
        connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")


class DistributedCursor(psycopg.Cursor[Any]):
    """Sends the text that a cluster takes; the rows of a statement that was sent several times come as those of one."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._parts: list[psycopg.Cursor[Any]] = []

    def execute(self, query: Any, params: Any = None, **more: Any) -> Self:
        self._parts = []
        texts = _other_texts(query) if isinstance(query, Named) else ()
        if not texts:
            return super().execute(query, params, **more)
        *before, last = texts
        for text in before:
            for arguments in text.arguments(params):
                psycopg.Cursor(self.connection).execute(text.query, arguments)
        first, *others = last.arguments(params)
        super().execute(last.query, first, **more)
        for arguments in others:
            part = psycopg.Cursor(self.connection, row_factory=self.row_factory)
            self._parts.append(part.execute(last.query, arguments, **more))
        return self

    @property
    def rowcount(self) -> int:
        return super().rowcount + sum(part.rowcount for part in self._parts)

    def fetchone(self) -> Any:
        row = super().fetchone()
        while row is None and self._parts:
            row = self._parts[0].fetchone()
            if row is None:
                self._parts.pop(0)
        return row

    def fetchmany(self, size: int = 0) -> list[Any]:
        rows = super().fetchmany(size)
        wanted = size or self.arraysize
        while len(rows) < wanted and self._parts:
            more = self._parts[0].fetchmany(wanted - len(rows))
            if not more:
                self._parts.pop(0)
            rows += more
        return rows

    def fetchall(self) -> list[Any]:
        rows = super().fetchall()
        for part in self._parts:
            rows += part.fetchall()
        self._parts = []
        return rows

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row


@dataclass(frozen=True, slots=True)
class OtherText:
    """What is sent to a cluster in the place of a statement."""

    query: sql.SQL | sql.Composed
    is_per_theme: bool
    is_numbered: bool
    along: frozenset[str]
    """The lists with one element for each of `themes`."""

    def arguments(self, params: Any) -> list[Any]:
        """What it is sent with, each time; once at least."""
        if not self.is_per_theme:
            return [params]
        return list(_by_theme(params, frozenset() if self.is_numbered else self.along)) or [{**params, "theme": ""}]


def other_texts(name: str, names: Mapping[str, sql.Composable]) -> tuple[OtherText, ...]:
    """The texts that stand in the place of this statement, of which the last one answers; none where it is the same."""
    file = FOLDER.joinpath(f"citus/queries/{name}.sql")
    if not file.is_file():
        return ()
    # The files ship with the package and are reviewed like code, which is what LiteralString asks for.
    whole: LiteralString = file.read_text(encoding="utf-8")
    return tuple(
        OtherText(
            sql.SQL(text).format(**names) if names else sql.SQL(text),
            text.startswith(PER_THEME),
            "WITH ORDINALITY" in text,
            _beside_themes(name) if text.startswith(PER_THEME) else frozenset(),
        )
        for text in whole.split(THEN)
    )


def _beside_themes(name: str) -> frozenset[str]:
    """`themes`, and the lists that a statement unnests together with them."""
    text = FOLDER.joinpath(f"queries/{name}.sql").read_text(encoding="utf-8")
    lists = [frozenset(PARAMETER.findall(each)) for each in UNNESTED.findall(text)]
    return next((each for each in lists if "themes" in each), frozenset({"themes"}))


def _other_texts(query: Named) -> tuple[OtherText, ...]:
    # Statements are made once and kept, so that their identity is enough to know them by.
    key = id(query)
    if key not in _known:
        _known[key] = other_texts(query.name, query.names)
    return _known[key]


_known: dict[int, tuple[OtherText, ...]] = {}


def _by_theme(params: Mapping[str, Any], along: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The arguments of each theme: its elements of the lists `along`; where there are none, all lists as they are."""
    themes: Sequence[str] = params["themes"]
    places: dict[str, list[int]] = {}
    for place, theme in enumerate(themes):
        places.setdefault(theme, []).append(place)
    for theme, own in sorted(places.items()):
        taken = {name: _taken(value, own) if name in along else value for name, value in params.items()}
        yield {"theme": theme, **taken}


def _taken(value: Any, places: Sequence[int]) -> Any:
    if isinstance(value, HalfVectors):
        return HalfVectors([value.rows[place] for place in places], value.oid)
    return [value[place] for place in places]
