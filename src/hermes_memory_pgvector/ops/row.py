"""One memory or turn by the name that people use for it: m12 is a memory, t34 a turn."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.ops import known_themes
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import browse, hidden, history
from hermes_memory_pgvector.store.browse import StoredMemory, StoredTurn
from hermes_memory_pgvector.store.hidden import Hiding
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.values import Kind

_LETTERS = {Kind.MEMORY: "m", Kind.TURN: "t"}
_NOUNS = {"m": "memory", "t": "turn"}


class AmbiguousName(CareError):
    """A number that a memory and a turn both have."""


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is known of one memory or turn."""

    row: StoredMemory | StoredTurn
    model: str | None
    """The model in use, if there is one."""
    vectors: int
    """How many vectors of that model it has."""
    history: tuple[Event, ...]
    """What happened to a memory, oldest first; a turn has none."""
    hiding: Hiding | None = None
    """What hides it."""

    @property
    def name(self) -> str:
        """How people name it."""
        return name_of(Kind.MEMORY if isinstance(self.row, StoredMemory) else Kind.TURN, self.row.id)


def name_of(kind: Kind, row_id: int) -> str:
    """How a row is named."""
    return f"{_LETTERS[kind]}{row_id}"


def find(connection: Connection, name: RecordName, theme: str | None = None) -> StoredMemory | StoredTurn:
    """The row that a name means; without a letter it may be of either kind, but not of both."""
    if theme is not None:
        known_themes.require(connection, theme)
    memory = browse.find_memory(connection, name.number, theme) if name.letter in ("", "m") else None
    turn = browse.find_turn(connection, name.number, theme) if name.letter in ("", "t") else None
    if memory is not None and turn is not None:
        raise AmbiguousName(f"{name} may be memory m{name.number} or turn t{name.number}: say which")
    found = memory or turn
    if found is None:
        where = f" in theme {theme}" if theme is not None else ""
        noun = _NOUNS.get(name.letter, "row")
        raise CareError(f"there is no {noun} {name}{where}; it may have been deleted")
    return found


def show(connection: Connection, name: RecordName, theme: str | None = None) -> Shown:
    """Everything about one row."""
    row = find(connection, name, theme)
    model = current_model(connection)
    kind = Kind.MEMORY if isinstance(row, StoredMemory) else Kind.TURN
    vectors = 0 if model is None else browse.count_vectors(connection, model, kind, row.theme, row.id)
    told: tuple[Event, ...] = ()
    if isinstance(row, StoredMemory):
        events = history.of_theme(connection, row.theme, row.target)
        told = history.lineage(events, row.content)
    hiding = None if row.hidden_by is None else hidden.find(connection, row.hidden_by)
    return Shown(row, None if model is None else model.name, vectors, told, hiding)
