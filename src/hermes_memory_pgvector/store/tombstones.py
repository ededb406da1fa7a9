"""What was forgotten, as keyed hashes: enough to recognise it when it comes again, too little to read it.

The rule, for whatever is about to be stored:

- a theme or session that was forgotten whole: everything that was said under its name no later than it was forgotten is
  refused;
- forgotten words: refused if they were said no later than they were forgotten, or if nobody says when they were said,
  as with turns found in a transcript afterwards. Where a text was named, that is so in the whole theme, under whichever
  name it has or had; where a session or a time was named, for the same role in the same session; where single rows or
  a speaker were, for the same occurrence alone;
- what contains a forgotten text: refused if it was said no later than that.

What is said after that is new, and stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import forgotten_parts
from hermes_memory_pgvector.store.forgotten_parts import Parts
from hermes_memory_pgvector.text.clean import text_digest, turn_digest
from hermes_memory_pgvector.text.folding import folded
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    UndoTurns,
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


def of_author(key: bytes, author: str, theme: str = "", session_id: str = "") -> bytes:
    """The hash of whoever speaks, by what the host calls them, in a theme, a session or anywhere."""
    return keyed_hash(key, "author", author, theme, session_id)


def of_turn(key: bytes, theme: str, content: str) -> bytes:
    """The hash of words said in a theme."""
    return keyed_hash(key, "turn", theme, content)


def of_said(key: bytes, theme: str, session_id: str, digest: str) -> bytes:
    """The hash of words that one role said in one session; others may have said the same, and are not meant.

    The digest is that of the turn, so that one whose words an operator has changed is known by the words once said.
    """
    return keyed_hash(key, "said", theme, session_id, digest)


def of_occurrence(key: bytes, theme: str, session_id: str, digest: str, ordinal: int) -> bytes:
    """The hash of one of the times that words were said in a session."""
    return keyed_hash(key, "occurrence", theme, session_id, digest, str(ordinal))


def of_moment(key: bytes, theme: str, session_id: str, digest: str, wall_us: int) -> bytes:
    """The same, known by its time: a journal may count the occurrences of words otherwise than the database."""
    return keyed_hash(key, "moment", theme, session_id, digest, str(wall_us))


def of_memory(key: bytes, theme: str, target: str, content: str) -> bytes:
    """The hash of an entry of a theme."""
    return keyed_hash(key, "memory", theme, target, content)


def of_noted(key: bytes, theme: str, target: str, session_id: str, content: str) -> bytes:
    """The hash of an entry that one session wrote; others may have written the same, and are not meant."""
    return keyed_hash(key, "noted", theme, target, session_id, content)


def of_file_entry(key: bytes, content: str) -> bytes:
    """The hash of an entry of MEMORY.md or USER.md, which belongs to no theme before it is stored."""
    return keyed_hash(key, "entry", content)


def of_history(key: bytes, theme: str) -> bytes:
    """The hash of a theme whose memories were partly forgotten: late operations must not quote them."""
    return keyed_hash(key, "history", theme)


def of_task(key: bytes, theme: str, session_id: str, digest: str) -> bytes:
    """The hash of a task that a session delegated, by the digest that stands for it in the database and in exports."""
    return keyed_hash(key, "task", theme, session_id, digest)


def of_part(key: bytes, text: str, theme: str = "", session_id: str = "") -> tuple[int, bytes]:
    """The length and the hash of a text that is forgotten wherever it is a part of others."""
    piece = folded(text)
    return len(piece), forgotten_parts.hash_of(key, piece, of_scope(key, theme, session_id))


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The tombstones that concern some items, looked up at once."""

    keys: tuple[bytes, ...] = ()
    """This database's key, and those of databases whose tombstones were brought here."""
    found: Mapping[bytes, datetime] = field(default_factory=dict)
    """Until when what a hash stands for is forgotten."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Which themes have another name now."""
    parts: Parts = field(default_factory=Parts)

    @classmethod
    def concerning(
        cls,
        connection: Connection,
        keys: tuple[bytes, ...],
        items: Sequence[WriteItem],
        aliases: Mapping[str, str] | None = None,
        parts_until: datetime | None = None,
    ) -> Tombstones:
        """Look up everything that may forbid one of these items."""
        names = aliases or {}
        hashes = {each for item in items for key in keys for each in _hashes_of(key, item, names)}
        is_late = parts_until is not None and any(item.when.wall_us <= micros(parts_until) for item in items)
        parts = look_up_parts(connection, items) if is_late else Parts()
        return cls(keys, look_up(connection, hashes), names, parts)

    def refuses(self, item: WriteItem) -> bool:
        """Whether an item was forgotten."""
        if not self.found and not self.parts.by_key:
            return False
        if self.refuses_scope(item):
            return True
        is_undated = isinstance(item, AddTurn) and not item.is_dated
        untils = [self.found.get(each) for key in self.keys for each in _own_hashes(key, item, self.aliases)]
        if any(own is not None and (is_undated or item.when.wall_us <= micros(own)) for own in untils):
            return True
        return any(self.tells(item, text) for text in _texts_of(item))

    def refuses_scope(self, item: WriteItem) -> bool:
        """Whether everything that an item's theme or session held, or its speaker had said, was forgotten."""
        if not self.found or isinstance(item, UndoTurns):
            return False
        return self._holds(item, (each for key in self.keys for each in _scopes(key, item)))

    def tells(self, item: WriteItem, text: str) -> bool:
        """Whether a text that an item brings contains one that was forgotten after the item was made."""
        if not self.parts.by_key:
            return False
        names = names_of(item.theme, self.aliases)
        until = self.parts.until(text, lambda key: places_of(key, names, session_of(item)))
        return until is not None and item.when.wall_us <= micros(until)

    def quotes(self, item: WriteItem) -> bool:
        """Whether an operation on memories may quote, as what it replaces or removes, something that was forgotten."""
        if not isinstance(item, ReplaceMemory | RemoveMemory):
            return False
        told = {item.old_text, item.previous or ""} - {""}
        for key in self.keys:
            for name in names_of(item.theme, self.aliases):
                known = [of_history(key, name), *(of_memory(key, name, item.target, text) for text in told)]
                if self._holds(item, known):
                    return True
        return any(self.tells(item, text) for text in told)

    def forgets_entry(self, content: str, theme: str = "") -> datetime | None:
        """When an entry of a file was forgotten; None when it was not."""
        known = [self.found[each] for each in self.of_entry(content) if each in self.found]
        names = names_of(theme, self.aliases)
        part = self.parts.until(content, lambda key: places_of(key, names, ""))
        return max([*known, *([] if part is None else [part])], default=None)

    def of_entry(self, content: str) -> set[bytes]:
        """What stands for an entry of a file among tombstones."""
        return {of_file_entry(key, content) for key in self.keys}

    def _holds(self, item: WriteItem, hashes: Iterable[bytes]) -> bool:
        untils = (self.found.get(each) for each in hashes)
        return any(until is not None and item.when.wall_us <= micros(until) for until in untils)


