"""What our statements depend on, however a database, a role, a pooler or an environment is set.

Each transaction sets it for itself, together with its time limits. Times come and go as ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from hermes_memory_pgvector.postgres.statements import statement

ENCODING: Final = "UTF8"
CONVENTIONS: Final = {
    "client_encoding": ENCODING,
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "array_nulls": "on",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
}
LATEST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
EARLIEST: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
"""A day from the ends of what Python can hold, so that every time zone can still show them."""


def keep_to(connection: psycopg.Connection[Any], limits: Mapping[str, object] | None = None) -> None:
    """Set the conventions and these limits for the current transaction."""
    _set(connection, {**CONVENTIONS, **(limits or {})}, is_local=True)


def keep_for_good(connection: psycopg.Connection[Any]) -> None:
    """Set the conventions for a connection that is the owner's own, and not from a pool."""
    _set(connection, CONVENTIONS, is_local=False)
    adapt(connection)


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Let a connection read times by our conventions, whatever the server says of the session.

    Every time that a row can have is read: one that Python cannot hold, such as infinity, would otherwise fail each
    statement that returns it.
    """
    connection.adapters.register_loader("timestamptz", _NearestTime)
    connection.adapters.register_loader("date", _IsoDate)


def _set(connection: psycopg.Connection[Any], values: Mapping[str, object], *, is_local: bool) -> None:
    given = {"names": list(values), "values": [str(each) for each in values.values()], "is_local": is_local}
    connection.execute(statement("connection/set_conventions"), given)


def _ordinary(name: str) -> Loader:
    oid = psycopg.adapters.types[name].oid
    loader: Any = psycopg.adapters.get_loader(oid, Format.TEXT)
    # Without a connection it takes ISO 8601 and UTC for granted.
    made: Loader = loader(oid, None)
    return made


class _IsoDate(Loader):
    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._ordinary = _ordinary("date")

    def load(self, data: Buffer) -> Any:
        return self._ordinary.load(data)


class _NearestTime(Loader):
    """Loads times, and those out of Python's range as the nearest within."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._ordinary = _ordinary("timestamptz")

    def load(self, data: Buffer) -> datetime:
        try:
            found: datetime = self._ordinary.load(data)
        except psycopg.DataError:
            text = bytes(data)
            return EARLIEST if text.startswith(b"-") or text.endswith(b"BC") else LATEST
        return found
