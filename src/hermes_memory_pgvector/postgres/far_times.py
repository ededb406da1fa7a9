"""Times that Python cannot hold, such as Postgres's infinity: whoever may write rows may put them there.

A single such row would otherwise fail every statement that returns it, also for those who only come across it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

_OID = psycopg.adapters.types["timestamptz"].oid
# A day from the ends, so that every time zone can still show them.
LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)


class _NearestTime(Loader):
    """Loads times as psycopg does, and those out of its range as the nearest within."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        ordinary: Any = psycopg.adapters.get_loader(_OID, Format.TEXT)
        self._ordinary: Loader = ordinary(oid, context)

    def load(self, data: Buffer) -> datetime:
        try:
            found: datetime = self._ordinary.load(data)
        except psycopg.DataError:
            text = bytes(data)
            return EARLIEST if text.startswith(b"-") or text.endswith(b"BC") else LATEST
        return found


def allow_far_times(connection: psycopg.Connection[Any]) -> None:
    """Let this connection return every time that a row can have."""
    connection.adapters.register_loader("timestamptz", _NearestTime)
