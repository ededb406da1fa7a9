"""Rows of the audit log: added and read, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One thing that somebody did."""

    id: int
    at: datetime
    login: str
    """The role that was logged in to Postgres."""
    actor: str
    home_id: str
    action: str
    theme: str
    """Empty when it concerned more than one."""
    subject: str
    counts: Mapping[str, int]


def insert(
    connection: Connection,
    *,
    actor: str,
    home_id: str,
    action: str,
    theme: str,
    subject: str,
    counts: Mapping[str, int],
) -> int:
    """Add a row within the caller's transaction; return its number."""
    values = {"actor": actor, "home_id": home_id, "action": action, "theme": theme, "subject": subject}
    return int(one(connection, "audit/insert", **values, counts=json.dumps(dict(counts)))[0])


def newest(
    connection: Connection,
    *,
    theme: str | None,
    action: str | None,
    since: datetime | None,
    until: datetime | None,
    before_id: int | None,
    limit: int,
) -> list[AuditRow]:
    """Rows of a theme, an action and a time, or of all, newest first, below a number."""
    values = {"theme": theme, "action": action, "since": since, "until": until, "before_id": before_id}
    return [AuditRow(*row) for row in run(connection, "audit/list", **values, limit=limit)]
