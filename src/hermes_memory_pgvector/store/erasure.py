"""Erasing what was found: rows, histories, queues and rejected records, each with tombstones.

Everything that sets tombstones runs within a transaction that has the gate closed (see `gate`), so that nothing is
stored beside it on the word of an earlier look. Every write of every home waits meanwhile: so whoever calls this looks
and works out what is to be done before, and what happens here concerns a few hundred rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import tombstones, vectors
from hermes_memory_pgvector.store.memories import ACTIONS, Placed
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.store.named_rows import (
    FoundTurn,
    History,
    SessionTurn,
    Until,
    entries_of,
    keys_of,
    metadata_json,
    named_among,
    plan_history,
)
from hermes_memory_pgvector.store.selection import Selection, without_stamps
from hermes_memory_pgvector.store.turn_context import TurnPlace, mend, mend_following
from hermes_memory_pgvector.text.clean import text_digest, turn_digest
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    Kind,
    MemoryOperation,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    Target,
    WriteItem,
)

TASK_MARK, RESULT_MARK = "Delegated: ", "\nResult: "
"""How a delegation stands in the turn that tells of it."""

STAMPED: Mapping[str, tuple[LiteralString, LiteralString]] = {
    "conversations": ("erase/metadata_of_conversations", "erase/stamp_conversations"),
    "memory_entries": ("erase/metadata_of_memory_entries", "erase/stamp_memory_entries"),
    "delegations": ("erase/metadata_of_delegations", "erase/stamp_delegations"),
}
"""The statements that read and write the metadata of a table's rows."""

Hashes = dict[datetime, set[bytes]]
"""Tombstones by the time until which what they stand for is forgotten."""


@dataclass(slots=True)
class Erased:
    """What went."""

    counts: dict[str, int] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    """Forgotten words, for the files of this home; they are never stored."""
    entries: set[tuple[str, Target, str]] = field(default_factory=set)
    """Forgotten memories by theme and target: operations that wait in files may quote them."""

    def add(self, name: str, count: int) -> None:
        """Count what went."""
        self.counts[name] = self.counts.get(name, 0) + count


def key(connection: Connection) -> bytes:
    """The key of the tombstones."""
    row: Any = connection.execute(statement("erase/key")).fetchone()
    return bytes(row[0])


# Tombstones.


def set_tombstones(connection: Connection, receipt: int, hashes: Hashes) -> None:
    """Set tombstones."""
    for at, found in hashes.items():
        if found:
            values = {"receipt": receipt, "at": at, "hashes": sorted(found), "lengths": [None] * len(found)}
            connection.execute(statement("erase/insert_tombstones"), values)


def set_scopes(connection: Connection, selection: Selection, receipt: int, at: datetime) -> None:
    """Set what is known before anything is looked at: whole themes, sessions and speakers, and the text itself.

    A theme is forgotten under every name it had: what was said under an old one was moved, and may still arrive.
    """
    own, until, session = key(connection), selection.cut(at), selection.session_id or ""
    themes = [""]
    if selection.theme is not None:
        rows: list[Any] = connection.execute(statement("erase/aliases_of"), {"theme": selection.theme}).fetchall()
        themes = [selection.theme, *(str(old) for (old,) in rows)]
    if selection.is_scope:
        set_tombstones(connection, receipt, {until: {tombstones.of_scope(own, theme, session) for theme in themes}})
    elif selection.authors is not None and selection.match is None:
        authors = {tombstones.of_author(own, name, theme, session) for name in selection.authors for theme in themes}
        set_tombstones(connection, receipt, {until: authors})
    elif selection.match is not None and not selection.names_rows:
        parts = dict(tombstones.of_part(own, selection.match, theme, session)[::-1] for theme in themes)
        values = {"receipt": receipt, "at": until, "hashes": list(parts), "lengths": list(parts.values())}
        connection.execute(statement("erase/insert_tombstones"), values)


