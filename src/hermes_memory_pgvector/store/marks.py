"""What was forgotten, as keyed marks: enough to know it when it comes again, too little to read it. Made here alone.

A mark stands for a place (a theme, a session, whoever speaks, or several of these together), or for words in a theme.
What has one and was said no later than its time is not stored. What is said after that is new, and stored.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.text.folding import folded
from hermes_memory_pgvector.values import AddTurn, MemoryOperation, RemoveMemory, WriteItem

MARK_BYTES: Final = 16
SEPARATOR: Final = "\x1f"
MARKS_TOGETHER: Final = 10_000
MICROSECOND: Final = timedelta(microseconds=1)


class Marker(NamedTuple):
    """Makes marks with the key of an installation."""

    key: bytes

    def of_place(self, theme: str = "", session_id: str = "", author: str = "") -> bytes:
        """The mark of whatever is in a theme, in a session, by somebody; of all that are given at once."""
        if not (theme or session_id or author):
            raise ValueError("everything there is has no mark")
        return self._made("place", theme, session_id, author)

    def of_words(self, theme: str, text: str) -> bytes:
        """The mark of words in a theme, however they are written; in any theme without one."""
        return self._made("words", theme, folded(text))

    def of_item(self, item: WriteItem, names: Sequence[str]) -> Iterator[bytes]:
        """The marks that an item would have; `names` are all that its theme has or had.

        Its place is the one it was said in: another name of the theme may have been forgotten before.
        """
        if not isinstance(item, AddTurn | MemoryOperation):
            return
        sessions = dict.fromkeys(("", session_of(item)))
        authors = dict.fromkeys(("", *authors_of(item)))
        for theme in ("", item.theme):
            for session in sessions:
                for author in authors:
                    if theme or session or author:
                        yield self.of_place(theme, session, author)
        for text in texts_of(item):
            for name in ("", *names):
                yield self.of_words(name, text)

    def _made(self, *parts: str) -> bytes:
        return hmac.digest(self.key, SEPARATOR.join(parts).encode("utf-8", "surrogatepass"), "sha256")[:MARK_BYTES]


def texts_of(item: WriteItem) -> list[str]:
    """The words of an item; not its metadata, nor what it quotes of an entry that it takes away."""
    return [item.content] if isinstance(item, AddTurn | MemoryOperation) and not isinstance(item, RemoveMemory) else []


def quotes_of(item: WriteItem) -> list[str]:
    """What an operation on memories quotes of the entry that it changes."""
    told = (getattr(item, "old_text", ""), getattr(item, "previous", None) or "")
    return [text for text in told if text]


def session_of(item: WriteItem) -> str:
    """The session an item was made in, as far as it says so."""
    if isinstance(item, MemoryOperation):
        told = item.metadata.get("session_id")
        return told if isinstance(told, str) else ""
    return item.session_id


def authors_of(item: WriteItem) -> list[str]:
    """What the host calls whoever said a turn, in small letters."""
    author = item.metadata.get("author") if isinstance(item, AddTurn) else None
    return [str(value).lower() for value in author.values()] if isinstance(author, Mapping) else []


def is_covered(item: WriteItem, until: datetime) -> bool:
    """Whether an item was said no later than that; one of which nobody knows when it was said, always."""
    return item.when.wall_us <= micros(until) or (isinstance(item, AddTurn) and not item.is_dated)


def micros(at: datetime) -> int:
    """A time in microseconds, as write items have it."""
    return round(at.timestamp() * 1_000_000)


def names_of(theme: str, aliases: Mapping[str, str]) -> tuple[str, ...]:
    """Every name that a theme has or had."""
    if not aliases:
        return (theme,)
    now = aliases.get(theme, theme)
    return tuple(dict.fromkeys((theme, now, *(old for old, new in aliases.items() if new == now))))


def key(connection: Connection) -> bytes:
    """The key of this installation."""
    return bytes(one(connection, "gate/installation")[0])


def look_up(connection: Connection, marks: Iterable[bytes]) -> dict[bytes, datetime]:
    """Those of these marks that are set, each with the time until which what it stands for is forgotten."""
    wanted = list(marks)
    found: dict[bytes, datetime] = {}
    for start in range(0, len(wanted), MARKS_TOGETHER):
        found.update(run(connection, "gate/forgotten", marks=wanted[start : start + MARKS_TOGETHER]))
    return found


def of_receipt(connection: Connection, receipt: int) -> dict[bytes, datetime]:
    """The marks of one receipt, with their times."""
    return dict(run(connection, "gate/of_receipt", receipt=receipt).fetchall())


def named(connection: Connection, others: Sequence[int]) -> list[tuple[bytes, datetime, int]]:
    """The marks of all receipts but those, each with its time and its receipt."""
    return run(connection, "gate/named", others=list(others)).fetchall()


def insert(connection: Connection, receipt: int, marks: Mapping[bytes, datetime]) -> int:
    """Set marks, with the gate closed; how many are new. None reaches into the future, whoever's clock is wrong."""
    told = list(marks.items())
    new = 0
    for start in range(0, len(told), MARKS_TOGETHER):
        part = told[start : start + MARKS_TOGETHER]
        wanted, untils = map(list, zip(*part, strict=True))
        new += run(connection, "gate/insert_marks", marks=wanted, untils=untils, receipt=receipt).rowcount
    return new
