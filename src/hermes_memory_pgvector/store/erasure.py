"""Erasing what somebody names: rows, histories, queues, rejected records and files as last compared.

Everything runs within the caller's transaction, with the gate closed (see `gate`), so that nothing is stored beside it
on the word of an earlier look.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.store import memories, mirror_files, tombstones, vectors
from hermes_memory_pgvector.store.memories import ACTIONS, Placed
from hermes_memory_pgvector.store.memory_erasure import without
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.store.turn_context import TurnPlace, mend_following
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    Kind,
    MemoryOperation,
    RemoveMemory,
    ReplaceMemory,
    Target,
    WriteItem,
)

PAGE = 500
SESSIONS_TOGETHER = 50
TASK_MARK, RESULT_MARK = "Delegated: ", "\nResult: "
"""How a delegation stands in the turn that tells of it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What somebody names; whatever is given must all hold."""

    theme: str | None = None
    session_id: str | None = None
    before: datetime | None = None
    match: str | None = None
    """A text that is part of what is meant, in any spelling of case."""
    turn_ids: tuple[int, ...] | None = None
    memory_ids: tuple[int, ...] | None = None
    authors: tuple[str, ...] | None = None
    """Who said it, by what the metadata of a turn name."""

    @property
    def needles(self) -> list[str] | None:
        """The text in the spellings that databases without a language's rules tell apart."""
        return None if self.match is None else spellings(self.match)

    @property
    def by_id(self) -> bool:
        """Whether single rows are named."""
        return self.turn_ids is not None or self.memory_ids is not None

    @property
    def names_words(self) -> bool:
        """Whether the words are meant wherever the theme has them, and not only those of a session, speaker or time."""
        return self.session_id is None and self.before is None and self.authors is None and not self.by_id

    @property
    def is_scope(self) -> bool:
        """Whether a theme, a session or a time is meant as a whole."""
        return self.match is None and self.authors is None and not self.by_id

    def cut(self, forgotten_at: datetime) -> datetime:
        """What was said later is not meant."""
        return forgotten_at if self.before is None else min(self.before, forgotten_at)

    def tells(self, text: str) -> bool:
        """Whether a text contains what is looked for."""
        return self.match is not None and contains(text, self.match)

    def covers(self, item: WriteItem) -> bool:
        """Whether an item in a file is meant, its time apart."""
        if self.by_id or (self.theme is not None and item.theme != self.theme):
            return False
        if self.session_id is not None and tombstones.session_of(item) != self.session_id:
            return False
        if self.authors is not None and not (isinstance(item, AddTurn) and _is_by(item.metadata, self.authors)):
            return False
        return self.match is None or any(self.tells(text) for text in texts_of(item))

    def values(self, forgotten_at: datetime) -> dict[str, Any]:
        """What the statements take."""
        return {
            "theme": self.theme,
            "session_id": self.session_id,
            "before": self.before,
            "needles": self.needles,
            "authors": None if self.authors is None else list(self.authors),
            "cut": forgotten_at,
        }


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn that is meant."""

    theme: str
    id: int
    session_id: str
    role: str
    content: str
    ts: datetime
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """An entry that is meant."""

    theme: str
    target: Target
    id: int
    content: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Counted:
    """How many turns of a theme are meant."""

    theme: str
    turns: int
    sessions: int
    oldest: datetime
    newest: datetime


@dataclass(slots=True)
class Erased:
    """What went."""

    counts: dict[str, int] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    """Forgotten words, for the files of this home; they are never stored."""

    def add(self, name: str, count: int) -> None:
        """Count what went."""
        self.counts[name] = self.counts.get(name, 0) + count


def spellings(text: str) -> list[str]:
    """The forms of a text that a search without regard to case has to look for."""
    forms = (text, text.lower(), text.upper(), text.title(), text.casefold())
    return list(dict.fromkeys(unicodedata.normalize(form, each) for each in forms for form in ("NFC", "NFD")))


def contains(text: str, part: str) -> bool:
    """Whether a text has another one in it, in any spelling of case."""
    return bool(part) and any(each.lower() in text.lower() for each in spellings(part))


def texts_of(item: WriteItem) -> list[str]:
    """The words of an item; not its metadata, nor what it quotes of an entry that it takes away."""
    told = [getattr(item, name, None) for name in ("content", "task", "result")]
    return [text for text in told if isinstance(text, str) and text]


def themes(connection: Connection) -> list[str]:
    """Every theme that holds anything."""
    return [str(row[0]) for row in connection.execute(statement("erase/themes")).fetchall()]


def key(connection: Connection) -> bytes:
    """The key of the tombstones."""
    row: Any = connection.execute(statement("erase/key")).fetchone()
    return bytes(row[0])


# Looking.


def count_turns(connection: Connection, selection: Selection, cut: datetime) -> list[Counted]:
    """How many turns are meant, by theme."""
    if selection.turn_ids is None and selection.memory_ids is not None:
        return []
    values = {**selection.values(cut), "ids": _listed(selection.turn_ids)}
    rows: list[Any] = connection.execute(statement("erase/count_turns"), values).fetchall()
    return [Counted(*row) for row in rows]


def find_turns(
    connection: Connection, selection: Selection, cut: datetime, limit: int = PAGE, after: tuple[str, int] = ("", 0)
) -> list[FoundTurn]:
    """Turns that are meant, a page of them."""
    if selection.turn_ids is None and selection.memory_ids is not None:
        return []
    values = {
        **selection.values(cut),
        "ids": _listed(selection.turn_ids),
        "after_theme": after[0],
        "after_id": after[1],
        "limit": limit,
    }
    rows: list[Any] = connection.execute(statement("erase/find_turns"), values).fetchall()
    return [FoundTurn(*row) for row in rows]


def find_memories(connection: Connection, selection: Selection, cut: datetime) -> list[FoundMemory]:
    """Entries that are meant."""
    if selection.authors is not None or (selection.memory_ids is None and selection.turn_ids is not None):
        return []
    values = {**selection.values(cut), "ids": _listed(selection.memory_ids)}
    rows: list[Any] = connection.execute(statement("erase/find_memories"), values).fetchall()
    return [FoundMemory(*row) for row in rows]


def find_histories(connection: Connection, selection: Selection, cut: datetime) -> list[tuple[str, Target]]:
    """The theme and target of histories that may hold something that is meant."""
    found = {(each.theme, each.target) for each in find_memories(connection, selection, cut)}
    if not selection.by_id and selection.authors is None:
        rows: list[Any] = connection.execute(statement("erase/find_histories"), selection.values(cut)).fetchall()
        found |= {(theme, target) for theme, target in rows}
    return sorted(found)


def count_operations(connection: Connection, selection: Selection, cut: datetime) -> int:
    """How many operations of histories would change."""
    return sum(
        len(_changes(_plan_history(connection, selection, cut, theme, target)))
        for theme, target in find_histories(connection, selection, cut)
    )


def leaving(connection: Connection, selection: Selection, cut: datetime) -> list[FoundMemory]:
    """Entries that are meant and of which nothing is left; one that somebody added again after the time stays."""
    found = find_memories(connection, selection, cut)
    left = {
        group: fold(new for _, new in _plan_history(connection, selection, cut, *group) if new is not None)
        for group in {(each.theme, each.target) for each in found}
    }
    return [each for each in found if each.content not in left[each.theme, each.target]]


def count_delegations(connection: Connection, selection: Selection, cut: datetime) -> int:
    """How many delegations are meant by theme, session or time."""
    return len(_delegations(connection, selection, cut, limit=1_000_000))


# Erasing.


def set_tombstones(connection: Connection, receipt: int, at: datetime, hashes: Collection[bytes]) -> None:
    """Set tombstones."""
    if hashes:
        values = {"receipt": receipt, "at": at, "hashes": sorted(hashes)}
        connection.execute(statement("erase/insert_tombstones"), values)


def erase_turns(connection: Connection, selection: Selection, receipt: int, at: datetime, erased: Erased) -> bool:
    """Erase a page of turns, and mend what is left of their sessions; False when there are no more.

    Both happen in one transaction: whoever is killed afterwards leaves no neighbour that is found by forgotten words.
    """
    found = find_turns(connection, selection, at)
    sessions = list(dict.fromkeys((each.theme, each.session_id) for each in found))[:SESSIONS_TOGETHER]
    if not sessions:
        return False
    found = [each for each in found if (each.theme, each.session_id) in sessions]
    own = key(connection)
    tasks = [(each.theme, each.session_id, task) for each in found for task in _tasks(each)]
    set_tombstones(connection, receipt, at, {tombstones.of_task(own, *task) for task in tasks})
    if selection.names_words:
        words = {tombstones.of_turn(own, each.theme, each.content) for each in found}
    else:
        words = {tombstones.of_said(own, each.theme, each.session_id, each.role, each.content) for each in found}
    set_tombstones(connection, receipt, selection.cut(at), words)
    keys = {"themes": [each.theme for each in found], "ids": [each.id for each in found]}
    erased.add("turns", connection.execute(statement("erase/drop_turns"), keys).rowcount)
    drop_pending(connection, [(each.theme, Kind.TURN.value, each.id) for each in found])
    if tasks:
        columns = {"themes": [each[0] for each in tasks], "session_ids": [each[1] for each in tasks]}
        edges: list[Any] = connection.execute(
            statement("erase/delegations_of"), {**columns, "tasks": [each[2] for each in tasks]}
        ).fetchall()
        erased.add("delegations", _drop_delegations(connection, edges))
    erased.texts.update(each.content for each in found)
    places = [TurnPlace(each.theme, each.session_id, each.ts, each.id) for each in found]
    erased.add("mended", mend_following(connection, places))
    return True


def erase_delegations(connection: Connection, selection: Selection, at: datetime, erased: Erased) -> bool:
    """Erase a page of delegations; False when there are no more."""
    edges = _delegations(connection, selection, at, limit=PAGE)
    erased.add("delegations", _drop_delegations(connection, edges))
    return bool(edges)


def find_recalls(connection: Connection, selection: Selection, cut: datetime, limit: int = PAGE) -> list[Any]:
    """The keys of logged recalls that are meant; none where single rows or speakers are."""
    if selection.by_id or selection.authors is not None:
        return []
    values = {**selection.values(cut), "limit": limit}
    return connection.execute(statement("erase/find_recalls"), values).fetchall()


def erase_recalls(connection: Connection, selection: Selection, at: datetime, erased: Erased) -> bool:
    """Erase a page of logged recalls; False when there are no more."""
    found = find_recalls(connection, selection, at)
    if found:
        keys = {"themes": [theme for theme, _ in found], "ids": [row_id for _, row_id in found]}
        erased.add("recall_log", connection.execute(statement("erase/drop_recalls"), keys).rowcount)
    return bool(found)


def erase_history(
    connection: Connection,
    selection: Selection,
    theme: str,
    target: Target,
    receipt: int,
    at: datetime,
    erased: Erased,
) -> None:
    """Erase entries of a theme and target, and what its history says of them; the other entries stay as they are."""
    connection.execute(statement("memories/lock"), {"theme": theme, "target": target})
    plan = _plan_history(connection, selection, at, theme, target)
    names = {"theme": theme, "target": target}
    gone = [item for item, new in _changes(plan) if new is None]
    if gone:
        columns = {
            "orders": [item.operation.when.order_us for item in gone],
            "writers": [item.writer for item in gone],
            "seqs": [item.seq for item in gone],
            "parts": [item.part for item in gone],
        }
        connection.execute(statement("erase/drop_operations"), {**names, **columns})
    for item, new in _changes(plan):
        if new is not None:
            change_operation(connection, theme, target, item, new)
    left = fold(new for _, new in plan if new is not None)
    said = {item.operation.content for item, new in plan if new is None and isinstance(item.operation, AddMemory)}
    said |= {
        item.operation.content
        for item, new in plan
        if isinstance(item.operation, ReplaceMemory) and (new is None or isinstance(new, RemoveMemory))
    }
    entries = [
        each for each in find_memories(connection, selection, at) if (each.theme, each.target) == (theme, target)
    ]
    rows = [each for each in entries if each.content not in left]
    if rows:
        connection.execute(statement("memories/delete"), {"theme": theme, "ids": [each.id for each in rows]})
        drop_pending(connection, [(theme, Kind.MEMORY.value, each.id) for each in rows])
    forgotten = {*said, *(each.content for each in rows)} - left.keys()
    own = key(connection)
    hashes = {tombstones.of_memory(own, theme, content) for content in forgotten}
    hashes |= {tombstones.of_file_entry(own, content) for content in forgotten}
    if forgotten or _changes(plan):
        hashes.add(tombstones.of_history(own, theme))
    set_tombstones(connection, receipt, at, hashes)
    erased.add("memories", len(rows))
    erased.add("history", len(_changes(plan)))
    erased.texts.update(forgotten)


def dead_letters(connection: Connection) -> Iterator[tuple[int, bytes]]:
    """Every rejected record with its number."""
    after = 0
    while True:
        page = {"after_id": after, "limit": PAGE}
        rows: list[Any] = connection.execute(statement("erase/dead_letters"), page).fetchall()
        if not rows:
            return
        for letter_id, payload in rows:
            after = int(letter_id)
            yield after, bytes(payload)


def erase_dead_letters(connection: Connection, rewrite: Callable[[bytes], bytes | None], erased: Erased) -> None:
    """Give every rejected record the payload that `rewrite` makes of it; one of which nothing is left goes."""
    for letter_id, was in dead_letters(connection):
        now = rewrite(was)
        if now is None:
            connection.execute(statement("journal/drop_dead_letter"), {"id": letter_id})
        elif now != was:
            connection.execute(statement("erase/change_dead_letter"), {"id": letter_id, "payload": now})
        erased.add("dead_letters", int(now != was))


def erase_files(connection: Connection, selection: Selection, receipt: int, at: datetime, erased: Erased) -> None:
    """Take forgotten entries out of every home's files as last compared."""
    own = key(connection)
    rows: list[Any] = connection.execute(statement("erase/files")).fetchall()
    for home_id, target, entries, withheld in rows:
        held = {each.content for each in mirror_files.held_entries(connection, home_id, target)}
        known = tombstones.look_up(connection, {tombstones.of_file_entry(own, entry) for entry in entries})
        named = {entry for entry in entries if selection.theme is None and selection.tells(entry)}
        gone = {entry for entry in entries if tombstones.of_file_entry(own, entry) in known or entry in named} - held
        if not gone:
            continue
        hashes = {tombstones.of_file_entry(own, entry) for entry in gone}
        set_tombstones(connection, receipt, at, hashes)
        kept = [entry for entry in entries if entry not in gone]
        values = {"entries": json.dumps(kept), "withheld": sorted({*map(bytes, withheld), *hashes})}
        connection.execute(statement("erase/set_file"), {"home_id": home_id, "target": target, **values})
        erased.add("file_entries", len(gone))
        erased.texts.update(gone)


