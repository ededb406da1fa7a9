"""The audit log: who did what, when, and to how many rows. No text of a memory or a turn ever enters it.

`record` belongs into the transaction of what it records, so that there is never one without the other.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import audit_log

MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who changes the memory, and the home they do it from."""

    name: str
    home_id: str = ""


def operator(home: Path) -> Actor:
    """Whoever runs a command in this home: the system's user at this machine."""
    return Actor(f"{_user()}@{socket.gethostname()}"[:MAX_CHARS], home_id(home))


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


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A container may run as a user that has no name.
        return f"uid {os.getuid()}"
