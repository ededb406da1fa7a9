"""What commands print and ask: coloured and fitted to a terminal, plain and stable in a pipe, JSON for scripts.

    say("Memory of ", styled(home, "strong"))       a line; parts may carry a style
    bullet("ok", "done", "next: hermes-pgvector …")  a line with its sign, and a hint; wrapped on a terminal
    table(head, rows, right=(1,))                    columns that fit the width; cells are values or styled()
    pairs([("database", where)])                     names and values
    heading("Stored")                                a title with a blank line above
    as_json(document)                                for --json: the only thing printed on standard output
    fail("no such theme", "see: hermes-pgvector …")  an error on standard error, with how to mend it
    with step("schema") as said: …                   one line per step, with its outcome and duration
    with progress("embedding", total=n, unit="row") as bar: bar.advance(); bar.phase("…")
                                                     appears after two seconds, with rate and time left
    confirm("Remove it?", yes=args.yes)              yes or no; False where nobody can answer
    ask("Home", default), ask_secret("Password")     a line; a line without echo
    number, count, size, seconds, ago, one_line      values as people read them
    command("forget", "--execute")                   a command for the reader to run; see `completing`

Strings are never read as markup. Whatever comes from outside goes through `one_line` first; `table` and `pairs` do it
themselves.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import IO, Any

from hermes_memory_pgvector.terminal import progress as live
from hermes_memory_pgvector.terminal import sink
from hermes_memory_pgvector.terminal.amounts import ago as ago
from hermes_memory_pgvector.terminal.amounts import count as count
from hermes_memory_pgvector.terminal.amounts import number as number
from hermes_memory_pgvector.terminal.amounts import seconds as seconds
from hermes_memory_pgvector.terminal.amounts import size as size
from hermes_memory_pgvector.terminal.ask import ask as ask
from hermes_memory_pgvector.terminal.ask import ask_secret as ask_secret
from hermes_memory_pgvector.terminal.ask import can_ask as can_ask
from hermes_memory_pgvector.terminal.ask import confirm as confirm
from hermes_memory_pgvector.terminal.operation import PROGRAM as PROGRAM
from hermes_memory_pgvector.terminal.operation import Mark
from hermes_memory_pgvector.terminal.render import one_line as one_line
from hermes_memory_pgvector.terminal.render import sign as sign
from hermes_memory_pgvector.terminal.render import width_of
from hermes_memory_pgvector.terminal.sink import Part, Style, Styled

_COMMAND = re.compile(
    r"(?:^|(?<=: )|(?<=, ))((?:[A-Z_]+=\S+ )*(?:\S*/)?(?:hermes-pgvector|hermes|pip|python3?|apt|brew|psql) .+)$"
)
STEP_WIDTH = 72
TEXT_WIDTH = 40
"""Where a text has less room than this beside other columns, it stands below them."""
WORDS_WIDTH = 24
"""A column that is wider than this has several words, between which it can wrap."""


class _Reader:
    """Who reads what is printed, and how they run our commands."""

    completed: Callable[[str], str] = staticmethod(lambda text: text)


@contextmanager
def completing(how: Callable[[str], str]) -> Iterator[None]:
    """Pass sentences through this before they are printed: it makes the commands in them ones the reader can run."""
    former = _Reader.completed
    _Reader.completed = staticmethod(how)
    try:
        yield
    finally:
        _Reader.completed = staticmethod(former)


def completed(text: str) -> str:
    """A sentence of ours, with the commands in it as the reader can run them."""
    return _Reader.completed(text)


def styled(text: Any, style: Style) -> Styled:
    """A value as a line of text with a meaning: ok, warning, problem, note, strong, faint, command, match or name."""
    return Styled(one_line(text), style)


def say(*parts: Part) -> None:
    """Print a line for people."""
    sink.write(*parts)


def complain(text: str) -> None:
    """Print a line to standard error."""
    sink.write(text, stream=sys.stderr)


def fail(text: str, hint: str = "") -> None:
    """Print an error to standard error: who speaks, what is wrong, and how to mend it."""
    first: list[Part] = [Styled(f"{PROGRAM}: ", "problem")]
    _ending_in_a_command(_with_command(text), first, indent=2, stream=sys.stderr)
    if hint:
        _hint(hint, stream=sys.stderr)


def heading(text: str) -> None:
    """Print a title with a blank line above."""
    say()
    say(styled(text, "strong"))


def as_json(value: Any) -> None:
    """Print a document for scripts."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")
    sys.stdout.flush()