def change_operation(connection: Connection, theme: str, target: Target, item: Placed, new: MemoryOperation) -> None:
    """Give an operation in a history another meaning."""
    names = {"theme": theme, "target": target}
    connection.execute(statement("erase/change_operation"), {**names, **_operation_values(item, new)})


def drop_pending(connection: Connection, keys: Sequence[vectors.Key]) -> None:
    """Take rows that are gone off the queue for vectors."""
    if keys:
        columns = {name: [each[place] for each in keys] for place, name in enumerate(("themes", "kinds", "ids"))}
        connection.execute(statement("erase/drop_pending"), columns)


def refresh_statistics(connection: Connection) -> None:
    """Have the planner and the search forget the words, too."""
    connection.execute(statement("erase/analyze"))


def texts_in_tables(connection: Connection, needles: Sequence[str]) -> dict[str, int]:
    """How many rows of each table hold one of these texts; -1 for a table that we may not read."""
    rows: list[Any] = connection.execute(statement("erase/texts"), {"needles": list(needles)}).fetchall()
    return {str(name): int(count) for name, count in rows}


def _plan_history(
    connection: Connection, selection: Selection, cut: datetime, theme: str, target: Target
) -> list[tuple[Placed, MemoryOperation | None]]:
    """Every operation of a theme and target with what it becomes."""
    items = memories.history(connection, theme, target)
    entries = find_memories(connection, selection, cut)
    named = (
        {each.content for each in entries if (each.theme, each.target) == (theme, target)} if selection.by_id else set()
    )
    until = tombstones.micros(selection.cut(cut))

    def is_forgotten(text: str, operation: MemoryOperation) -> bool:
        if operation.when.wall_us > until:
            return False
        if selection.by_id:
            return text in named
        if selection.session_id is not None and tombstones.session_of(operation) != selection.session_id:
            return False
        return selection.match is None or selection.tells(text)

    operations = [item.operation for item in items]
    told = "\0".join(
        each.content for each in operations if not isinstance(each, RemoveMemory) and is_forgotten(each.content, each)
    )

    def quotes(text: str) -> bool:
        return bool(text) and (selection.tells(text) or text.strip() in told or any(text in each for each in named))

    new = without(operations, is_forgotten, quotes)
    return [
        (item, each if each is item.operation else _without_metadata(each, selection))
        for item, each in zip(items, new, strict=True)
    ]


