"""Hidden rows: kept, and found by no search. Within the caller's transaction.

A row is hidden by one rule, a row of `hidden` that says who did it, when and why. A hidden row has neither vectors nor
lexemes, so no search has to know. A rule with bounds is open: it also hides what arrives later and lies within them,
which the statements that insert rows see to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.turns import mend
from hermes_memory_pgvector.values import Kind

Why = Literal["undone", "muted", "retracted"]
IMPORTED: Final = "import"
"""Who hid what was hidden where an import found it."""
MAX_REASON: Final = 500


class Key(NamedTuple):
    """What identifies a row."""

    kind: Kind
    theme: str
    id: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which rows a rule is about; whatever is given must all hold."""

    theme: str | None = None
    session_id: str | None = None
    origin: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def are_given(self) -> bool:
        """Whether they name rows at all: a theme or an end alone does not."""
        return self.session_id is not None or self.origin is not None or self.since is not None


EVERYTHING: Final = Bounds()


class SameWords(NamedTuple):
    """The rows of a theme that say what one of them says, that one first."""

    keys: tuple[Key, ...]
    is_hidden: bool
    """Whether that one is hidden already."""
    files: tuple[str, ...]
    """The targets in whose file a home has them."""


@dataclass(frozen=True, slots=True)
class Hiding:
    """A rule, and how much it hides."""

    id: int
    rule: Why
    actor: str
    reason: str
    bounds: Bounds
    is_open: bool
    """Whether it hides what arrives later as well."""
    at: datetime
    undone_at: datetime | None
    turns: int
    memories: int
    names: tuple[str, ...]
    """Some of its rows."""
    content: str | None
    """The words of the first."""


def add(
    connection: Connection,
    rule: Why,
    actor: str,
    *,
    reason: str = "",
    home_id: str = "",
    bounds: Bounds = EVERYTHING,
    is_open: bool | None = None,
    at: datetime | None = None,
) -> int:
    """Make a rule that hides nothing yet; return its number.

    A rule with bounds is open unless the caller says otherwise: in force for all who store after this transaction, for
    which the caller has the gate closed.
    """
    row = one(
        connection, "hidden/add", **asdict(bounds), rule=rule, actor=actor, reason=reason[:MAX_REASON], home_id=home_id,
        at=at, is_open=bounds.are_given if is_open is None else is_open,
    )  # fmt: skip
    return int(row[0])


def mute(
    connection: Connection, actor: str, reason: str, home_id: str, bounds: Bounds | None, keys: Collection[Key]
) -> list[int]:
    """Hide rows, and with bounds whatever lies within them; the rules, one for each bucket that it concerns."""
    layout, at = buckets.present(connection), datetime.now(UTC)
    numbers = []
    for bucket in buckets.within(connection):
        here = [key for key in keys if layout.of(key.theme) == bucket]
        is_about = bounds is not None and (bounds.theme is None or layout.of(bounds.theme) == bucket)
        if here or is_about:
            number = add(connection, "muted", actor, reason=reason, home_id=home_id, bounds=bounds or EVERYTHING, at=at)
            hide(connection, number, here)
            numbers.append(number)
    return numbers


def twins(connection: Connection, number: int) -> list[int]:
    """A rule, and those of other buckets that were made with it."""
    return [int(each) for (each,) in run(connection, "hidden/twins", id=number).fetchall()]


def hide(connection: Connection, number: int, keys: Collection[Key]) -> list[Key]:
    """Hide rows under a rule: they lose their vectors and lexemes. Return those that were not hidden before."""
    turns = _change(connection, "hidden/hide_turns", keys, Kind.TURN, rule=number)
    memories = _change(connection, "hidden/hide_memories", keys, Kind.MEMORY, rule=number)
    vectors.drop(connection, Kind.TURN, [row[:2] for row in turns])
    vectors.drop(connection, Kind.MEMORY, memories)
    hidden = [Key(Kind.TURN, *row[:2]) for row in turns] + [Key(Kind.MEMORY, *row) for row in memories]
    vectors.finish(connection, [(key.theme, key.kind.value, key.id) for key in hidden])
    # What follows a turn is found by its words, too: no longer.
    mend(connection, _sessions(turns))
    return hidden


