"""What everything that is stored passes, whoever brings it: other names of themes, and what was forgotten.

A writer comes in with others; whoever erases or renames has the gate closed for the length of a transaction. So nothing
is stored on the word of a look that was taken before. Where nothing was ever renamed or forgotten, this is two short
statements: one that waits, and one that reads what is so after the wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.store.tombstones import Tombstones
from hermes_memory_pgvector.values import WriteItem

_Item = TypeVar("_Item", bound=WriteItem)


@dataclass(frozen=True, slots=True)
class Gate:
    """Open for the length of a transaction."""

    aliases: Mapping[str, str]
    keys: tuple[bytes, ...]
    """The keys of the tombstones; none when there are no tombstones."""

    def renamed(self, item: _Item) -> _Item:
        """The item under the name its theme has now."""
        theme = self.aliases.get(item.theme)
        return item if theme is None else replace(item, theme=theme)

    def admitted(
        self, connection: Connection, items: Sequence[_Item], *, undated: Collection[int] | None = None
    ) -> list[_Item]:
        """The items that may be stored, under the names their themes have now.

        `undated` are the places of items of which nobody knows when they were said; None where each says it itself.
        """
        told = [self.renamed(item) for item in items] if self.aliases else list(items)
        if not self.keys or not told:
            return told
        # What was forgotten under the old name stays forgotten under the new one.
        known = Tombstones.concerning(connection, self.keys, [*told, *(items if self.aliases else ())])

        def is_refused(place: int, item: WriteItem) -> bool:
            return known.refuses(item, is_dated=undated is not None and place not in undated)

        both = enumerate(zip(told, items, strict=True))
        return [new for place, (new, old) in both if not (is_refused(place, new) or is_refused(place, old))]


def enter(connection: Connection) -> Gate:
    """Come in; waits while somebody erases or renames."""
    connection.execute(statement("gate/enter"))
    row: Any = connection.execute(statement("gate/open")).fetchone()
    return Gate(row[0] or {}, tuple(map(bytes, row[1] or ())))


def keys_of(connection: Connection) -> tuple[bytes, ...]:
    """The keys of the tombstones, for somebody who only looks; none when there are no tombstones."""
    rows: list[Any] = connection.execute(statement("gate/keys")).fetchall()
    return tuple(bytes(key) for (key,) in rows)


def close(connection: Connection) -> None:
    """Wait for those inside, and keep everybody out until the transaction ends."""
    connection.execute(statement("gate/close"))
