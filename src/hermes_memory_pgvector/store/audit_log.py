"""Rows of the audit log: added and read, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.terminal.fields import column


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One thing that somebody did."""

    id: int = column("number", right=True)
    at: datetime = column("when (UTC)")
    who: str = column("who")
    """What somebody says of himself; beside it the login, which Postgres knows, where it is another one than ours."""
    action: str = column("action")
    theme: str = column("theme", rare=True)
    """Empty when it concerned more than one."""
    subject: str = column("what", rare=True)
    counts: Mapping[str, int] | None = column("rows", text=True, show=amounts.counted)
    actor: str = ""
    login: str = ""
    """The role that was logged in to Postgres."""
    home_id: str = ""


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
