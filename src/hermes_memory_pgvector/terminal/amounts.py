"""Numbers, sizes and times as people read them. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

_UNITS = ("B", "kB", "MB", "GB", "TB")


def count(value: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 turn, 2 turns."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def size(value: int) -> str:
    """Bytes in a unit that reads well."""
    amount = float(value)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def seconds(value: float) -> str:
    """A duration in a unit that reads well."""
    if 0 < value < 0.0005:
        return "<1 ms"
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 90:
        return f"{value:.1f} s"
    minutes = value / 60
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 2880 else f"{minutes / 1440:.0f} days"


def ago(moment: datetime | float | None, now: datetime | None = None) -> str:
    """How long ago something happened; `now` is what the clock says that told the moment, if that is not this one."""
    if moment is None:
        return "never"
    then = moment.timestamp() if isinstance(moment, datetime) else moment
    past = max(0.0, (time.time() if now is None else now.timestamp()) - then)
    return "just now" if past < 2 else f"{seconds(past)} ago"


def counted(counts: Mapping[str, int] | None) -> str:
    """Numbers with their nouns, without those that are zero."""
    kept = {name.replace("_", " "): number for name, number in (counts or {}).items() if number}
    return ", ".join(f"{name}: {number:,}" for name, number in kept.items())