def look_up(connection: Connection, hashes: Iterable[bytes]) -> dict[bytes, datetime]:
    """Those of these hashes that are tombstones, with their times."""
    wanted = list(hashes)
    found: dict[bytes, datetime] = {}
    for start in range(0, len(wanted), LOOKED_UP_TOGETHER):
        part = wanted[start : start + LOOKED_UP_TOGETHER]
        rows: list[Any] = connection.execute(statement("gate/forgotten"), {"hashes": part}).fetchall()
        found |= {bytes(each): until for each, until in rows}
    return found


def look_up_parts(connection: Connection, items: Sequence[WriteItem] = ()) -> Parts:
    """The forgotten texts that may be part of these items; all of them when there are none."""
    oldest = min((item.when.wall_us for item in items), default=0)
    since = datetime.fromtimestamp(oldest / 1e6, UTC)
    rows: list[Any] = connection.execute(statement("gate/parts"), {"since": since}).fetchall()
    return parts_of(rows)


def parts_of(rows: Iterable[tuple[bytes, int, bytes, datetime]]) -> Parts:
    """Forgotten texts by their key, length, hash and time."""
    by_key: dict[bytes, dict[int, dict[bytes, datetime]]] = {}
    for key, length, each, until in rows:
        known = by_key.setdefault(bytes(key), {}).setdefault(int(length), {})
        known[bytes(each)] = max(until, known.get(bytes(each), until))
    return Parts(by_key)


