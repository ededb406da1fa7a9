"""What everything that is stored passes, whoever brings it: other names of themes, and what was forgotten.

A writer comes in with others; whoever erases or renames has the gate closed for the length of a transaction. So nothing
is stored on the word of a look that was taken before. Where nothing was ever renamed or forgotten, this is two short
statements: one that waits, and one that reads what is so after the wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from hermes_memory_pgvector.errors import Held
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.store.schema import not_in_use
from hermes_memory_pgvector.store.tombstones import Tombstones, micros
from hermes_memory_pgvector.values import AddTurn, WriteItem

_Item = TypeVar("_Item", bound=WriteItem)


@dataclass(frozen=True, slots=True)
class Gate:
    """Open for the length of a transaction."""

    aliases: Mapping[str, str]
    keys: tuple[bytes, ...] = ()
    """The keys of the tombstones; none when there are no tombstones."""
    until: datetime | None = None
    """What was said later than this nobody has forgotten."""
    parts_until: datetime | None = None
    """The same for texts that are forgotten as parts of others."""
    moved_to: str | None = None
    """Where the installation moves to, or has moved; None while it is here."""

    def renamed(self, item: _Item) -> _Item:
        """The item under the name its theme has now."""
        theme = self.aliases.get(item.theme)
        return item if theme is None else replace(item, theme=theme)

    def tombstones(self, connection: Connection, items: Sequence[WriteItem]) -> Tombstones:
        """What was forgotten of these items, which have the names they were said under."""
        late = [item for item in items if self._may_be_forgotten(item)]
        if not self.keys or not late:
            return Tombstones(aliases=self.aliases)
        return Tombstones.concerning(connection, self.keys, late, self.aliases, self.parts_until)

    def admitted(self, connection: Connection, items: Sequence[_Item]) -> list[_Item]:
        """The items that may be stored, under the names their themes have now.

        They come with the names they were said under: what was forgotten under that name stays forgotten, and so do
        words that were forgotten under any name of the theme.
        """
        known = self.tombstones(connection, items)
        return [self.renamed(item) for item in items if not known.refuses(item)]

    def _may_be_forgotten(self, item: WriteItem) -> bool:
        if self.until is None:
            return False
        return item.when.wall_us <= micros(self.until) or (isinstance(item, AddTurn) and not item.is_dated)


def enter(connection: Connection) -> Gate:
    """Come in; waits while somebody erases or renames. Held where the installation has moved, or just moves."""
    connection.execute(statement("gate/enter"))
    opened = look(connection)
    if opened.moved_to is not None:
        raise Held(not_in_use(opened.moved_to))
    return opened


def look(connection: Connection) -> Gate:
    """What is so at this moment, for somebody who stores nothing."""
    row: Any = connection.execute(statement("gate/open")).fetchone()
    aliases, keys, until, parts_until, moved_to = row
    return Gate(aliases or {}, () if until is None else tuple(map(bytes, keys)), until, parts_until, moved_to)


def close(connection: Connection) -> None:
    """Wait for those inside, and keep everybody out until the transaction ends. Held as in `enter`."""
    connection.execute(statement("gate/close"))
    moved_to = look(connection).moved_to
    if moved_to is not None:
        raise Held(not_in_use(moved_to))