def bullet(mark: Mark, text: Part | Sequence[Part], hint: str = "", *, indent: int = 3) -> None:
    """Print a line with its sign, and a hint below it; further lines of the text begin at the indent."""
    given = [text] if isinstance(text, str | Styled) else list(text)
    parts = [part if isinstance(part, Styled) else completed(part) for part in given]
    _wrapped(parts, [" ", Styled(sign(mark), mark), " "], indent=indent)
    if hint:
        _hint(hint)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = (), indent: int = 2) -> None:
    """Print aligned columns; those in `right` are numbers.

    On a terminal that is too narrow, long texts wrap within their column. Where the last one would be a thin strip, it
    moves below its row, and so do the columns before it that do not fit either.
    """
    cells = [[_cell(cell) for cell in row] for row in (head, *rows)]
    widths = [max(width_of(cell.text) for cell in column) for column in zip(*cells, strict=True)]
    room = sink.width()
    if room is None or indent + sum(widths) + 2 * (len(widths) - 1) <= room:
        for line in _aligned(cells, widths, right, indent, 2):
            say(*line)
    elif _has_room_for_text(widths, right, room - indent):
        _fitted(cells, right, indent)
    else:
        ends_in_text = len(widths) - 1 not in right
        kept, gap = _beside(widths[:-1] if ends_in_text else widths, room - indent)
        for line, row in zip(_aligned([row[:kept] for row in cells], widths, right, indent, gap), cells, strict=True):
            say(*line)
            if row is not cells[0]:
                _tell_below(cells[0], row, kept, indent + 4, ends_in_text=ends_in_text)


def _has_room_for_text(widths: list[int], right: Sequence[int], room: int) -> bool:
    """Whether texts can be read when they wrap within their columns: the last one, or a long one before numbers."""
    if len(widths) - 1 in right:
        return any(width > WORDS_WIDTH for column, width in enumerate(widths) if column not in right)
    return room - sum(widths[:-1]) - 2 * len(widths[:-1]) >= min(widths[-1], TEXT_WIDTH)


def _beside(widths: list[int], room: int) -> tuple[int, int]:
    """How many columns fit beside each other, and the gap between them."""
    for gap in (2, 1):
        if sum(widths) + gap * (len(widths) - 1) <= room:
            return len(widths), gap
    fitting = [count for count in range(1, len(widths)) if sum(widths[:count]) + 2 * (count - 1) <= room]
    return max(fitting, default=1), 2


def _tell_below(
    head: Sequence[Styled | _Plain], row: Sequence[Styled | _Plain], kept: int, indent: int, *, ends_in_text: bool
) -> None:
    """Print what had no room beside the first columns: values with their names, and the text."""
    end = len(row) - ends_in_text
    beside = zip(head[kept:end], row[kept:end], strict=True)
    named = [f"{name.text} {cell.text}" for name, cell in beside if cell.text not in ("", one_line(None))]
    if named:
        wrap([Styled(", ".join(named), "faint")], indent)
    if ends_in_text and row[-1].text:
        wrap([row[-1] if isinstance(row[-1], Styled) else row[-1].text], indent)


def _aligned(
    cells: Sequence[Sequence[Styled | _Plain]], widths: list[int], right: Sequence[int], indent: int, gap: int
) -> Iterator[list[Part]]:
    for place, row in enumerate(cells):
        parts: list[Part] = [" " * indent]
        for column, (cell, width) in enumerate(zip(row, widths, strict=False)):
            padding = " " * (width - width_of(cell.text))
            shown = Styled(cell.text, "faint") if place == 0 else cell
            is_last = column == len(row) - 1
            parts += [padding, shown] if column in right else [shown, "" if is_last else padding]
            parts.append("" if is_last else " " * gap)
        yield _trimmed(parts)


def pairs(rows: Sequence[tuple[str, Any]], *, indent: int = 2) -> None:
    """Print names and values, aligned."""
    width = max((width_of(name) for name, _ in rows), default=0)
    for name, value in rows:
        padding = " " * (width - width_of(name) + 2)
        _wrapped([_value(value)], [" " * indent, Styled(name, "faint"), padding], indent=indent + width + 2)


@contextmanager
def step(text: str, *, quiet: bool = False) -> Iterator[list[str]]:
    """Print one line per step with its duration; the block appends the outcome to the list it gets."""
    started = time.perf_counter()
    said: list[str] = []
    try:
        with live.waiting(text, quiet=quiet):
            yield said
    except BaseException:
        if not quiet:
            bullet("problem", text)
        raise
    if not quiet:
        outcome = f": {', '.join(said)}" if said else ""
        took = seconds(time.perf_counter() - started)
        line = f"{text}{outcome}"
        room = min(STEP_WIDTH, (sink.width() or 120) - 11)
        gap = " " * max(2, room - width_of(line))
        bullet("ok", [line, gap, Styled(f"{took:>7}", "faint")])


