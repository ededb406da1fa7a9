"""What is meant among the rows of a database, and how it goes: found first, then deleted by number."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString, NamedTuple

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.ops.forget.named import Named
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store import flatten, history, marks
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.store.turn_context import mend
from hermes_memory_pgvector.values import Kind, Target, WriteItem

PORTION: Final = 2000
SAMPLES: Final = 5
STAMPED: Final[Mapping[LiteralString, LiteralString]] = {
    "forget/stamps_of_turns": "forget/set_metadata_of_turn",
    "forget/stamps_of_entries": "forget/set_metadata_of_entry",
    "forget/stamps_of_events": "forget/set_metadata_of_event",
}


class StampedRow(NamedTuple):
    """A row that stays, and whose metadata hold what is meant."""

    write: LiteralString
    theme: str
    id: int
    metadata: Mapping[str, Any]
    """What is left of them."""
    session_id: str | None


class Letter(NamedTuple):
    """A rejected record."""

    id: int
    payload: bytes | None
    """What is left of it; None when it goes as a whole."""


@dataclass(slots=True)
class Findings:
    """What is meant."""

    turns: dict[tuple[str, int], str] = field(default_factory=dict)
    """By theme and number: the session."""
    entries: dict[tuple[str, int], tuple[Target, str]] = field(default_factory=dict)
    events: dict[tuple[str, Target], set[int]] = field(default_factory=lambda: defaultdict(set))
    removals: set[int] = field(default_factory=set)
    """Events that go although they say nothing: their session, their time or they themselves are meant."""
    gone: dict[tuple[str, Target], set[str]] = field(default_factory=lambda: defaultdict(set))
    """What memories of a theme and target must no longer say."""
    texts: dict[tuple[str, str], Named] = field(default_factory=dict)
    """By theme and words, whoever said them, and what named them."""
    recalls: set[tuple[str, int]] = field(default_factory=set)
    stamps: dict[tuple[LiteralString, str, int], StampedRow] = field(default_factory=dict)
    letters: dict[int, Letter] = field(default_factory=dict)
    reasons: set[int] = field(default_factory=set)
    themes: set[str] = field(default_factory=set)
    """The themes of all that."""
    samples: list[tuple[str, str, str]] = field(default_factory=list)
    """(name, theme, words) of some rows."""

    def counts(self) -> dict[str, int]:
        """How much there is."""
        return {
            "memories": len(self.entries),
            "turns": len(self.turns),
            "events": sum(map(len, self.events.values())),
            "questions": len(self.recalls),
            "rejected": len(self.letters),
            "metadata": len(self.stamps),
        }


def find(connection: Connection, named: Sequence[Named], opened: Gate) -> Findings:
    """Look for everything that is meant; CareError for a single row that is not there."""
    found = Findings()
    for each in named:
        _turns(connection, each, found)
        _memories(connection, each, found)
        _letters(connection, each, found, opened)
        if each.is_place or each.needle is not None:
            _recalls(connection, each, found)
        if each.needle is not None and each.is_everywhere:
            _stamps(connection, each, found)
            rows: list[Any] = connection.execute(statement("forget/reasons")).fetchall()
            found.reasons |= {int(rule) for rule, reason in rows if each.needle.is_in(reason)}
    _keep_what_stays(connection, found)
    return found


def _turns(connection: Connection, named: Named, found: Findings) -> None:
    values = named.values("t")
    if values is None:
        return
    there = set()
    for theme, row_id, session, _, _, text in streamed(connection, "forget/turns", values):
        if not named.says(text):
            continue
        there.add(row_id)
        found.turns[theme, row_id] = session
        found.themes.add(theme)
        if not named.is_place:
            found.texts[theme, text] = named
        if len(found.samples) < SAMPLES:
            found.samples.append((f"t{row_id}", theme, text))
    _require(named, "t", there)


def _memories(connection: Connection, named: Named, found: Findings) -> None:
    there = set()
    for theme, target, row_id, content, _ in _read(connection, "forget/entries", named.values("m")):
        if named.authors is None and named.says(content):
            there.add(row_id)
            _goes(found, named, theme, target, content)
            found.entries[theme, row_id] = target, content
            if len(found.samples) < SAMPLES:
                found.samples.append((f"m{row_id}", theme, content))
    _require(named, "m", there)
    there = set()
    for theme, target, row_id, action, content, old, previous, _ in _read(
        connection, "forget/events", named.values("e")
    ):
        told = content if action != "remove" else previous or old
        if named.authors is not None or not any(text and named.says(text) for text in (content, old, previous)):
            continue
        there.add(row_id)
        found.events[theme, target].add(row_id)
        found.themes.add(theme)
        if named.needle is None:
            found.removals.add(row_id)
        if named.ids:
            # Whoever names an operation means the entry that it tells of.
            values = {**_anything(theme), "ids": None}
            for _, at, entry, words, _ in _read(connection, "forget/entries", values):
                if at == target and words == told:
                    found.entries[theme, entry] = target, words
        if told and named.says(told):
            _goes(found, named, theme, target, told)
    _require(named, "e", there)


def _goes(found: Findings, named: Named, theme: str, target: Target, content: str) -> None:
    found.gone[theme, target].add(content)
    found.themes.add(theme)
    if not named.is_place:
        found.texts[theme, content] = named


def _keep_what_stays(connection: Connection, found: Findings) -> None:
    """An operation that is meant, of an entry that is not, stays: the entry is made of it."""
    for theme in sorted({theme for theme, _ in found.gone}):
        for _, target, row_id, content, _ in _read(connection, "forget/entries", _anything(theme)):
            if (theme, row_id) not in found.entries:
                found.gone[theme, target].discard(content)


def _anything(theme: str) -> dict[str, Any]:
    return {"theme": theme, "session_id": None, "before": None, "ids": None, "word": None}


def _recalls(connection: Connection, named: Named, found: Findings) -> None:
    values = named.values()
    if values is not None and named.authors is None:
        for theme, row_id, query, _ in _read(connection, "forget/recalls", values):
            if named.needle is None or named.needle.is_in(query):
                found.recalls.add((theme, row_id))


def _stamps(connection: Connection, named: Named, found: Findings) -> None:
    assert named.needle is not None
    for read, write in STAMPED.items():
        for theme, row_id, metadata, session in _read(connection, read, named.values()):
            left = named.needle.without(metadata)
            if left != metadata:
                found.stamps[write, theme, row_id] = StampedRow(write, theme, row_id, left, session)


def _letters(connection: Connection, named: Named, found: Findings, opened: Gate) -> None:
    letters = named.by_letter["d"]
    there = set()
    rows: list[Any] = connection.execute(statement("forget/letters")).fetchall() if letters or not named.ids else []
    for number, raw in rows:
        payload = bytes(raw)
        items = decoded(payload)
        if number in letters:
            there.add(number)
            gone = items or []
        elif items is None:
            # Nobody can read the record, but its bytes say it.
            if named.needle is not None and named.needle.is_in(payload.decode("utf-8", "replace")):
                found.letters[number] = Letter(number, None)
            continue
        else:
            gone = [item for item in items if named.covers(opened.renamed(item))]
        if gone or number in letters:
            kept = [item for item in items or [] if item not in gone]
            found.letters[number] = Letter(number, codec.encode(kept) if kept else None)
            found.texts |= {
                (item.theme, text): named for item in gone for text in marks.texts_of(item) if not named.is_place
            }
            found.themes |= {opened.renamed(item).theme for item in gone}
    _require(named, "d", there)


def decoded(payload: bytes) -> list[WriteItem] | None:
    """The items of a record; None when it cannot be read."""
    try:
        return codec.decode(payload)
    except ValueError:
        return None


def _require(named: Named, letter: str, there: set[int]) -> None:
    missing = [f"{letter}{number}" for number in named.by_letter[letter] if number not in there] if named.ids else []
    if missing:
        where = "" if named.theme is None else f" in {named.theme}"
        raise CareError(
            f"there is no {' and no '.join(missing)}{where}, so nothing was done; `list` shows what there is"
        )


def erase(connection: Connection, found: Findings, named: Sequence[Named]) -> None:
    """With the gate closed: delete what was found, and let the rest be as if it had not been there."""

    def quotes(text: str) -> bool:
        return any(each.needle is not None and each.needle.is_in(text) for each in named)

    for theme, target in sorted({*found.gone, *found.events}):
        _cut(connection, theme, target, found, quotes)
    _delete(connection, "memories/delete", found.entries, Kind.MEMORY)
    _delete(connection, "forget/cut_turns", found.turns, Kind.TURN)
    for theme, ids in _by_theme(found.recalls):
        connection.execute(statement("forget/cut_recalls"), {"theme": theme, "ids": ids})
    for stamp in found.stamps.values():
        values = {"theme": stamp.theme, "id": stamp.id, "metadata": json.dumps(stamp.metadata)}
        connection.execute(statement(stamp.write), values)
    for letter in found.letters.values():
        name = "forget/cut_letter" if letter.payload is None else "forget/set_letter"
        connection.execute(statement(name), letter._asdict())
    for rule in sorted(found.reasons):
        connection.execute(statement("forget/set_reason"), {"id": rule})
    for each in named:
        if each.is_place and each.before is None and (each.theme or each.session_id):
            values = {"theme": each.theme, "session_id": each.session_id}
            connection.execute(statement("forget/close_rules"), values)
    is_whole = all(each.is_place and each.before is None and each.authors is None for each in named)
    sessions = {(theme, session) for (theme, _), session in found.turns.items() if not (named and is_whole)}
    sessions |= {(stamp.theme, stamp.session_id) for stamp in found.stamps.values() if stamp.session_id is not None}
    mend_sessions(connection, sessions)


def _cut(connection: Connection, theme: str, target: Target, found: Findings, quotes: Callable[[str], bool]) -> None:
    gone = found.gone[theme, target]

    def is_told(text: str) -> bool:
        return quotes(text) or any(text.strip() in content for content in gone)

    events = history.of_theme(connection, theme, target)[0]
    flatten.apply(connection, theme, flatten.without(events, gone, is_told, found.removals))


def mend_sessions(connection: Connection, sessions: set[tuple[str, str]]) -> None:
    """A turn is found by words of the turns before it, too: let those of these sessions be found by what is there."""
    for theme, session in sorted(sessions):
        values = {"theme": theme, "session_id": session}
        rows: list[Any] = connection.execute(statement("forget/turns_of_session"), values).fetchall()
        mend(connection, [(theme, row_id) for (row_id,) in rows])


def _delete(connection: Connection, name: LiteralString, keys: Mapping[tuple[str, int], Any], kind: Kind) -> None:
    for theme, ids in _by_theme(keys):
        connection.execute(statement(name), {"theme": theme, "ids": ids})
        connection.execute(statement("forget/cut_waiting"), {"theme": theme, "ids": ids, "kind": kind.value})


def _by_theme(keys: Iterable[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    by_theme: dict[str, list[int]] = defaultdict(list)
    for theme, row_id in sorted(keys):
        by_theme[theme].append(row_id)
    for theme, ids in by_theme.items():
        for start in range(0, len(ids), PORTION):
            yield theme, ids[start : start + PORTION]


def _read(connection: Connection, name: LiteralString, values: Mapping[str, Any] | None) -> list[Any]:
    rows: list[Any] = [] if values is None else connection.execute(statement(name), values).fetchall()
    return rows


def streamed(connection: Connection, name: LiteralString, values: Mapping[str, Any]) -> Iterator[Any]:
    """Rows that may be more than fit in memory, in the transaction under way."""
    with connection.cursor(name="hermes_forget") as cursor:
        cursor.itersize = PORTION
        cursor.execute(statement(name), values)
        yield from cursor
