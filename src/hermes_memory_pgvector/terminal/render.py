"""Answers as people read them: aligned, as wide as the terminal or at most 80 columns in a pipe; or as JSON.

Strings from outside may hold anything; all of them pass `one_line` here, in `told`, and nowhere else.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, cast

from hermes_memory_pgvector.terminal import amounts, ending, sink
from hermes_memory_pgvector.terminal.operation import (
    PROGRAM,
    Course,
    Mark,
    Note,
    Page,
    Plan,
    Raw,
    Stream,
    command,
    plain,
)
from hermes_memory_pgvector.terminal.sink import Part, Style, Styled

PIPE_WIDTH = 80
TEXT_LEAST = 24
"""A text with less room than this beside other columns stands below them."""
TEXT_MOST = 300
"""How much of a text stands in a table on a terminal."""
GAP = 2
ENDLESS = 1_000_000
STEP_WIDTH = 80
"""Where the time that a step took ends."""
SIGNS: dict[Mark, tuple[str, str]] = {
    "ok": ("✓", "ok"),
    "warning": ("!", "! "),
    "problem": ("✗", "xx"),
    "note": ("·", "- "),
}
Line = list[Part]
HOME_OPTION = "--hermes-home"
# A name in backticks is spoken of, and not to be typed.
_OURS = re.compile(rf"(?<![\w./`-]){PROGRAM} ([a-z][a-z-]*)")
_NAMED = re.compile(r"(?: *\S+(?: \S+)* {2,}| +)(?=\S)")
_HOSTS = re.compile(r"(?<![\w./`-])hermes (?=config set )")
_ENDING = re.compile(r"(?:^|(?<=: )|(?<=, ))(?:HERMES_HOME=\S+ )?(?:\S*/)?(?:hermes-pgvector|hermes|python3) .+$")
"""A command at the end of a hint."""


@dataclass
class _Voice:
    """How the reader of this process's output calls our program, and for which home."""

    program: str = PROGRAM
    home: str | None = None


_voice = _Voice()


@contextmanager
def spoken_to(program: str | None = None, home: object = None) -> Iterator[None]:
    """Print commands as ones that this reader can run; without a program, by the name it has already."""
    former = (_voice.program, _voice.home)
    _voice.program, _voice.home = program or _voice.program, None if home is None else str(home)
    try:
        yield
    finally:
        _voice.program, _voice.home = former


def addressed(text: str) -> str:
    """A sentence of ours, with the commands in it as the reader can run them: by their own name, for their home."""
    if HOME_OPTION in text or "HERMES_HOME=" in text:
        return text
    home = "" if _voice.home is None else f" {HOME_OPTION} {shlex.quote(_voice.home)}"
    text = _OURS.sub(lambda found: f"{_voice.program} {found[1]}{home}", text)
    host = _voice.program.removesuffix(" pgvector") if _voice.program.endswith(" pgvector") else "hermes"
    return _HOSTS.sub(f"HERMES_HOME={shlex.quote(_voice.home)} hermes " if _voice.home else f"{host} ", text)


def show(answer: Any, *, as_json: bool, again: Sequence[str] = ()) -> int:
    """Print an answer; return its exit code. `again` is the command that was typed, for plans."""
    if isinstance(answer, Course):
        answer = _walked(answer, as_json=as_json)
    if isinstance(answer, Stream):
        with ending.in_peace() if answer.is_endless else nullcontext():
            for row in answer.rows:
                _tell_row(row, as_json=as_json)
    elif as_json:
        sys.stdout.write(json.dumps(plain(answer), ensure_ascii=False, indent=2) + "\n")
    elif isinstance(answer, Raw):
        sys.stdout.write(answer.as_text())
    else:
        for line in lines(answer, sink.width() or PIPE_WIDTH, again):
            sink.write(*line)
    return int(getattr(answer, "exit_code", 0))