def hashes_of_items(own: bytes, at: datetime, named: Iterable[tuple[WriteItem, Selection]]) -> Hashes:
    """The tombstones of items that are in a file and were never stored."""
    found: Hashes = defaultdict(set)
    for item, selection in named:
        until = max(selection.cut(at), datetime.fromtimestamp(item.when.wall_us / 1e6, at.tzinfo))
        match item:
            case AddTurn():
                digest = item.digest or turn_digest(item.role, item.content)
                found[until] |= _of_turn(own, selection, item.theme, item.session_id, item.content, digest,
                                         item.ordinal, item.when.wall_us)  # fmt: skip
            case AddMemory() | ReplaceMemory():
                session = tombstones.session_of(item)
                found[until].add(_of_memory(own, selection, item.theme, item.target, session, item.content))
                found[max(at, until)].add(tombstones.of_file_entry(own, item.content))
            case RecordDelegation():
                found[until].add(tombstones.task_of(own, item.theme, item))
            case _:
                continue
    return found


def _of_turn(
    own: bytes,
    selection: Selection,
    theme: str,
    session_id: str,
    content: str,
    digest: str,
    ordinal: int | None,
    wall_us: int,
) -> set[bytes]:
    """What recognises a turn: as much of it as is meant, so that nobody else's words are refused."""
    said = (theme, session_id, digest)
    if selection.names_rows:
        found = {tombstones.of_moment(own, *said, wall_us)}
        return found if ordinal is None else found | {tombstones.of_occurrence(own, *said, ordinal)}
    if selection.names_words:
        # By its digest, too: the words once said may be others than those it has.
        return {tombstones.of_turn(own, theme, content), tombstones.of_said(own, *said)}
    return {tombstones.of_said(own, *said)}


def _of_memory(own: bytes, selection: Selection, theme: str, target: Target, session: str, content: str) -> bytes:
    if selection.session_id is not None:
        return tombstones.of_noted(own, theme, target, session, content)
    return tombstones.of_memory(own, theme, target, content)


# Turns.


def erase_turns(
    connection: Connection,
    selection: Selection,
    receipt: int,
    until: Until,
    keys: Sequence[tuple[str, int]],
    erased: Erased,
) -> None:
    """Erase turns (theme, id), and mend those that follow them.

    Both happen in one transaction: whoever is killed afterwards leaves no turn that is found by forgotten words.
    """
    found = named_among(connection, selection, until, keys)
    if not found:
        return
    own = key(connection)
    hashes: Hashes = defaultdict(set)
    tasks: set[tuple[str, str, str]] = set()
    for each in found:
        forgotten = max(selection.cut(until.at), each.ts)
        hashes[forgotten] |= _of_turn(own, selection, each.theme, each.session_id, each.content, each.digest,
                                      each.ordinal, tombstones.micros(each.ts))  # fmt: skip
        for task in _tasks(each):
            tasks.add((each.theme, each.session_id, task))
            digest = text_digest(task)
            hashes[max(until.at, each.ts)].add(tombstones.of_task(own, each.theme, each.session_id, digest))
    set_tombstones(connection, receipt, hashes)
    gone = keys_of((each.theme, each.id) for each in found)
    erased.add("turns", connection.execute(statement("erase/drop_turns"), gone).rowcount)
    drop_pending(connection, [(each.theme, Kind.TURN.value, each.id) for each in found])
    erased.add("delegations", _drop_tasks(connection, tasks))
    erased.texts.update(each.content for each in found)
    places = [TurnPlace(each.theme, each.session_id, each.ts, each.id) for each in found]
    erased.add("mended", mend_following(connection, places))


def late_turns(turns: Sequence[SessionTurn]) -> list[tuple[str, int]]:
    """The turns of a session that were stored after ones said later: those may have been taken for their context."""
    found = []
    lowest: int | None = None
    for turn in reversed(turns):
        if lowest is not None and turn.id > lowest and not turn.is_meant:
            found.append((turn.theme, turn.id))
        lowest = turn.id if lowest is None else min(lowest, turn.id)
    return found


