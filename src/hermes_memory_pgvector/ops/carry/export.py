"""`export`: memories and turns as lines of JSON or CSV, in an order that depends on nothing but the rows."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse, progress
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, Stream, aside, column, command
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection

STANDARD = "-"
"""Stands for standard output."""
HEADER = "hermes-pgvector"
FORMAT = 1
PAGE_ROWS = 500
READ_SECONDS = 24 * 3600.0
COLUMNS = ("kind", "theme", "target", "session", "role", "at", "content", "parent", "trust", "hidden", "metadata")
"""Of a file of CSV."""


@dataclass(frozen=True, slots=True)
class Exported(Facts):
    """What was written."""

    file: str = column("file")
    memory: int = column("memories", default=0)
    turn: int = column("turns", default=0)
    notes: tuple[Note, ...] = aside(())


def export(
    memory: Memory, *, theme: str | None, since: datetime | None, until: datetime | None, format: str, hidden: bool,
    redact: bool, output: str | None,
) -> Facts | Stream:  # fmt: skip
    """Write the rows; on standard output nothing else is printed."""
    named, counts = output or STANDARD, Counter[str]()
    # One statement reads it all: it shows the database at one moment, however long the writing takes.
    with (
        memory.reading(theme, READ_SECONDS) as connection,
        progress.shown("exporting", unit="row") as bar,
        _writing(named) as out,
    ):
        write = _csv(out) if format == "csv" else _jsonl(out)
        rows = documents(connection, theme, since=since, until=until, with_hidden=hidden)
        for each in rows:
            write(_masked(each) if redact else each)
            counts[each["kind"]] += 1
            bar.advance()
    if named == STANDARD:
        return Stream(iter(()))
    note = Note("note", "to bring it in elsewhere", then=command("import", named))
    return Exported(named, counts["memory"], counts["turn"], () if format == "csv" else (note,))


def named_theme(text: str) -> str:
    """A theme that somebody names: an empty name must not mean all of them."""
    return theme_name(parse.filled(text))


EXPORT = Operation(
    "export",
    "write memories and turns as lines of JSON, or as CSV",
    (
        Option("--theme", "only this theme (default: all)", named_theme, metavar="THEME"),
        Option("--since", f"only from then on: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--until", "only before then; a date includes its whole day", parse.end, metavar="TIME"),
        Option("--format", "jsonl, which `import` takes, or csv", default="jsonl", choices=("jsonl", "csv")),
        Option("--hidden", "hidden rows as well; each says since when it is", is_flag=True),
        Option("--redact", "mask keys, tokens and passwords", is_flag=True),
        Option("--output", "where to; .gz and .zst are compressed (default: standard output)", metavar="FILE",
               also="-o"),
    ),
    export,
    (
        ("export --output memory.jsonl.gz", "everything, compressed"),
        ("export --theme marketing --format csv --output marketing.csv", "one theme for a spreadsheet"),
        ("export --theme marketing --redact", "one theme to standard output, secrets masked"),
    ),
    group="move",
    on_page=False,
)  # fmt: skip


def documents(
    connection: Connection,
    theme: str | None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    with_hidden: bool,
) -> Iterator[dict[str, Any]]:
    """Every memory and turn that is wanted."""
    from hermes_memory_pgvector.postgres.statements import statement

    values = {"theme": theme, "since": since, "until": until, "hidden": with_hidden}
    with connection.cursor(name="hermes_export") as cursor:
        cursor.itersize = PAGE_ROWS
        found: Any = cursor.execute(statement("carry/rows"), values)
        yield from (document(*row) for row in found)


def document(
    kind: str, theme: str, whose: str, session: str | None, parent: str | None, content: str, at: datetime,
    metadata: Mapping[str, Any] | None, trust: str | None, hidden: datetime | None,
) -> dict[str, Any]:  # fmt: skip
    """A row as it stands in a file."""
    place = {"target": whose} if kind == "memory" else {"session": session, "role": whose}
    more = {"parent": parent, "trust": trust, "hidden": None if hidden is None else _time(hidden)}
    told = {name: value for name, value in more.items() if value is not None}
    return {
        "kind": kind,
        "theme": theme,
        **place,
        "content": content,
        "at": _time(at),
        "metadata": metadata or {},
    } | told


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _masked(value: Any) -> Any:
    from hermes_memory_pgvector.text.secrets import masked

    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value


def _jsonl(out: IO[bytes]) -> Callable[[Mapping[str, Any]], None]:
    def write(row: Mapping[str, Any]) -> None:
        out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    write({"kind": HEADER, "format": FORMAT})
    return write


def _csv(out: IO[bytes]) -> Callable[[Mapping[str, Any]], None]:
    line = io.StringIO()
    writer = csv.DictWriter(line, COLUMNS)

    def write(row: Mapping[str, Any]) -> None:
        writer.writerow({**row, "metadata": json.dumps(row["metadata"], ensure_ascii=False)})
        out.write(line.getvalue().encode())
        line.seek(0)
        line.truncate()

    writer.writeheader()
    return write


@contextmanager
def _writing(name: str) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is whole, and that nobody else can read.

    A pipe or a device is written to as it is; where a link stands, the file it names is replaced.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from hermes_memory_pgvector.ops.carry.lines import coded

    path = Path(name)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as target, coded(path, target, "wb") as out:
                yield out
        else:
            with _replacing(path.resolve() if path.is_symlink() else path) as raw, coded(path, raw, "wb") as out:
                yield out
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror or type(error).__name__})") from None


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            yield raw
        # Or a power cut leaves an empty file in the place of an older, whole one.
        with unfinished.open("rb") as whole:
            os.fsync(whole.fileno())
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
