"""What everything that is stored passes, whoever brings it: other names of themes, and what was forgotten.

A writer comes in with others; whoever erases or renames has the gate closed for the length of a transaction. So nothing
is stored on the word of a look that was taken before. Where nothing was ever renamed or forgotten, this is two short
statements: one that waits, and one that reads what is so after the wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    key: bytes | None
    """The key of the tombstones; None when there are none."""

    def renamed(self, item: _Item) -> _Item:
        """The item under the name its theme has now."""
        theme = self.aliases.get(item.theme)
        return item if theme is None else replace(item, theme=theme)

    def admitted(self, connection: Connection, items: Sequence[_Item]) -> list[_Item]:
        """The items that may be stored, under the names their themes have now."""
        told = [self.renamed(item) for item in items] if self.aliases else list(items)
        if self.key is None or not told:
            return told
        # What was forgotten under the old name stays forgotten under the new one.
        known = Tombstones.concerning(connection, self.key, [*told, *(items if self.aliases else ())])
        return [new for new, old in zip(told, items, strict=True) if not (known.refuses(new) or known.refuses(old))]


def enter(connection: Connection) -> Gate:
    """Come in; waits while somebody erases or renames."""
    connection.execute(statement("gate/enter"))
    row: Any = connection.execute(statement("gate/open")).fetchone()
    return Gate(row[0] or {}, None if row[1] is None else bytes(row[1]))


def key_of(connection: Connection) -> bytes | None:
    """The key of the tombstones, for somebody who only looks; None when there are none."""
    row: Any = connection.execute(statement("gate/key")).fetchone()
    return None if row is None else bytes(row[0])


def close(connection: Connection) -> None:
    """Wait for those inside, and keep everybody out until the transaction ends."""
    connection.execute(statement("gate/close"))
