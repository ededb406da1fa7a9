"""Output of commands: aligned plain text for people, JSON for scripts, nothing that could confuse a terminal."""

from __future__ import annotations

import json
import os
import sys
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

Mark = Literal["ok", "warning", "problem", "note"]

_SIGNS: dict[Mark, tuple[str, str]] = {
    "ok": ("✓", "ok"),
    "warning": ("!", "! "),
    "problem": ("✗", "xx"),
    "note": ("·", "- "),
}
_UNITS = ("B", "kB", "MB", "GB", "TB")


def say(text: str = "") -> None:
    """Print a line for people."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def as_json(value: Any) -> None:
    """Print a document for scripts."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=_plain), flush=True)


def sign(mark: Mark) -> str:
    """The sign of a state; letters where the terminal shows only ASCII."""
    return _SIGNS[mark][0 if _speaks_unicode() else 1]


def bullet(mark: Mark, text: str, hint: str = "") -> None:
    """Print a line with its sign, and a hint below it."""
    say(f" {sign(mark)} {text}")
    if hint:
        arrow = "→" if _speaks_unicode() else "->"
        say(f"   {arrow} {hint}")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = (), indent: int = 2) -> None:
    """Print aligned columns; those in `right` are numbers."""
    cells = [[one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        parts = [
            " " * (width - _width(cell)) + cell if place in right else cell + " " * (width - _width(cell))
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        say(" " * indent + "  ".join(parts).rstrip())


def pairs(rows: Sequence[tuple[str, Any]], *, indent: int = 2) -> None:
    """Print names and values, aligned."""
    width = max((_width(name) for name, _ in rows), default=0)
    for name, value in rows:
        say(f"{' ' * indent}{name}{' ' * (width - _width(name))}  {one_line(value)}".rstrip())


@contextmanager
def step(text: str, *, quiet: bool = False) -> Iterator[list[str]]:
    """Print one line per step with its duration; the block appends the outcome to the list it gets."""
    started = time.perf_counter()
    said: list[str] = []
    try:
        yield said
    except BaseException:
        if not quiet:
            bullet("problem", text)
        raise
    if not quiet:
        outcome = f": {', '.join(said)}" if said else ""
        took = seconds(time.perf_counter() - started)
        line = f"{text}{outcome}"
        bullet("ok", f"{line}{' ' * max(2, 72 - _width(line))}{took:>7}")


def one_line(value: Any) -> str:
    """A value as one line of text that cannot control the terminal."""
    text = value if isinstance(value, str) else "–" if value is None else str(value)
    if not _speaks_unicode():
        text = text.replace("–", "-").replace("…", "...")
    return "".join(sign if sign.isprintable() else " " for sign in text)


def number(value: int) -> str:
    """A whole number with thousands separators."""
    return f"{value:,}"


def count(value: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 turn, 2 turns."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


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
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 90:
        return f"{value:.1f} s"
    minutes = value / 60
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 2880 else f"{minutes / 1440:.0f} days"


def ago(moment: datetime | float | None) -> str:
    """How long ago something happened."""
    if moment is None:
        return "never"
    then = moment.timestamp() if isinstance(moment, datetime) else moment
    past = max(0.0, datetime.now(UTC).timestamp() - then)
    return "just now" if past < 2 else f"{seconds(past)} ago"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _speaks_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "") in ("utf8", "utf8sig")


def command() -> str:
    """The command the reader can run: this program's name, or what `start.py` of a clone sets."""
    return os.environ.get("HERMES_PGVECTOR_COMMAND") or "hermes-pgvector"
