"""What the output goes to: a terminal with a width and perhaps colours, or a pipe that gets plain text.

rich is imported only for a terminal or for colours, so that scripts do not wait for it.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

When = Literal["auto", "always", "never"]
Style = Literal["ok", "warning", "problem", "note", "strong", "faint", "command", "match", "name"]

WHENS: tuple[When, ...] = ("auto", "always", "never")
COLOURS: dict[Style, str] = {
    "ok": "green",
    "warning": "yellow",
    "problem": "bold red",
    "note": "dim",
    "strong": "bold",
    "faint": "dim",
    "command": "cyan",
    "match": "bold yellow",
    "name": "magenta",
}
NARROWEST = 40
"""Below this width, lines are cut by the terminal rather than wrapped by us."""


class Styled(NamedTuple):
    """Text that has a meaning, which a terminal shows as a colour."""

    text: str
    style: Style


Part = str | Styled


class _Choice:
    """What `--color` said, and the live display that other output must not overwrite."""

    colours: When = "auto"
    is_document: bool = False
    live: Live | None = None


_choice = _Choice()


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
    """Write the parts as one line, in colour where there is any; a live display stays below it."""
    out = stream or sys.stdout
    if _choice.live is not None and is_terminal(out):
        _choice.live.console.print(text_of(parts), end=end, soft_wrap=True)
    elif has_colours(out):
        console(out).print(text_of(parts), end=end, soft_wrap=True)
    else:
        print(plain(parts), file=out, end=end)
    out.flush()


def plain(parts: tuple[Part, ...] | list[Part]) -> str:
    """The parts without their styles."""
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def text_of(parts: tuple[Part, ...] | list[Part]) -> Text:
    """The parts as rich's text."""
    from rich.text import Text

    text = Text()
    for part in parts:
        if isinstance(part, str):
            text.append(part)
        else:
            text.append(part.text, COLOURS[part.style])
    return text


def console(stream: IO[str] | None = None) -> Console:
    """rich's console on a stream: no markup, no highlighting, our choice of colours."""
    from rich.console import Console

    out = stream or sys.stdout
    colours = has_colours(out)
    return Console(
        file=out,
        force_terminal=is_terminal(out) or colours,
        no_color=not colours,
        color_system="standard" if colours else None,
        width=width(out),
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def live() -> Live | None:
    """The display that is on."""
    return _choice.live


def set_live(live: Live | None) -> None:
    """Print other lines above this display; None when it is gone."""
    _choice.live = live
