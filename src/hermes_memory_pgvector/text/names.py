"""Names of themes and sessions in the form they are stored. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

from hermes_memory_pgvector.text.clean import clean, text_of

MAX_NAME_CHARS = 256
MAX_NAME_BYTES = 256
"""What an index takes beside a vector."""
DIGEST_CHARS = 32


def word(value: Any) -> str:
    """A string without surrounding space and without what Postgres cannot hold; any other type is an empty one."""
    return clean(value).strip() if isinstance(value, str) else ""


def theme_name(value: Any) -> str:
    """A theme's name as somebody types it, in the form it is stored."""
    return bounded(word(value).casefold())


def session_name(value: Any) -> str:
    """A session's id in the form it is stored."""
    return bounded(text_of(value))


def bounded(name: str) -> str:
    """A name short enough to be indexed; a longer one is cut and ends in its digest, so that it stays distinct."""
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) <= MAX_NAME_BYTES:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:DIGEST_CHARS]
    return f"{encoded[: MAX_NAME_BYTES - DIGEST_CHARS - 1].decode('utf-8', 'ignore')}~{digest}"


def printable(name: str) -> str:
    """A name made safe for a log line or a prompt: short, and no character that steers a terminal or hides."""
    return "".join(sign if sign.isprintable() else "?" for sign in name[:64])