def _entries(
    connection: Connection, selection: Selection, cut: datetime, theme: str, target: Target
) -> list[FoundMemory]:
    found = find_memories(connection, replace(selection, theme=theme), cut)
    return [each for each in found if each.target == target]


def _changes(plan: Iterable[tuple[Placed, MemoryOperation | None]]) -> list[tuple[Placed, MemoryOperation | None]]:
    return [(item, new) for item, new in plan if new is not item.operation]


def _without_metadata(operation: MemoryOperation | None, selection: Selection) -> MemoryOperation | None:
    if operation is None or not selection.tells(_metadata(operation)):
        return operation
    return replace(operation, metadata={})


def _metadata(operation: MemoryOperation) -> str:
    return json.dumps(dict(operation.metadata), ensure_ascii=False) if operation.metadata else ""


def _operation_values(item: Placed, new: MemoryOperation) -> dict[str, Any]:
    return {
        "order_us": item.operation.when.order_us,
        "writer": item.writer,
        "seq": item.seq,
        "part": item.part,
        "action": ACTIONS[type(new)],
        "content": "" if isinstance(new, RemoveMemory) else new.content,
        "old_text": "" if isinstance(new, AddMemory) else new.old_text,
        "previous": None if isinstance(new, AddMemory) else new.previous,
        "metadata": json.dumps(dict(new.metadata), ensure_ascii=False),
    }


