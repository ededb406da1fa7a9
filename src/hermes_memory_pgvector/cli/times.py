"""Times as people type them: an ISO date or time, or how long ago (90m, 12h, 7d, 4w); UTC unless they say otherwise."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

FORMS = "a date or time like 2026-05-31 or 2026-05-31T14:00, or an age like 90m, 12h, 7d, 4w"
_AGE = re.compile(r"(\d{1,5})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str) -> datetime:
    """Parse a time; a date is its first instant."""
    return _parse(text)[0]


def end(text: str) -> datetime:
    """Parse a time that ends something; a date includes its whole day."""
    parsed, is_date = _parse(text)
    return parsed + timedelta(days=1) if is_date else parsed


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add the two ends of a time."""
    parser.add_argument("--since", type=moment, metavar="TIME", help=f"only from then on: {FORMS}; UTC")
    parser.add_argument("--until", type=end, metavar="TIME", help="only before then; a date includes its whole day")


def shown(at: datetime) -> str:
    """A time as the tables show it, to the second, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def utc(at: datetime) -> datetime:
    """The same moment, as UTC tells it."""
    return at.astimezone(UTC)


def _parse(text: str) -> tuple[datetime, bool]:
    given = text.strip()
    age = _AGE.fullmatch(given)
    try:
        if age is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[age.group(2)]: int(age.group(1))}), False
        parsed = datetime.fromisoformat(given)
        aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        return aware.astimezone(UTC), len(given) <= 10
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; give {FORMS}") from None
