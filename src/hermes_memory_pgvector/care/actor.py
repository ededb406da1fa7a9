"""Who looks after the memory: the name that the audit log remembers."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.config.home import home_id

MAX_CHARS = 200
SWEEP = "sweep"
"""The name under which an engine tidies up by itself."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who changes the memory, and the home they do it from."""

    name: str
    home_id: str = ""


def operator(home: Path) -> Actor:
    """Whoever runs a command in this home: the system's user at this machine."""
    return Actor(f"{_user()}@{socket.gethostname()}"[:MAX_CHARS], home_id(home))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A container may run as a user that has no name.
        return f"uid {os.getuid()}"