def show(connection: Connection, keys: Collection[Key], *, wants_vectors: bool) -> list[Key]:
    """Let searches find rows again: by words at once, by meaning when they have their vectors.

    Return those that are found again; a row within the bounds of an open rule stays hidden, by that one.
    """
    turns = [row for row in _change(connection, "hidden/show_turns", keys, Kind.TURN) if row[-1]]
    memories = _change(connection, "hidden/show_memories", keys, Kind.MEMORY)
    mend(connection, _sessions(turns))
    shown = [Key(Kind.TURN, *row[:2]) for row in turns]
    shown += [Key(Kind.MEMORY, theme, row_id) for theme, row_id, is_shown in memories if is_shown]
    if wants_vectors:
        vectors.enqueue(connection, [(key.theme, key.kind.value, key.id) for key in shown])
    return shown


def end(connection: Connection, number: int, *, wants_vectors: bool) -> list[Key]:
    """Take a rule back: show what it hides, and hide nothing more by it. Return the rows that are found again."""
    run(connection, "hidden/end", id=number, at=datetime.now(UTC))
    return show(connection, by_rule(connection, number), wants_vectors=wants_vectors)


def same_words(connection: Connection, key: Key) -> SameWords:
    """The row of a theme, also by a name the theme had before, and the others of its kind that say the same."""
    name = "hidden/same_memories" if key.kind is Kind.MEMORY else "hidden/same_turns"
    rows = run(connection, name, theme=key.theme, id=key.id).fetchall()
    return SameWords(
        tuple(Key(key.kind, theme, row_id) for theme, row_id, _, _ in rows),
        bool(rows) and rows[0][2],
        tuple(sorted({target for *_, target in rows if target})),
    )


def by_rule(connection: Connection, number: int) -> list[Key]:
    """The rows that a rule hides."""
    return [Key(Kind(kind), theme, row_id) for kind, theme, row_id in run(connection, "hidden/by_rule", id=number)]


def within(connection: Connection, bounds: Bounds) -> dict[Key, bool]:
    """The rows within bounds, the newest first, and whether each is hidden already."""
    rows = run(connection, "hidden/within", **asdict(bounds))
    return {Key(Kind(kind), theme, row_id): is_hidden for kind, theme, row_id, is_hidden in rows}


def in_files(connection: Connection, keys: Collection[Key]) -> int:
    """How many of these memories stand in a home's MEMORY.md or USER.md, and so in the host's own prompt."""
    memories = [key for key in keys if key.kind is Kind.MEMORY]
    return int(one(connection, "hidden/in_files", **_columns(memories))[0])


def listed(
    connection: Connection, *, theme: str | None = None, before: int | None = None, limit: int = 1000
) -> list[Hiding]:
    """The rules in force, the newest first."""
    return _listed(connection, id=None, theme=theme, before=before, limit=limit)


def find(connection: Connection, number: int) -> Hiding | None:
    """One rule, also when it is over."""
    return next(iter(_listed(connection, id=number, theme=None, before=None, limit=1)), None)


def totals(connection: Connection) -> tuple[int, int]:
    """How many turns and memories are hidden."""
    counted: tuple[int, int] = one(connection, "hidden/totals")
    return counted


def bring(connection: Connection, brought: Sequence[tuple[Key, datetime]]) -> None:
    """Hide rows that were hidden where they come from, each since its time."""
    for at in sorted({at for _, at in brought}):
        row = one(connection, "hidden/imported", at=at, actor=IMPORTED)
        number = int(row[0]) if row else add(connection, "muted", IMPORTED, at=at)
        hide(connection, number, [key for key, since in brought if since == at])


def bounds_ending_now(bounds: Bounds) -> Bounds:
    """The same, without what is said from now on, except of a session: what is wrong there stands in its context."""
    if bounds.until is not None or bounds.session_id is not None:
        return bounds
    return replace(bounds, until=datetime.now(UTC))


def _listed(connection: Connection, **values: Any) -> list[Hiding]:
    return [
        Hiding(*(*row[:4], Bounds(*row[4:9]), *row[9:14], tuple(row[14] or ()), row[15]))
        for row in run(connection, "hidden/list", **values)
    ]


def _change(connection: Connection, name: str, keys: Collection[Key], kind: Kind, **values: Any) -> list[Any]:
    part = [key for key in keys if key.kind is kind]
    return run(connection, name, **_columns(part), **values).fetchall() if part else []


def _sessions(turns: Sequence[Any]) -> dict[tuple[str, str], list[int]]:
    """The sessions (theme, session id) of these turns, each with their ids."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for theme, row_id, session_id, *_ in turns:
        found[theme, session_id].append(row_id)
    return found


def _columns(keys: Collection[Key]) -> dict[str, Any]:
    return {"themes": [key.theme for key in keys], "ids": [key.id for key in keys]}