def of_files(
    connection: Connection, keys: tuple[bytes, ...], entries: Sequence[str], aliases: Mapping[str, str]
) -> Tombstones:
    """The tombstones of entries of a file."""
    found = look_up(connection, {of_file_entry(key, entry) for entry in entries for key in keys})
    return Tombstones(keys, found, aliases, look_up_parts(connection))


def names_of(theme: str, aliases: Mapping[str, str]) -> tuple[str, ...]:
    """Every name that a theme has or had."""
    if not aliases:
        return (theme,)
    now = aliases.get(theme, theme)
    return tuple(dict.fromkeys((theme, now, *(old for old, new in aliases.items() if new == now))))


def places_of(key: bytes, themes: Iterable[str], session_id: str) -> tuple[bytes, ...]:
    """Where a text may have been forgotten: anywhere, in a theme, in a session, or in a session of a theme."""
    sessions = ("", session_id) if session_id else ("",)
    return tuple(of_scope(key, theme, session) for theme in ("", *themes) for session in sessions)


def session_of(item: WriteItem) -> str:
    """The session an item was made in, as far as it says so."""
    if isinstance(item, AddMemory | ReplaceMemory | RemoveMemory):
        told = item.metadata.get("session_id")
        return told if isinstance(told, str) else ""
    return item.session_id


def authors_of(metadata: Mapping[str, Any]) -> list[str]:
    """What the host calls whoever said a turn, in small letters."""
    author = metadata.get("author")
    return [str(value).lower() for value in author.values()] if isinstance(author, Mapping) else []


def micros(at: datetime) -> int:
    """A time in microseconds, as write items have it."""
    return round(at.timestamp() * 1_000_000)


def task_of(key: bytes, theme: str, item: RecordDelegation) -> bytes:
    """The hash of what a delegation was about; one from an export has the digest alone, in place of its result."""
    return of_task(key, theme, item.session_id, text_digest(item.task) if item.task else item.result)


def _texts_of(item: WriteItem) -> list[str]:
    told = [getattr(item, name, None) for name in ("content", "task", "result")]
    return [text for text in told if isinstance(text, str) and text]


def _hashes_of(key: bytes, item: WriteItem, aliases: Mapping[str, str]) -> Iterator[bytes]:
    """Every tombstone that could forbid an item, or what it quotes."""
    yield from _scopes(key, item)
    yield from _own_hashes(key, item, aliases)
    if isinstance(item, ReplaceMemory | RemoveMemory):
        for name in names_of(item.theme, aliases):
            yield of_history(key, name)
            for text in {item.old_text, item.previous or ""} - {""}:
                yield of_memory(key, name, item.target, text)


def _own_hashes(key: bytes, item: WriteItem, aliases: Mapping[str, str]) -> Iterator[bytes]:
    """The hashes of an item's own words, under every name of its theme."""
    for name in names_of(item.theme, aliases):
        match item:
            case AddTurn():
                said = (name, item.session_id, item.digest or turn_digest(item.role, item.content))
                yield of_turn(key, name, item.content)
                yield of_said(key, *said)
                yield of_occurrence(key, *said, item.ordinal)
                yield of_moment(key, *said, item.when.wall_us)
            case AddMemory() | ReplaceMemory():
                yield of_memory(key, name, item.target, item.content)
                if session := session_of(item):
                    yield of_noted(key, name, item.target, session, item.content)
            case RecordDelegation():
                yield task_of(key, name, item)
            case _:
                return


def _scopes(key: bytes, item: WriteItem) -> Iterator[bytes]:
    """What an item belongs to, under the name it was said under: another name may have been forgotten before."""
    session = session_of(item)
    places = [("", ""), (item.theme, "")]
    if session:
        places += (("", session), (item.theme, session))
    for place in places:
        yield of_scope(key, *place)
    if isinstance(item, AddTurn) and item.metadata:
        for author in authors_of(item.metadata):
            for place in places:
                yield of_author(key, author, *place)
