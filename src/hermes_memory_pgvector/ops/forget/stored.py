"""What is stored, row by row, for whoever decides what of it is meant: by its words, or by the marks it would have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal, LiteralString, NamedTuple

from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run, statement
from hermes_memory_pgvector.store import marks
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, RemoveMemory, WriteItem

ROWS: Final = 2000
Letter = Literal["t", "m", "e"]
LETTERS: Final[Mapping[Letter, LiteralString]] = {"t": "forget/turns", "m": "forget/entries", "e": "forget/events"}
ANYTHING: Final[Mapping[str, Any]] = {
    "theme": None, "session_id": None, "before": None, "ids": None, "authors": None, "word": None,
}  # fmt: skip


class ForgettableRow(NamedTuple):
    """A turn, an entry or an operation on memories."""

    letter: Letter
    theme: str
    id: int
    place: Any
    """The session of a turn, the target of a memory."""
    action: str
    content: str
    quoted: list[str]
    """What an operation quotes of the entry that it changes, and a turn of those before it."""
    metadata: dict[str, Any]
    at: datetime

    @property
    def name(self) -> str:
        """How people name it."""
        return f"{self.letter}{self.id}"

    @property
    def told(self) -> str:
        """The words it is about."""
        return self.content if self.action != "remove" else self.quoted[1] or self.quoted[0]

    @property
    def item(self) -> WriteItem:
        """It as the item it once was, to make its marks."""
        when = Moment(marks.micros(self.at), 0)
        if self.letter == "t":
            return AddTurn(self.theme, self.place, "user", self.content, 1, when, True, metadata=self.metadata)
        if self.action == "remove":
            old, previous = self.quoted
            return RemoveMemory(self.theme, self.place, old, when, "", previous or None, metadata=self.metadata)
        return AddMemory(self.theme, self.place, self.content, when, "", metadata=self.metadata)


def rows(connection: Connection, letter: Letter, values: Mapping[str, Any]) -> Iterator[ForgettableRow]:
    """Rows of a kind, which may be more than fit in memory, in the transaction under way."""
    with connection.cursor(name=f"hermes_forget_{letter}") as cursor:
        cursor.itersize = ROWS
        found: Any = cursor.execute(statement(LETTERS[letter]), values)
        yield from (ForgettableRow(*each) for each in found)


def everything(connection: Connection, theme: str | None = None) -> Iterator[ForgettableRow]:
    """Every row of a theme, or of all."""
    for letter in LETTERS:
        yield from rows(connection, letter, {**ANYTHING, "theme": theme})


def has_mark(item: WriteItem, opened: Gate, known: Mapping[bytes, datetime]) -> bool:
    """Whether an item has one of these marks, and was said no later than its time."""
    if opened.marker is None:
        return False
    names = marks.names_of(item.theme, opened.aliases)
    own = opened.marker.of_item(item, names)
    return any(mark in known and marks.is_covered(item, known[mark]) for mark in own)


def letters(connection: Connection) -> Iterator[tuple[int, bytes, list[WriteItem] | None]]:
    """The rejected records: number, bytes, and the items they hold."""
    for number, raw in run(connection, "forget/letters").fetchall():
        yield int(number), bytes(raw), decoded(bytes(raw))


def decoded(payload: bytes) -> list[WriteItem] | None:
    """The items of a record; None when it cannot be read."""
    try:
        return codec.decode(payload)
    except ValueError:
        return None