def _tell_row(row: Any, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(plain(row), ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    for line in _row_lines(row):
        sink.write(*line)


def _walked(course: Course, *, as_json: bool) -> Any:
    """The answer at the end of a course; its steps are told on the way."""
    answers: list[Any] = []

    def steps() -> Iterator[Note | str]:
        answers.append((yield from course.steps))

    for step in steps():
        if isinstance(step, str) and not as_json:
            sink.write()
            sink.write(Styled(one_line(step), "strong"))
        elif isinstance(step, Note) and not as_json:
            tell(step)
    return answers[0]


def tell(note: Note) -> None:
    """Print a line with its sign, at once."""
    for line in note_lines(note, sink.width() or PIPE_WIDTH):
        sink.write(*line)


def lines(answer: Any, room: int, again: Sequence[str] = ()) -> Iterator[Line]:
    """An answer as lines that fit the room."""
    if isinstance(answer, Plan):
        yield from _plan(answer, room, again)
        return
    if isinstance(answer, Page) and not answer.rows:
        yield from wrapped(answer.empty, room)
    yield from _facts(answer, room)


def one_line(value: Any) -> str:
    """A value as one line of text that can neither control the terminal nor turn its direction."""
    text = value if isinstance(value, str) else "–" if value is None else str(value)
    if not sink.speaks_unicode():
        text = text.replace("–", "-").replace("…", "...")
    return "".join(sign if sign.isprintable() else " " for sign in text)


def told(value: Any) -> str:
    """A value as people read it."""
    match value:
        case None | "" | () | []:
            return one_line(None)
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.2f}"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
        case Mapping():
            return one_line(", ".join(f"{name}: {told(each)}" for name, each in value.items()))
        case list() | tuple():
            return ", ".join(told(each) for each in value)
        case _:
            return " ".join(one_line(value).split())


def width_of(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def table(rows: Sequence[Any], room: int, indent: int = 2) -> Iterator[Line]:
    """Rows under their headings, one line each; what has no room beside the others stands below its row."""
    shown = _columns(rows)
    beside = [each for each in shown if not each.metadata["text"] and not each.metadata["below"]]
    below = [each for each in shown if each.metadata["below"]]
    text = next((each for each in shown if each.metadata["text"]), None)
    cells = [[_shown(row, each) for each in beside] for row in rows]
    heads = [one_line(each.metadata["head"]) for each in beside]
    widths = [max(map(width_of, column)) for column in zip(heads, *cells, strict=True)]
    # The first has room in any case.
    kept = next((n for n in range(len(widths), 1, -1) if sum(widths[:n]) + GAP * (n - 1) <= room - indent), 1)
    deeper, rest = indent + 4, room - indent - sum(widths[:kept]) - GAP * kept
    is_beside = text is not None and not text.metadata["whole"] and kept >= len(widths) and rest >= TEXT_LEAST
    last = one_line(text.metadata["head"]) if text is not None and is_beside else ""
    yield _aligned(heads[:kept], beside, widths, indent, [Styled(last, "faint")] if last else [], is_head=True)
    for row, line in zip(rows, cells, strict=True):
        said = "" if text is None else _shown(row, text)
        space = rest if is_beside else room - deeper
        parts = folded(shortened(said, space if sink.width() is None else TEXT_MOST), space)
        begun = parts[:1] if is_beside and said else []
        yield _aligned(line[:kept], beside, widths, indent, [*begun])
        for more in parts[1:] if is_beside else ():
            yield [" " * (room - rest), more]
        named = zip(heads[kept:], line[kept:], strict=True)
        hidden = [f"{head} {value}" for head, value in named if value != one_line(None)]
        if hidden:
            yield from wrapped(", ".join(hidden), room, [" " * deeper], deeper, "faint")
        if text is not None and text.metadata["whole"]:
            yield from _body(getattr(row, text.name), room, deeper)
        elif text is not None and not is_beside and said != one_line(None):
            for more in parts:
                yield [" " * deeper, more]
        for each in below:
            if getattr(row, each.name):
                head = f"{each.metadata['head']}  "
                fits = shortened(_shown(row, each), room - deeper - width_of(head))
                yield [" " * deeper, Styled(head, "faint"), fits]


def wrapped(
    text: str, room: int, first: Sequence[Part] = (), indent: int = 0, style: Style | None = None
) -> Iterator[Line]:
    """Text folded between words, behind what begins its first line; further lines begin at the indent."""
    begun, *others = folded(text, max(1, room - indent), max(1, room - width_of(sink.plain(list(first)))))
    for head, line in ((first, begun), *(((" " * indent,), each) for each in others)):
        yield [*head, line if style is None else Styled(line, style)]


def folded(text: str, room: int, first: int | None = None) -> list[str]:
    """A text as lines of at most so many columns, broken between words where it can; the first may have less room."""
    found: list[str] = []
    line: str | None = None
    most = room if first is None else first
    for word in text.split(" "):
        joined = word if line is None else f"{line} {word}"
        if width_of(joined) <= most:
            line = joined
            continue
        if line and line.strip():
            found.append(line)
            most = room
        while width_of(word) > most:
            end = max(1, next(n for n in range(len(word), 0, -1) if n == 1 or width_of(word[:n]) <= most))
            found.append(word[:end])
            word, most = word[end:], room
        line = word
    return [*found, line or ""]


def shortened(text: str, room: int) -> str:
    """The beginning of a text that fits the room, with a sign that there is more."""
    if width_of(text) <= room:
        return text
    end = one_line("…")
    kept = text[: room - len(end)]
    while kept and width_of(kept) > room - len(end):
        kept = kept[:-1]
    return kept.rstrip() + end


def note_lines(note: Note, room: int) -> Iterator[Line]:
    """A line with its sign, and below it what helps; a command stands whole on its line, so that it can be copied."""
    sign = SIGNS[note.mark][0 if sink.speaks_unicode() else 1]
    first: Line = [" ", Styled(sign, cast("Style", note.mark)), " "]
    text, took = addressed(one_line(note.text)), "" if note.took is None else amounts.seconds(note.took)
    hint = addressed(": ".join(filter(None, (note.hint and told(note.hint), note.then))))
    if note.then and not note.hint and note.mark == "note" and width_of(text) + width_of(hint) + 5 <= room:
        yield [*first, f"{text}: ", Styled(hint, "command")]
        return
    gap = min(room, STEP_WIDTH) - 3 - width_of(text) - width_of(took)
    if took and gap >= GAP:
        yield [*first, text, " " * gap, Styled(took, "faint")]
    else:
        named = _NAMED.match(text)
        # What stands in two columns goes on below the second one.
        indent = 3 + (len(named[0]) if named and len(named[0]) < room // 2 else 0)
        yield from wrapped(f"{text} ({took})" if took else text, room, first, indent)
    if hint:
        yield from _sentence(hint, room, _arrow(), 5)


def _arrow() -> Line:
    return ["   ", Styled("→" if sink.speaks_unicode() else "->", "faint"), " "]


def _sentence(text: str, room: int, first: Line, indent: int) -> Iterator[Line]:
    """A sentence, and the command it may end with, which stays whole."""
    found = _ENDING.search(text)
    said, typed = (text[: found.start()], found[0]) if found else (text, "")
    if typed and (not said or width_of(sink.plain(first)) + width_of(text) <= room):
        yield [*first, said, Styled(typed, "command")]
        return
    yield from wrapped(said.rstrip(), room, first, indent)
    if typed:
        yield [" " * indent, Styled(typed, "command")]


def _notes(notes: Sequence[Note], room: int) -> Iterator[Line]:
    for note in notes:
        yield from note_lines(note, room)


def _plan(plan: Plan, room: int, again: Sequence[str]) -> Iterator[Line]:
    counts = [(noun, number) for noun, number in plan.counts.items() if number]
    counted = ", ".join(f"{number:,} {_one(noun) if number == 1 else noun}" for noun, number in counts)
    if plan.executed:
        yield from note_lines(Note("ok", f"{plan.done}: {counted or 'nothing'}"), room)
    elif counted:
        yield from note_lines(Note("warning", f"dry run, nothing is changed: would {plan.verb} {counted}"), room)
    else:
        yield from note_lines(Note("ok", f"there is nothing to {plan.verb}"), room)
    if plan.samples:
        yield from table(plan.samples, room)
    yield from _notes([*plan.notes, *plan.left], room)
    if not plan.executed and counted:
        yield from note_lines(Note("note", "to do it", then=command(*again, "--execute")), room)


def _one(noun: str) -> str:
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


def _facts(facts: Any, room: int) -> Iterator[Line]:
    named = _columns([facts])
    width = max((width_of(each.metadata["head"]) for each in named), default=0)
    for each in named:
        value = _shown(facts, each)
        head = each.metadata["head"]
        first: Line = ["  ", Styled(head, "faint"), " " * (width - width_of(head) + GAP)]
        # A path or an address is copied from there, so it stays whole.
        yield from [[*first, value]] if " " not in value else wrapped(value, room, first, width + GAP + 2)
    for each in fields(facts):
        value = getattr(facts, each.name)
        if "body" in each.metadata and value:
            yield [""]
            yield from _body(value, room, 4)
        elif each.name != "notes" and isinstance(value, list | tuple) and value and _is_row(value[0]):
            if named:
                yield [""]
            yield from table(value, room)
    notes = getattr(facts, "notes", ())
    if notes:
        yield from _notes(notes, room)
    if getattr(facts, "next", None):
        yield [f"  next page: --page {shlex.quote(one_line(facts.next))}"]


def _is_row(value: Any) -> bool:
    """Whether it has columns."""
    return is_dataclass(value) and any("head" in each.metadata for each in fields(value))


def _body(text: Any, room: int, indent: int) -> Iterator[Line]:
    """A text with its own lines."""
    for line in str(text).splitlines():
        for part in folded(one_line(line.expandtabs(4)), room - indent):
            yield [" " * indent, part]


def _row_lines(row: Any) -> Iterator[Line]:
    """A row on a line of its own, without a heading."""
    values = [_shown(row, each) for each in _columns([row])]
    room = sink.width()
    if room is None:
        yield [shortened("  ".join(values), PIPE_WIDTH)]
    else:
        yield from wrapped("  ".join(values), room, (), 6)


def _shown(row: Any, each: Field[Any]) -> str:
    value = getattr(row, each.name)
    show = each.metadata["show"]
    return told(value if show is None else show(value))


def _columns(rows: Sequence[Any]) -> list[Field[Any]]:
    """The fields with a heading; a rare one only where a row has it."""
    named = [each for each in fields(rows[0]) if "head" in each.metadata]
    return [each for each in named if not each.metadata["rare"] or any(getattr(row, each.name) for row in rows)]


def _aligned(
    cells: Sequence[str], columns: Sequence[Field[Any]], widths: Sequence[int], indent: int, text: Line,
    *, is_head: bool = False,
) -> Line:  # fmt: skip
    line: Line = [" " * indent]
    for place, (value, each, width) in enumerate(zip(cells, columns, widths, strict=False)):
        padding = " " * (width - width_of(value))
        shown: Part = Styled(value, "faint") if is_head else value
        is_last = place == len(cells) - 1 and not text
        line += [padding, shown] if each.metadata["right"] else [shown, "" if is_last else padding]
        line.append("" if is_last else " " * GAP)
    return [*line, *text]


def complain(text: str, hint: str = "") -> None:
    """Print an error to standard error: who speaks, what is wrong, and how to mend it."""
    # In a pipe it is one line, which logs and scripts keep together.
    room = sink.width(sys.stderr) or ENDLESS
    said = [*_sentence(addressed(one_line(text)), room, [Styled(f"{PROGRAM}: ", "problem")], 2)]
    for line in [*said, *(_sentence(addressed(hint), room, _arrow(), 5) if hint else ())]:
        sink.write(*line, stream=sys.stderr)
