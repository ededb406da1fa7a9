"""What was forgotten, as keyed hashes: enough to recognise it when it comes again, too little to read it.

The rule, for whatever is about to be stored:

- a theme or session that was forgotten whole: everything of it that was said no later than it was forgotten is refused;
- forgotten words: refused in their theme (or, where a session, a speaker, a time or single rows were named, by the same
  role in the same session) if they were said no later than they were forgotten, or if nobody says when they were said,
  as with turns found in a transcript afterwards.

What is said after that is new, and stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    ForgetTail,
    ForgetTurns,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    WriteItem,
)

HASH_BYTES = 16
SEPARATOR = "\x1f"
LOOKED_UP_TOGETHER = 5000


def keyed_hash(key: bytes, *parts: str) -> bytes:
    """The hash of a text in its place; the same function exists in SQL (`hermes_tombstone`)."""
    message = SEPARATOR.join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(key + hashlib.sha256(key + message).digest()).digest()[:HASH_BYTES]


def of_scope(key: bytes, theme: str = "", session_id: str = "") -> bytes:
    """The hash of a theme, a session, or a session of a theme; of everything there is, without either."""
    return keyed_hash(key, "scope", theme, session_id)


def of_turn(key: bytes, theme: str, content: str) -> bytes:
    """The hash of words said in a theme."""
    return keyed_hash(key, "turn", theme, content)


def of_said(key: bytes, theme: str, session_id: str, role: str, content: str) -> bytes:
    """The hash of words that one role said in one session; others may have said the same, and are not meant."""
    return keyed_hash(key, "said", theme, session_id, role, content)


def of_memory(key: bytes, theme: str, content: str) -> bytes:
    """The hash of an entry of a theme."""
    return keyed_hash(key, "memory", theme, content)


def of_file_entry(key: bytes, content: str) -> bytes:
    """The hash of an entry of MEMORY.md or USER.md, which belongs to no theme before it is stored."""
    return keyed_hash(key, "entry", content)


def of_history(key: bytes, theme: str) -> bytes:
    """The hash of a theme whose memories were partly forgotten: late operations must not quote them."""
    return keyed_hash(key, "history", theme)


def of_task(key: bytes, theme: str, session_id: str, task: str) -> bytes:
    """The hash of a task that a session delegated."""
    return keyed_hash(key, "task", theme, session_id, task)


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The tombstones that concern some items, looked up at once."""

    keys: tuple[bytes, ...]
    """This database's key, and those of databases whose tombstones were brought here."""
    found: Mapping[bytes, datetime]
    """Until when what a hash stands for is forgotten."""

    @classmethod
    def concerning(cls, connection: Connection, keys: tuple[bytes, ...], items: Iterable[WriteItem]) -> Tombstones:
        """Look up everything that may forbid one of these items."""
        hashes = {each for item in items for key in keys for each in hashes_of(key, item)}
        return cls(keys, look_up(connection, hashes))

    def refuses(self, item: WriteItem, *, is_dated: bool = False) -> bool:
        """Whether an item was forgotten; `is_dated` says that its time is when it was said, whoever found it."""
        if not self.found:
            return False
        if self.refuses_scope(item):
            return True
        is_undated = isinstance(item, AddTurn) and not item.is_live and not is_dated
        untils = (self.found.get(each) for key in self.keys for each in _own_hashes(key, item))
        return any(own is not None and (is_undated or item.when.wall_us <= micros(own)) for own in untils)

    def refuses_scope(self, item: WriteItem) -> bool:
        """Whether everything that an item's theme or session held at its time was forgotten."""
        if not self.found or isinstance(item, ForgetTurns | ForgetTail):
            return False
        scopes = (self.found.get(each) for key in self.keys for each in _scopes(key, item))
        return any(until is not None and item.when.wall_us <= micros(until) for until in scopes)

    def quotes(self, item: WriteItem) -> bool:
        """Whether an operation on memories may quote, as what it replaces or removes, something that was forgotten."""
        if not isinstance(item, ReplaceMemory | RemoveMemory):
            return False
        untils = (self.found.get(of_history(key, item.theme)) for key in self.keys)
        return any(until is not None and item.when.wall_us <= micros(until) for until in untils)

    def forgets_entry(self, content: str) -> datetime | None:
        """When an entry of a file was forgotten; None when it was not."""
        return max((self.found[each] for each in self.of_entry(content)), default=None)

    def of_entry(self, content: str) -> set[bytes]:
        """The tombstones of an entry of a file."""
        return {of_file_entry(key, content) for key in self.keys} & self.found.keys()


def look_up(connection: Connection, hashes: Iterable[bytes]) -> dict[bytes, datetime]:
    """Those of these hashes that are tombstones, with their times."""
    wanted = list(hashes)
    found: dict[bytes, datetime] = {}
    for start in range(0, len(wanted), LOOKED_UP_TOGETHER):
        part = wanted[start : start + LOOKED_UP_TOGETHER]
        rows: list[Any] = connection.execute(statement("gate/forgotten"), {"hashes": part}).fetchall()
        found |= {bytes(each): until for each, until in rows}
    return found


def of_files(connection: Connection, keys: tuple[bytes, ...], entries: Sequence[str]) -> Tombstones:
    """The tombstones of entries of a file."""
    return Tombstones(keys, look_up(connection, {of_file_entry(key, entry) for entry in entries for key in keys}))


def hashes_of(key: bytes, item: WriteItem) -> list[bytes]:
    """Every tombstone that could forbid an item, or what it quotes."""
    found = [*_scopes(key, item), *_own_hashes(key, item)]
    if isinstance(item, ReplaceMemory | RemoveMemory):
        found.append(of_history(key, item.theme))
    return found


def own_hash(key: bytes, item: WriteItem, *, in_session: bool = False) -> bytes | None:
    """The hash of an item's own words, in its session alone if asked for; None for one that only takes back."""
    match item:
        case AddTurn() if in_session:
            return of_said(key, item.theme, item.session_id, item.role, item.content)
        case AddTurn():
            return of_turn(key, item.theme, item.content)
        case AddMemory() | ReplaceMemory():
            return of_memory(key, item.theme, item.content)
        case RecordDelegation():
            return of_task(key, item.theme, item.session_id, item.task)
        case _:
            return None


def session_of(item: WriteItem) -> str:
    """The session an item was made in, as far as it says so."""
    if isinstance(item, AddMemory | ReplaceMemory | RemoveMemory):
        told = item.metadata.get("session_id")
        return told if isinstance(told, str) else ""
    return item.session_id


def micros(at: datetime) -> int:
    """A time in microseconds, as write items have it."""
    return round(at.timestamp() * 1_000_000)


def _own_hashes(key: bytes, item: WriteItem) -> set[bytes]:
    found = (own_hash(key, item), own_hash(key, item, in_session=True))
    return {each for each in found if each is not None}


def _scopes(key: bytes, item: WriteItem) -> list[bytes]:
    session = session_of(item)
    found = [of_scope(key), of_scope(key, item.theme)]
    if session:
        found += (of_scope(key, "", session), of_scope(key, item.theme, session))
    return found
