"""What everything that is stored passes, whoever brings it: other names of themes, and what was forgotten.

A writer comes in with others; whoever erases or renames has the gate closed for the length of a transaction. So nothing
is stored on the word of a look that was taken before. Where nothing was ever renamed or forgotten, this is two short
statements: one that waits, and one that reads what is so after the wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseRejected
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement
from hermes_memory_pgvector.store.tombstones import Tombstones, micros
from hermes_memory_pgvector.values import AddTurn, WriteItem

NO_PRIVILEGE = "42501"
NOT_GRANTED = "was not granted the theme"
"""Part of the reason of what is refused to a login; the records of a theme that is granted later are found by it."""
NAMED = 3

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
    login: str | None = None
    """The login, if it was granted single themes; None for the fleet's own."""
    may_write: bool = True

    def require(self, connection: Connection, themes: Iterable[str]) -> None:
        """Raise unless this login may write to these themes; one that may create themes gets those that are nobody's.

        A login that may only read waits for an operator. One theme that it was not granted must not hold up the others.
        """
        if self.login is None:
            return
        wanted = sorted(set(themes))
        if not self.may_write:
            raise DatabaseDenied(reads_only(self.login), sqlstate=NO_PRIVILEGE)
        row: Any = connection.execute(statement("gate/claim"), {"themes": wanted}).fetchone()
        if row[0]:
            raise DatabaseRejected(not_granted(self.login, row[0]), sqlstate=NO_PRIVILEGE)

    def renamed(self, item: _Item) -> _Item:
        """The item under the name its theme has now."""
        theme = self.aliases.get(item.theme)
        return item if theme is None else replace(item, theme=theme)

    def required(self, connection: Connection, item: _Item) -> _Item:
        """The item under the name its theme has now, if this login may write there.

        What takes something back, or judges it, is refused together with what it is about: stored alone it would find
        nothing, and what comes after a grant would stay as it was.
        """
        item = self.renamed(item)
        self.require(connection, [item.theme])
        return item

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
        self.require(connection, (self.renamed(item).theme for item in items))
        known = self.tombstones(connection, items)
        return [self.renamed(item) for item in items if not known.refuses(item)]

    def _may_be_forgotten(self, item: WriteItem) -> bool:
        if self.until is None:
            return False
        return item.when.wall_us <= micros(self.until) or (isinstance(item, AddTurn) and not item.is_dated)


def reads_only(login: str) -> str:
    """Why nothing is stored under a login that may only read."""
    return f'login "{login}" may only read; to let it write: hermes-pgvector grant {login} --themes THEMES'


def not_granted(login: str, themes: Sequence[str]) -> str:
    """Why a login may not write to themes."""
    named = ", ".join(map(repr, themes[:NAMED])) + (" and others" if len(themes) > NAMED else "")
    return (
        f'login "{login}" {NOT_GRANTED} {named}; to grant it, with those it has: '
        f"hermes-pgvector grant {login} --themes THEMES"
    )


@dataclass(frozen=True, slots=True)
class Rights:
    """What a login that was granted single themes may do with one theme."""

    login: str
    has_theme: bool
    may_write: bool
    may_create: bool


def rights(connection: Connection) -> Rights | None:
    """Those of this login over the theme that the transaction is about; None for the fleet's own login."""
    row: Any = connection.execute(statement("gate/rights")).fetchone()
    return None if row is None else Rights(*row)


def enter(connection: Connection) -> Gate:
    """Come in; waits while somebody erases or renames."""
    connection.execute(statement("gate/enter"))
    return look(connection)


def look(connection: Connection) -> Gate:
    """What is so at this moment, for somebody who stores nothing."""
    row: Any = connection.execute(statement("gate/open")).fetchone()
    aliases, keys, until, parts_until, login, may_write = row
    return Gate(
        aliases or {},
        () if until is None else tuple(map(bytes, keys)),
        until,
        parts_until,
        login,
        login is None or bool(may_write),
    )


def close(connection: Connection) -> None:
    """Wait for those inside, and keep everybody out until the transaction ends."""
    connection.execute(statement("gate/close"))
