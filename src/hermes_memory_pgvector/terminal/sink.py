"""What the output goes to: a terminal with a width and perhaps colours, or a pipe that gets plain text."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from typing import IO, Literal, NamedTuple

When = Literal["auto", "always", "never"]
Style = Literal["ok", "warning", "problem", "note", "strong", "faint", "command"]

WHENS: tuple[When, ...] = ("auto", "always", "never")
CODES: dict[Style, str] = {
    "ok": "32",
    "warning": "33",
    "problem": "1;31",
    "note": "2",
    "strong": "1",
    "faint": "2",
    "command": "36",
}
"""What makes a terminal show them: green, yellow, bold red, dim, bold, cyan."""
CLEARED = "\r\x1b[K"
"""The cursor at the beginning of a line that is empty."""
NARROWEST = 40
"""Below this width, lines are cut by the terminal rather than wrapped by us."""


class Styled(NamedTuple):
    """Text that has a meaning, which a terminal shows as a colour."""

    text: str
    style: Style


Part = str | Styled


class _Choice:
    """What `--color` said, and whether the last line is a display that other output takes the place of."""

    colours: When = "auto"
    is_document: bool = False
    is_drawn: bool = False


_choice = _Choice()
_lock = threading.Lock()


def use(when: When, *, is_document: bool) -> None:
    """Follow `--color` and `--json`: where a document is printed, nobody watches and nobody is asked."""
    _choice.colours = when
    _choice.is_document = is_document


def is_document() -> bool:
    """Whether a document is printed, and nothing else."""
    return _choice.is_document


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Whether somebody is watching: output may be wrapped, and progress may be drawn over."""
    try:
        return not _choice.is_document and (stream or sys.stdout).isatty()
    except (ValueError, AttributeError):
        return False


def has_colours(stream: IO[str] | None = None) -> bool:
    """Whether to write colours: as `--color` says, else as NO_COLOR, FORCE_COLOR and the terminal say."""
    if _choice.colours != "auto":
        return _choice.colours == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def width(stream: IO[str] | None = None) -> int | None:
    """How wide the terminal is; None when the output is not a terminal, or too narrow for us to wrap it."""
    if not is_terminal(stream):
        return None
    columns = shutil.get_terminal_size((80, 24)).columns
    return columns if columns >= NARROWEST else None


def speaks_unicode(stream: IO[str] | None = None) -> bool:
    """Whether the output can show more than ASCII."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "ascii"
    return str(encoding).lower().replace("-", "") in ("utf8", "utf8sig")


def write(*parts: Part, stream: IO[str] | None = None, end: str = "\n") -> None:
    """Write the parts as one line, in colour where there is any; a display follows with its next frame."""
    out = stream or sys.stdout
    text = "".join(map(_coloured, parts)) if has_colours(out) else plain(parts)
    with _lock:
        is_over = _choice.is_drawn and is_terminal(out)
        print(f"{CLEARED if is_over else ''}{text}", file=out, end=end)
        out.flush()


def draw(text: str) -> None:
    """Show a line that the next one takes the place of; an empty one takes it away."""
    with _lock:
        _choice.is_drawn = bool(text)
        sys.stdout.write(f"{CLEARED}{text}")
        sys.stdout.flush()


def _coloured(part: Part) -> str:
    return part if isinstance(part, str) else f"\x1b[{CODES[part.style]}m{part.text}\x1b[0m"


def plain(parts: tuple[Part, ...] | list[Part]) -> str:
    """The parts without their styles."""
    return "".join(part if isinstance(part, str) else part.text for part in parts)
