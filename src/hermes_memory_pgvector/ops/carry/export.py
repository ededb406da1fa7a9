"""`export`: memories and turns as lines of JSON, in an order that depends on nothing but the rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, LiteralString

from hermes_memory_pgvector.ops.carry.file import FORMAT, HEADER, STANDARD, writing
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse, progress, sink
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, Stream, command
from hermes_memory_pgvector.text.names import theme_name
from hermes_memory_pgvector.text.secrets import masker_for

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection

PAGE_ROWS = 500
READ_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Exported(Facts):
    """What was written."""

    file: str = column("file")
    memory: int = column("memories", default=0)
    turn: int = column("turns", default=0)
    notes: tuple[Note, ...] = aside(())


def export(
    memory: Memory, *, theme: str | None, since: datetime | None, until: datetime | None, hidden: bool, redact: bool,
    output: str | None,
) -> Facts | Stream:  # fmt: skip
    """Write the rows; on standard output nothing else is printed."""
    named, counts = output or STANDARD, Counter[str]()
    masker = masker_for(memory.parsed.settings.mask_secrets or True)
    # One statement reads it all: it shows the database at one moment, however long the writing takes.
    with (
        memory.reading(theme, READ_SECONDS) as connection,
        progress.shown("exporting", unit="row") as bar,
        writing(named) as out,
    ):
        values = {"theme": theme, "since": since, "until": until, "hidden": hidden}
        bar.update(0, row_count(connection, values))
        rows = fetched(connection, "carry/rows", values)
        out.write(_line({"kind": HEADER, "format": FORMAT} | ({"redacted": True} if redact else {})))
        for each in rows:
            out.write(_line(masker.mask_all(each, Counter()) if redact else each))
            counts[each["kind"]] += 1
            bar.advance()
    if named == STANDARD:
        return Stream(iter(()))
    note = Note("note", "to bring it in elsewhere", then=command("import", named))
    return Exported(named, counts["memory"], counts["turn"], () if redact else (note,))


def named_theme(text: str) -> str:
    """A theme that somebody names: an empty name must not mean all of them."""
    return theme_name(parse.filled(text))


EXPORT = Operation(
    "export",
    "write memories and turns as lines of JSON",
    (
        Option("--theme", "only this theme (default: all)", named_theme, metavar="THEME"),
        Option("--since", f"only from then on: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--until", "only before then; a date includes its whole day", parse.end, metavar="TIME"),
        Option("--hidden", "hidden rows as well; each says since when it is", is_flag=True),
        Option("--redact", "to show around: mask keys, tokens and passwords; `import` takes no such file",
               is_flag=True),
        Option("--output", "where to; .gz is compressed (default: standard output)", metavar="FILE", also="-o"),
    ),
    export,
    (
        ("export --output memory.jsonl.gz", "everything, compressed"),
        ("export --theme marketing --redact", "one theme to standard output, secrets masked"),
    ),
    group="move",
    on_page=False,
)  # fmt: skip


def row_count(connection: Connection, values: Mapping[str, Any], name: LiteralString = "carry/row_count") -> int | None:
    """How many rows there will be, for whoever watches; None where nobody does."""
    from hermes_memory_pgvector.postgres.statements import one

    return int(one(connection, name, **values)[0]) if sink.is_terminal() else None


def fetched(connection: Connection, name: str, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows as they stand in a file."""
    from hermes_memory_pgvector.postgres.statements import statement

    with connection.cursor(name="hermes_export") as cursor:
        cursor.itersize = PAGE_ROWS
        found: Any = cursor.execute(statement(name), values)
        for kind, theme, whose, session, parent, content, at, metadata, untrusted, hidden in found:
            place = {"target": whose} if kind == "memory" else {"session": session, "role": whose}
            more = {
                "parent": parent,
                "untrusted": untrusted or None,
                "hidden": None if hidden is None else _time(hidden),
            }
            yield {
                "kind": kind, "theme": theme, **place, "content": content, "at": _time(at), "metadata": metadata or {},
            } | {name: value for name, value in more.items() if value is not None}  # fmt: skip


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