def _tasks(turn: FoundTurn) -> Iterator[str]:
    """The task behind the turn that tells of a delegation; each of them, where its text leaves room for doubt."""
    if turn.role != "tool" or not turn.content.startswith(TASK_MARK):
        return
    told = turn.content.removeprefix(TASK_MARK)
    at = told.find(RESULT_MARK)
    while at >= 0:
        yield told[:at]
        at = told.find(RESULT_MARK, at + 1)


def _drop_tasks(connection: Connection, tasks: Collection[tuple[str, str, str]]) -> int:
    if not tasks:
        return 0
    columns = list(zip(*tasks, strict=True))
    values = {name: list(column) for name, column in zip(("themes", "session_ids", "tasks"), columns, strict=True)}
    edges: list[Any] = connection.execute(statement("erase/delegations_of"), values).fetchall()
    return drop_delegations(connection, edges)


# What no tombstone is needed for: it is not stored again by itself.


def drop_delegations(connection: Connection, edges: Sequence[tuple[str, int]]) -> int:
    """Delete delegations; returns how many there were."""
    return connection.execute(statement("erase/drop_delegations"), keys_of(edges)).rowcount if edges else 0


def drop_recalls(connection: Connection, found: Sequence[tuple[str, int]]) -> int:
    """Delete logged recalls; returns how many there were."""
    return connection.execute(statement("erase/drop_recalls"), keys_of(found)).rowcount if found else 0


def drop_pending(connection: Connection, keys: Sequence[vectors.Key]) -> None:
    """Take rows that are gone off the queue for vectors."""
    if keys:
        columns = {name: [each[place] for each in keys] for place, name in enumerate(("themes", "kinds", "ids"))}
        connection.execute(statement("erase/drop_pending"), columns)


def erase_stamps(connection: Connection, table: str, keys: Sequence[tuple[str, int]], match: str) -> int:
    """Take a text out of the metadata of rows, which stay; returns how many had it."""
    read, write = STAMPED[table]
    rows: list[Any] = connection.execute(statement(read), keys_of(keys)).fetchall()
    new = [(theme, row_id, without_stamps(metadata, match)) for theme, row_id, metadata in rows]
    values = {
        **keys_of((theme, row_id) for theme, row_id, _ in new),
        "metadata": [metadata_json(metadata) for _, _, metadata in new],
    }
    count = connection.execute(statement(write), values).rowcount
    if table == "conversations":
        # A turn is found by the name of its author, too.
        mend(connection, [(theme, row_id) for theme, row_id, _ in new])
    return count


# Memories.


def erase_history(
    connection: Connection, selection: Selection, planned: History, receipt: int, until: Until, erased: Erased
) -> None:
    """Erase entries of a theme and target, and what its history says of them; the other entries stay as they are.

    `planned` is what was worked out before; operations that have come since make it be worked out anew.
    """
    theme, target = planned.theme, planned.target
    names: dict[str, Any] = {"theme": theme, "target": target}
    connection.execute(statement("memories/lock"), names)
    if _size(connection, theme, target) != planned.size:
        planned = plan_history(connection, selection, until, theme, target)
    gone = [item for item, new in planned.changes if new is None]
    if gone:
        columns = {
            "orders": [item.operation.when.order_us for item in gone],
            "writers": [item.writer for item in gone],
            "seqs": [item.seq for item in gone],
            "parts": [item.part for item in gone],
        }
        connection.execute(statement("erase/drop_operations"), {**names, **columns})
    for item, new in planned.changes:
        if new is not None:
            change_operation(connection, theme, target, item, new)
    left = fold(new for _, new in planned.plan if new is not None)
    rows = [
        each
        for each in entries_of(connection, selection, until, theme, target)
        if each.content not in left
    ]  # fmt: skip
    if rows:
        connection.execute(statement("memories/delete"), {"theme": theme, "ids": [each.id for each in rows]})
        drop_pending(connection, [(theme, Kind.MEMORY.value, each.id) for each in rows])
    own, hashes = key(connection), defaultdict[datetime, set[bytes]](set)
    said = [(operation.content, tombstones.session_of(operation), datetime.fromtimestamp(
        operation.when.wall_us / 1e6, until.at.tzinfo)) for operation in _withdrawn(planned)]  # fmt: skip
    said += [(each.content, selection.session_id or "", each.updated_at) for each in rows]
    forgotten = {content for content, _, _ in said} - left.keys()
    for content, session, at in said:
        if content in forgotten:
            hashes[max(selection.cut(until.at), at)].add(_of_memory(own, selection, theme, target, session, content))
    hashes[until.at] |= {tombstones.of_file_entry(own, content) for content in forgotten}
    if forgotten or planned.changes:
        hashes[until.at].add(tombstones.of_history(own, theme))
    set_tombstones(connection, receipt, hashes)
    erased.add("memories", len(rows))
    erased.add("history", len(planned.changes))
    erased.texts.update(forgotten)
    erased.entries.update((theme, target, content) for content in forgotten)


