"""What everything that is stored passes, whoever brings it: other names of themes, and what was forgotten.

A writer comes in with others; whoever forgets or renames has the gate closed for the length of a transaction. So
nothing is stored on the word of a look that was taken before. Where nothing was ever renamed or forgotten, this is two
short statements: one that waits, and one that reads what is so after the wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from hermes_memory_pgvector.errors import Held
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import marks
from hermes_memory_pgvector.store.marks import Marker
from hermes_memory_pgvector.store.schema import not_in_use
from hermes_memory_pgvector.values import RemoveMemory, ReplaceMemory, WriteItem

_Item = TypeVar("_Item", bound=WriteItem)


@dataclass(frozen=True, slots=True)
class Gate:
    """Open for the length of a transaction."""

    aliases: Mapping[str, str]
    marker: Marker | None = None
    """None while nothing is forgotten."""
    until: datetime | None = None
    """What was said later than this nobody has forgotten."""
    moved_to: str | None = None
    """Where the installation moves to, or has moved; None while it is here."""

    def renamed(self, item: _Item) -> _Item:
        """The item under the name its theme has now."""
        theme = self.aliases.get(item.theme)
        return item if theme is None else replace(item, theme=theme)

    def refused(self, connection: Connection, items: Sequence[WriteItem]) -> list[bool]:
        """Which of these items were forgotten; they have the names they were said under."""
        wanted: list[tuple[bytes, ...]] = [()] * len(items)
        if self.marker is not None and self.until is not None:
            for place, item in enumerate(items):
                if marks.is_covered(item, self.until):
                    names = marks.names_of(item.theme, self.aliases)
                    wanted[place] = tuple(self.marker.of_item(item, names))
        known = marks.look_up(connection, {mark for told in wanted for mark in told}) if any(wanted) else {}
        return [
            any(mark in known and marks.is_covered(item, known[mark]) for mark in told)
            for item, told in zip(items, wanted, strict=True)
        ]

    def admitted(self, connection: Connection, items: Sequence[_Item]) -> list[_Item]:
        """The items that may be stored, under the names their themes have now; they come with those of their time."""
        refused = self.refused(connection, items)
        return [self.renamed(item) for item, is_refused in zip(items, refused, strict=True) if not is_refused]

    def may_quote(self, item: WriteItem) -> bool:
        """Whether an operation on memories is so old that it may quote what was forgotten after it."""
        return self.until is not None and isinstance(item, ReplaceMemory | RemoveMemory) and marks.is_covered(
            item, self.until
        )  # fmt: skip


def enter(connection: Connection) -> Gate:
    """Come in; waits while somebody forgets or renames. Held where the installation has moved, or just moves."""
    run(connection, "gate/enter")
    opened = look(connection)
    if opened.moved_to is not None:
        raise Held(not_in_use(opened.moved_to))
    return opened


def look(connection: Connection) -> Gate:
    """What is so at this moment, for somebody who stores nothing."""
    with connection.pipeline():
        found = [run(connection, name) for name in ("gate/open", "gate/installation")]
        rows: list[Any] = [each.fetchone() for each in found]
    (aliases, until), (key, moved_to) = rows
    return Gate(aliases or {}, None if until is None else Marker(bytes(key)), until, moved_to)


def close(connection: Connection) -> None:
    """Wait for those inside, and keep everybody out until the transaction ends. Held as in `enter`."""
    run(connection, "gate/close")
    moved_to = look(connection).moved_to
    if moved_to is not None:
        raise Held(not_in_use(moved_to))


def theme_names(connection: Connection) -> list[str]:
    """Every theme that holds rows, by name."""
    return [name for (name,) in run(connection, "browse/theme_names")]
