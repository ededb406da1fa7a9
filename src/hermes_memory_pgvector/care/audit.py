"""The audit log: who did what, when, and to how many rows. No text of a memory or a turn ever enters it.

`record` belongs into the transaction of what it records, so that there is never one without the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import audit_log
from hermes_memory_pgvector.store.audit_log import AuditRow


def record(
    connection: Connection,
    actor: Actor,
    action: str,
    *,
    theme: str = "",
    subject: str = "",
    counts: Mapping[str, int],
) -> int:
    """Note what somebody did, and return the number of the note.

    `action` is the command's name; `subject` names an id, a session or a receipt, and never quotes a text.
    """
    return audit_log.insert(
        connection,
        actor=actor.name,
        home_id=actor.home_id,
        action=action,
        theme=theme,
        subject=subject,
        counts=counts,
    )


def read(
    connection: Connection,
    *,
    theme: str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[AuditRow]:
    """What was done, newest first; pages continue below the number of their last row."""
    return audit_log.newest(
        connection, theme=theme, action=action, since=since, until=until, before_id=before_id, limit=limit
    )