def _tasks(turn: FoundTurn) -> Iterator[str]:
    """The task behind the turn that tells of a delegation; each of them, where its text leaves room for doubt."""
    if turn.role != "tool" or not turn.content.startswith(TASK_MARK):
        return
    told = turn.content.removeprefix(TASK_MARK)
    at = told.find(RESULT_MARK)
    while at >= 0:
        yield told[:at]
        at = told.find(RESULT_MARK, at + 1)


def _delegations(connection: Connection, selection: Selection, cut: datetime, *, limit: int) -> list[Any]:
    if not selection.is_scope:
        return []
    values = {**selection.values(cut), "limit": limit}
    return connection.execute(statement("erase/find_delegations"), values).fetchall()


def _drop_delegations(connection: Connection, edges: Sequence[Any]) -> int:
    if not edges:
        return 0
    keys = {"themes": [theme for theme, _ in edges], "ids": [edge_id for _, edge_id in edges]}
    return connection.execute(statement("erase/drop_delegations"), keys).rowcount


def _listed(ids: tuple[int, ...] | None) -> list[int] | None:
    return None if ids is None else list(ids)


def _is_by(metadata: Mapping[str, Any], authors: Collection[str]) -> bool:
    author = metadata.get("author")
    return isinstance(author, Mapping) and any(str(value).lower() in authors for value in author.values())
