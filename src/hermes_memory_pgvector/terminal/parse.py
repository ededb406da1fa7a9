"""What people type for a value, read with care: times, numbers and the names of rows. Pure but for the clock.

A wrong value is a UsageError with a sentence that says what to type instead: an exit code of 2, or a status of 400.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from hermes_memory_pgvector.errors import UsageError

FORMS = "a date or time like 2026-05-31 or 2026-05-31T14:00, or an age like 90m, 12h, 7d, 4w"
_AGE = re.compile(r"(\d{1,5})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NAME = re.compile(r"([mted])(\d{1,18})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RecordName:
    """The name of something stored, as lists show it: m12 a memory, t34 a turn, e5 an event, d3 a rejected record."""

    letter: str
    number: int

    def __str__(self) -> str:
        return f"{self.letter}{self.number}"


def record_name(text: str) -> RecordName | None:
    """The name that a text is; None when it is none."""
    found = _NAME.fullmatch(text.strip())
    return None if found is None else RecordName(found.group(1).lower(), int(found.group(2)))


def _named(letters: str, told: str, text: str) -> RecordName:
    """The name of a record of some kind."""
    found = record_name(text)
    if found is None or found.letter not in letters:
        raise UsageError(f"{text!r} names no {told}")
    return found


row_name = partial(_named, "mt", "row; `list` shows them: m12 is a memory, t34 is a turn")
event_name = partial(_named, "e", "event; `list events` shows them: e5")
rejected_name = partial(_named, "d", "rejected record; `list rejected` shows them: d3")


def moment(text: str) -> datetime:
    """A time: an ISO date or time, or how long ago; UTC unless it says otherwise. A date is its first instant."""
    return _time(text)[0]


def end(text: str) -> datetime:
    """A time that ends something; a date includes its whole day."""
    parsed, is_date = _time(text)
    return parsed + timedelta(days=1) if is_date else parsed


def positive(text: str) -> int:
    """A whole number above zero."""
    given = text.strip()
    if not given.isascii() or not given.isdecimal() or not 0 < len(given) <= 9 or int(given) < 1:
        raise UsageError(f"expected a whole number above 0, not {text!r}")
    return int(given)


def address(text: str) -> tuple[str, int]:
    """HOST:PORT."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"expected HOST:PORT, such as 127.0.0.1:9121, not {text!r}")
    return host, int(port)


def filled(text: str) -> str:
    """A text that says something: an empty one must not be taken for all there is."""
    if not text.strip():
        raise UsageError("it is empty: give a value, or leave it out")
    return text


def _time(text: str) -> tuple[datetime, bool]:
    given = text.strip()
    age = _AGE.fullmatch(given)
    try:
        if age is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[age.group(2)]: int(age.group(1))}), False
        parsed = datetime.fromisoformat(given)
        aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        return aware.astimezone(UTC), len(given) <= len("2026-05-31")
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a time; give {FORMS}") from None
