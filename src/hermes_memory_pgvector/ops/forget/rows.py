"""What is meant among the rows of a database, and how it goes: found first, then deleted by number."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, LiteralString, NamedTuple

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.ops.forget import stored
from hermes_memory_pgvector.ops.forget.named import Named
from hermes_memory_pgvector.ops.forget.stored import ANYTHING, LETTERS, ForgettableRow, Letter
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import flatten, history, marks, vectors
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.store.turns import mend
from hermes_memory_pgvector.values import Kind, Target

PORTION: Final = 2000
SAMPLES: Final = 5
STAMPS: Final[Mapping[Letter, LiteralString]] = {
    "t": "forget/set_metadata_of_turn", "m": "forget/set_metadata_of_entry", "e": "forget/set_metadata_of_event",
}  # fmt: skip


class LetterRest(NamedTuple):
    """A rejected record, and what is left of it; None when it goes as a whole."""

    id: int
    payload: bytes | None


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
    stamps: dict[tuple[Letter, str, int], ForgettableRow] = field(default_factory=dict)
    """Rows that stay, with what is left of their metadata."""
    letters: dict[int, LetterRest] = field(default_factory=dict)
    reasons: set[int] = field(default_factory=set)
    themes: set[str] = field(default_factory=set)
    """The themes of all that."""
    samples: list[ForgettableRow] = field(default_factory=list)

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
    by_event: set[tuple[str, Target, str]] = set()
    for each in named:
        for letter in LETTERS:
            values = each.values(letter)
            rows = () if values is None else stored.rows(connection, letter, values)
            _require(each, letter, {row.id for row in rows if _take(found, each, row)})
        if each.by_letter["e"]:
            # Whoever names an operation means the entry that it tells of.
            by_event |= {(theme, target, text) for (theme, target), texts in found.gone.items() for text in texts}
        _letters(connection, each, found, opened)
        _recalls(connection, each, found)
        if each.needle is not None and each.is_everywhere:
            reasons = run(connection, "forget/reasons")
            found.reasons |= {int(rule) for rule, reason in reasons if each.needle.is_in(reason)}
    _settle_entries(connection, found, by_event)
    return found


def find_marked(connection: Connection, opened: Gate, known: Mapping[bytes, datetime]) -> Findings:
    """Every row that has one of these marks."""
    found = Findings()
    for row in stored.everything(connection):
        if not stored.has_mark(row.item, opened, known):
            continue
        if row.action != "remove":
            _goes(found, row)
        else:
            found.removals.add(row.id)
            found.events[row.theme, row.place].add(row.id)
    return found


def _take(found: Findings, named: Named, row: ForgettableRow) -> bool:
    """Note what goes of a row; whether it is meant by its words."""
    if named.is_everywhere and named.needle is not None:
        left = named.needle.without(row.metadata)
        if left != row.metadata:
            found.stamps[row.letter, row.theme, row.id] = row._replace(metadata=left)
    said = [row.content] if row.letter != "e" else [row.content, *row.quoted]
    if not any(map(named.says, said)) or (row.letter != "t" and named.authors is not None):
        return False
    found.themes.add(row.theme)
    if row.letter == "e":
        found.events[row.theme, row.place].add(row.id)
        if named.needle is None:
            found.removals.add(row.id)
        if not row.told or not named.says(row.told):
            return True
    elif len(found.samples) < SAMPLES:
        found.samples.append(row)
    _goes(found, row)
    if not named.is_place:
        found.texts[row.theme, row.told] = named
    return True


def _goes(found: Findings, row: ForgettableRow) -> None:
    if row.letter == "t":
        found.turns[row.theme, row.id] = row.place
        return
    if row.letter == "m":
        found.entries[row.theme, row.id] = row.place, row.content
    found.gone[row.theme, row.place].add(row.told)


def _settle_entries(connection: Connection, found: Findings, by_event: set[tuple[str, Target, str]]) -> None:
    """An operation that is meant, of an entry that is not, stays: the entry is made of it."""
    for theme in sorted({theme for theme, _ in found.gone}):
        for row in stored.rows(connection, "m", {**ANYTHING, "theme": theme}):
            if (theme, row.place, row.content) in by_event:
                found.entries[theme, row.id] = row.place, row.content
            elif (theme, row.id) not in found.entries:
                found.gone[theme, row.place].discard(row.content)


def _recalls(connection: Connection, named: Named, found: Findings) -> None:
    values = named.values()
    if values is not None and named.authors is None:
        logged = run(connection, "forget/recalls", **values)
        found.recalls |= {(theme, row_id) for theme, row_id, query, _ in logged if named.says(query)}


def _letters(connection: Connection, named: Named, found: Findings, opened: Gate) -> None:
    wanted = named.by_letter["d"]
    there = set()
    for number, payload, items in stored.letters(connection) if wanted or not named.ids else ():
        there.add(number)
        if items is None and number not in wanted:
            # Nobody can read the record, but its bytes say it.
            if named.needle is not None and named.needle.is_in(payload.decode("utf-8", "replace")):
                found.letters[number] = LetterRest(number, None)
            continue
        gone = [item for item in items or () if number in wanted or named.covers(opened.renamed(item))]
        if gone or number in wanted:
            kept = [item for item in items or () if item not in gone]
            found.letters[number] = LetterRest(number, codec.encode(kept) if kept else None)
            found.texts |= {
                (item.theme, text): named for item in gone for text in marks.texts_of(item) if not named.is_place
            }
            found.themes |= {opened.renamed(item).theme for item in gone}
    _require(named, "d", there)


def _require(named: Named, letter: str, there: set[int]) -> None:
    missing = [f"{letter}{number}" for number in named.by_letter[letter] if number not in there]
    if missing:
        where = "" if named.theme is None else f" in {named.theme}"
        raise CareError(
            f"there is no {' and no '.join(missing)}{where}, so nothing was done; `list` shows what there is"
        )


def erase(connection: Connection, found: Findings, named: Sequence[Named]) -> None:
    """With the gate closed: delete what was found, and let the rest be as if it had not been there."""
    layout = buckets.layout(connection)
    for bucket in buckets.within(connection):

        def is_here(theme: str, bucket: int = bucket) -> bool:
            return layout.of(theme) == bucket

        _erase(connection, found, named, is_here)


def _erase(connection: Connection, found: Findings, named: Sequence[Named], is_here: Callable[[str], bool]) -> None:
    """What lies in one bucket; records and rules have numbers that no other bucket has."""

    def quotes(text: str) -> bool:
        return any(each.needle is not None and each.needle.is_in(text) for each in named)

    for theme, target in sorted({*found.gone, *found.events}):
        if is_here(theme):
            _cut(connection, theme, target, found, quotes)
    for theme, ids in _by_theme(found.entries, is_here):
        _delete(connection, "memories/delete", theme, ids, Kind.MEMORY)
    for theme, ids in _by_theme(found.turns, is_here):
        _delete(connection, "forget/cut_turns", theme, ids, Kind.TURN)
    for theme, ids in _by_theme(found.recalls, is_here):
        run(connection, "forget/cut_recalls", theme=theme, ids=ids)
    for row in (row for row in found.stamps.values() if is_here(row.theme)):
        run(connection, STAMPS[row.letter], theme=row.theme, id=row.id, metadata=json.dumps(row.metadata))
    for letter in found.letters.values():
        name = "journal/drop_dead_letter" if letter.payload is None else "forget/set_letter"
        run(connection, name, **letter._asdict())
    for rule in sorted(found.reasons):
        run(connection, "forget/set_reason", id=rule)
    for each in named:
        if each.is_place and each.before is None and (each.theme or each.session_id):
            run(connection, "forget/close_rules", theme=each.theme, session_id=each.session_id)
    is_whole = all(each.is_place and each.before is None and each.authors is None for each in named)
    sessions = {(theme, session) for (theme, _), session in found.turns.items() if not (named and is_whole)}
    sessions |= {(row.theme, row.place) for row in found.stamps.values() if row.letter == "t"}
    mend(connection, {(theme, session): None for theme, session in sessions if is_here(theme)})


def _cut(connection: Connection, theme: str, target: Target, found: Findings, quotes: Callable[[str], bool]) -> None:
    gone = found.gone[theme, target]

    def is_told(text: str) -> bool:
        return quotes(text) or any(text.strip() in content for content in gone)

    events = history.of_theme(connection, theme, target)
    flatten.apply(connection, theme, flatten.without(events, gone, is_told, found.removals))


def _delete(connection: Connection, name: LiteralString, theme: str, ids: list[int], kind: Kind) -> None:
    run(connection, name, theme=theme, ids=ids)
    vectors.finish(connection, [(theme, kind.value, row_id) for row_id in ids])


def _by_theme(keys: Iterable[tuple[str, int]], is_here: Callable[[str], bool]) -> Iterator[tuple[str, list[int]]]:
    by_theme: dict[str, list[int]] = defaultdict(list)
    for theme, row_id in sorted(key for key in keys if is_here(key[0])):
        by_theme[theme].append(row_id)
    for theme, ids in by_theme.items():
        for start in range(0, len(ids), PORTION):
            yield theme, ids[start : start + PORTION]
