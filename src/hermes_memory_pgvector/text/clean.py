"""Whatever the host or a file hands over, as text that Postgres and JSON can hold. Pure; nothing here raises."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

DELIMITER = "\n§\n"
"""What stands between two entries of MEMORY.md or USER.md."""
TEXT_MAX_DEPTH = 8
TEXT_MAX_PARTS = 1000
TEXT_MAX_CHARS = 1_000_000
"""No text is read beyond this length: an agent waits while it is read."""
DIGEST_CHARS = 32

_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACED = "\ufffd"
"""Stands for a lone surrogate, which is half a character."""


def clean(value: str) -> str:
    """Text that Postgres and JSON can hold: no NUL, no lone surrogates."""
    if "\x00" in value:
        value = value.replace("\x00", "")
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        if REPLACED in value:
            return _SURROGATE.sub(REPLACED, value)
        # The same result, many times faster: each of a surrogate's three bytes decodes to the replacement sign.
        value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace(3 * REPLACED, REPLACED)
    return value


def text_of(value: Any, most: int = TEXT_MAX_CHARS, depth: int = TEXT_MAX_DEPTH) -> str:
    """At most `most` characters of text from a message's content: a string, a list of parts, or anything else."""
    if isinstance(value, str):
        return clean(value[:most]).strip()
    if isinstance(value, bytes | bytearray):
        return clean(bytes(value[: 4 * most]).decode("utf-8", "replace")[:most]).strip()
    if depth <= 0:
        return ""
    if isinstance(value, Mapping):
        inner = value.get("text", value.get("content"))
        return text_of(inner, most, depth - 1) if isinstance(inner, str | list | tuple) else ""
    if isinstance(value, list | tuple):
        parts = []
        for part in value[:TEXT_MAX_PARTS]:
            text = text_of(part, most, depth - 1) if isinstance(part, str | Mapping) else ""
            if text:
                parts.append(text)
            # Blanks around a text, or instead of one, count as read: many parts of them cost no more than one.
            most -= max(len(text), _length(part)) + 1
            if most <= 0:
                break
        return "\n".join(parts)
    return ""


def _length(part: Any) -> int:
    inner = part.get("text", part.get("content")) if isinstance(part, Mapping) else part
    return len(inner) if isinstance(inner, str) else 0


def capped(content: str, max_chars: int, *, unread: int = 0) -> str:
    """The content, cut at the cap with a marker that says so; `unread` characters were already left out."""
    if len(content) <= max_chars and not unread:
        return content
    marker = f"\n[cut: the first {max_chars} of {len(content) + unread} characters are stored]"
    return content[: max_chars - len(marker)] + marker


def plain_lines(text: str) -> str:
    """Text as the host reads it back from a file: every line ending is a plain one."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def entries_of(text: str, max_chars: int) -> list[str]:
    """The distinct entries of MEMORY.md or USER.md, or of what the memory tool writes there, as they are stored.

    As when the host reads the file: every line ending becomes a plain one, and a delimiter splits an entry in two.
    """
    # Some editors begin a file with a mark of its encoding, which the host takes for a sign of the first entry.
    parts = (
        capped(clean(part.removeprefix("\ufeff")).strip(), max_chars) for part in plain_lines(text).split(DELIMITER)
    )
    return list(dict.fromkeys(part for part in parts if part))


def turn_digest(role: str, content: str) -> str:
    """Hex digest that identifies a turn's words within its session; the same function exists in SQL."""
    return hashlib.sha256(f"{role}:{content}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
