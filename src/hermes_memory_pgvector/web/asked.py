"""What a browser asks, read with care, and the ways to say no. Pure."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from enum import Enum
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.errors import MemoryPluginError

BAD, MISSING, CHANGED, UNAVAILABLE = 400, 404, 409, 503
MOST_CHARS = 4000
"""No parameter of a request is longer than this, except the texts of an edit."""
DIGEST_CHARS = 32

Document = dict[str, Any]


class Refused(MemoryPluginError):
    """A request that cannot be answered as it is; the message says what to do."""

    def __init__(self, sentence: str, status: int = BAD, document: Document | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.document = document or {}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the home it is about, its query and its body."""

    home: Path
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A parameter as text without blanks around it; empty when it is not there."""
        value = self.query.get(name, self.body.get(name, ""))
        if not isinstance(value, str):
            raise Refused(f"{name} is not a text")
        if len(value) > MOST_CHARS:
            raise Refused(f"{name} is longer than {MOST_CHARS} characters")
        if "\x00" in value or (not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value)):
            raise Refused(f"{name} holds a sign that no stored text has")
        return value.strip()

    def needed(self, name: str) -> str:
        """A parameter that has to be there."""
        return self.text(name) or _refuse(f"{name} is missing")

    def one_of(self, name: str, *choices: str) -> str:
        """One of some words; the first when it is not there."""
        value = self.text(name) or choices[0]
        return value if value in choices else _refuse(f"{name} is one of {', '.join(choices)}")

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        given = self.text(name)
        if not given:
            return default
        if not given.isascii() or not given.isdecimal() or len(given) > 18:
            raise Refused(f"{name} is not a whole number")
        return max(least, min(most, int(given)))

    def moment(self, name: str, *, at_end: bool = False) -> datetime | None:
        """A date or a time, UTC unless it says otherwise; a date alone is its beginning, or its end."""
        given = self.text(name)
        if not given:
            return None
        try:
            parsed = datetime.fromisoformat(given)
            if at_end and len(given) <= len("2026-05-31"):
                parsed = datetime.combine(parsed.date(), time.max)
            return parsed.astimezone(UTC) if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise Refused(f"{name} is not a date; give it like 2026-05-31 or 2026-05-31T14:00") from None


def plain(value: Any) -> Any:
    """A value as JSON has it: times in UTC, dataclasses as mappings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def digest_of(*parts: Any) -> str:
    """A short name for a plan: whoever confirms sends it back, so that what is done is what was shown."""
    text = json.dumps(plain(parts), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_CHARS]


def _refuse(sentence: str) -> str:
    raise Refused(sentence)