def change_operation(connection: Connection, theme: str, target: Target, item: Placed, new: MemoryOperation) -> None:
    """Give an operation in a history another meaning."""
    values = {
        "theme": theme,
        "target": target,
        "order_us": item.operation.when.order_us,
        "writer": item.writer,
        "seq": item.seq,
        "part": item.part,
        "action": ACTIONS[type(new)],
        "content": "" if isinstance(new, RemoveMemory) else new.content,
        "old_text": "" if isinstance(new, AddMemory) else new.old_text,
        "previous": None if isinstance(new, AddMemory) else new.previous,
        "metadata": metadata_json(new.metadata),
    }
    connection.execute(statement("erase/change_operation"), values)


def _withdrawn(planned: History) -> Iterator[AddMemory | ReplaceMemory]:
    """The operations that no longer say what they said."""
    for item, new in planned.plan:
        told = item.operation
        if not isinstance(told, RemoveMemory) and (new is None or isinstance(new, RemoveMemory)):
            yield told


def _size(connection: Connection, theme: str, target: Target) -> tuple[int, tuple[int, str, int, int]]:
    row: Any = connection.execute(statement("erase/history_size"), {"theme": theme, "target": target}).fetchone()
    return (0, (0, "", 0, 0)) if row is None else (int(row[0]), (int(row[1]), str(row[2]), int(row[3]), int(row[4])))


# Rejected records.


def dead_letters(connection: Connection, after: int = 0) -> Iterator[tuple[int, bytes]]:
    """Every rejected record with its number, above this one."""
    while True:
        page = {"after_id": after, "limit": 500}
        rows: list[Any] = connection.execute(statement("erase/dead_letters"), page).fetchall()
        if not rows:
            return
        for letter_id, payload in rows:
            after = int(letter_id)
            yield after, bytes(payload)


def change_dead_letter(connection: Connection, letter_id: int, was: bytes, now: bytes | None) -> int:
    """Give a rejected record another payload, or delete it; 0 when it was changed or stored meanwhile."""
    if now is None:
        return connection.execute(statement("erase/drop_dead_letter"), {"id": letter_id}).rowcount
    values = {"id": letter_id, "payload": now, "was": was}
    return connection.execute(statement("erase/change_dead_letter"), values).rowcount


def drop_names_of_rules(connection: Connection, selection: Selection) -> int:
    """Take reasons off rules that hide nothing any more, and off those that are over the names of what is forgotten.

    One that still hides something, or goes on doing so for what the session says from now on, keeps them.
    """
    connection.execute(statement("erase/reasons"))
    if not selection.is_scope or selection.before is not None:
        return 0
    values = {"theme": selection.theme, "session_id": selection.session_id}
    return connection.execute(statement("erase/names_of_rules"), values).rowcount