@contextmanager
def progress(text: str, *, total: int | None = None, unit: str = "", quiet: bool = False) -> Iterator[live.Bar]:
    """Show how far a long task is, once it has taken two seconds; in a pipe, one line for each phase it names."""
    with live.bar(text, total=total, unit=unit, quiet=quiet, note=lambda phase: bullet("note", phase)) as shown:
        yield shown


def command(*words: str) -> str:
    """A command of ours that the reader can run; its words are quoted as a shell wants them."""
    return completed(shlex.join([PROGRAM, *words]))


def wrap(parts: Sequence[Part], indent: int, *, first: Sequence[Part] = ()) -> None:
    """Print text wrapped to the terminal and indented below its first line; in a pipe, as one line."""
    _wrapped(list(parts), list(first) or [" " * indent], indent=indent)


def _wrapped(parts: list[Part], first: list[Part], *, indent: int, stream: IO[str] | None = None) -> None:
    room = sink.width(stream)
    if room is None or width_of(sink.plain([*first, *parts])) <= room:
        sink.write(*first, *parts, stream=stream)
        return
    # The first line may have more room than the others, or less.
    out = sink.console(stream)
    text = sink.text_of(parts)
    begun = text.wrap(out, max(1, room - width_of(sink.plain(first))), overflow="fold")[0]
    begun.rstrip()
    rest = text[len(begun) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    sink.write_text(sink.text_of(first) + begun, out, stream)
    for line in rest.wrap(out, max(1, room - indent), overflow="fold") if rest else ():
        line.rstrip()
        sink.write_text(sink.text_of([" " * indent]) + line, out, stream)


def _hint(hint: str, *, stream: IO[str] | None = None) -> None:
    arrow = "→" if sink.speaks_unicode(stream) else "->"
    first: list[Part] = ["   ", Styled(arrow, "faint"), " "]
    hint = completed(hint)
    _ending_in_a_command(_with_command(hint), first, indent=5, stream=stream)


def _ending_in_a_command(parts: list[Part], first: list[Part], *, indent: int, stream: IO[str] | None) -> None:
    """Print a sentence; a command on a line of its own can be copied whole, however long it is."""
    room = sink.width(stream)
    if len(parts) == 2 and room is not None and width_of(sink.plain([*first, *parts])) > room:
        _wrapped([sink.plain(parts[:1]).rstrip()], first, indent=indent, stream=stream)
        sink.write(" " * indent, parts[1], stream=stream)
    elif len(parts) == 1 and isinstance(parts[0], Styled):
        sink.write(*first, *parts, stream=stream)
    else:
        _wrapped(parts, first, indent=indent, stream=stream)


def _with_command(text: str) -> list[Part]:
    """The text, with the command that it ends with as a part of its own."""
    text = completed(text)
    found = _COMMAND.search(text)
    if found is None:
        return [text]
    rest: list[Part] = [text[: found.start(1)]] if found.start(1) else []
    return [*rest, Styled(found.group(1), "command")]


def _fitted(cells: list[list[Styled | _Plain]], right: Sequence[int], indent: int) -> None:
    from rich.padding import Padding
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="")
    for column, head in enumerate(cells[0]):
        is_number = column in right
        grid.add_column(
            sink.text_of([Styled(head.text, "faint")]),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in cells[1:]:
        grid.add_row(*(sink.text_of([cell if isinstance(cell, Styled) else cell.text]) for cell in row))
    sink.write_text(Padding(grid, (0, 0, 0, indent)), sink.console(), None)


class _Plain(str):
    """A cell without a style; it has `text` as styled ones do."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return str(self)


def _cell(value: Any) -> Styled | _Plain:
    return Styled(one_line(value.text), value.style) if isinstance(value, Styled) else _Plain(one_line(value))


def _value(value: Any) -> Part:
    return Styled(one_line(value.text), value.style) if isinstance(value, Styled) else one_line(value)


def _trimmed(parts: list[Part]) -> list[Part]:
    """The parts without blanks at the end of the line."""
    while parts and not sink.plain([parts[-1]]).strip():
        parts.pop()
    last = parts[-1] if parts else ""
    return [*parts[:-1], last.rstrip() if isinstance(last, str) else Styled(last.text.rstrip(), last.style)]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
