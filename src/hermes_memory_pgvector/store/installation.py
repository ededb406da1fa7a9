"""Which database the journal of a home belongs to.

A home learns it from the first database it reaches, keeps it in a file beside the journal, and compares every database
it reaches later. A different one gets nothing until the operator accepts it. The embedded server is known by its
installation's id alone: its folder leads to no other. For an operator's own Postgres the server's identifier and the
database's name count too, which tells a copy from its original.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import ConfigError, Held
from hermes_memory_pgvector.postgres.conninfo import place_of
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one

FILE_NAME = "database.json"
EMBEDDED = "the embedded server"
REMEDY = "if that is meant: hermes-pgvector up"


@dataclass(frozen=True, slots=True)
class DatabaseIdentity:
    """What tells one database from another."""

    installation: str
    """The random id that `migrate` has given it."""
    database: str
    server: str = ""
    """The server's own identifier; empty where the role may not read it."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """Where a home's journal goes."""

    home_id: str
    place: str
    """In words, without a login."""
    identity: DatabaseIdentity
    accepted: str = ""
    """The place that the operator has named since; its identity is learned when it is reached."""


def place(dsn: str) -> str:
    """Where a connection string leads, in words; an empty one means the embedded server."""
    if not dsn:
        return EMBEDDED
    try:
        return place_of(dsn)
    except ConfigError:
        return "a database that cannot be named"


def identify(connection: Connection) -> DatabaseIdentity | None:
    """Who answers; None when the database cannot say it yet."""
    can_tell, database, may_ask_server = one(connection, "schema/installation_state")
    row = one(connection, "schema/installation_id") if can_tell else None
    if row is None:
        return None
    return DatabaseIdentity(row[0], database, one(connection, "schema/server_identifier")[0] if may_ask_server else "")


def read(folder: Path, home_id: str) -> Belonging | None:
    """What is known; None for a home that has never reached a database, also when its files are another home's copy."""
    seen = files.look(folder / FILE_NAME)
    if seen.signature is None or seen.problem:
        return None
    try:
        raw = json.loads(seen.data)
        # A newer version may have noted more.
        known = raw["identity"]
        identity = DatabaseIdentity(known["installation"], known["database"], known["server"])
        found = Belonging(str(raw["home_id"]), str(raw["place"]), identity, str(raw["accepted"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if found.home_id == home_id else None


def accept(folder: Path, home_id: str, where: str) -> bool:
    """The operator has named this place: whoever is found there first is the one; False when nothing changes."""
    known = read(folder, home_id)
    if known is None or known.accepted == where or (known.place == where and not known.accepted):
        return False
    return _write(folder, Belonging(home_id, known.place, known.identity, where))


def learn(folder: Path, home_id: str, where: str, identity: DatabaseIdentity) -> bool:
    """This database is the one from now on."""
    return _write(folder, Belonging(home_id, where, identity))


def objection(known: Belonging | None, where: str, found: DatabaseIdentity) -> str:
    """Why this database must not get what the journal holds; empty when it may."""
    if known is None or known.accepted == where or _is_same(known, where, found):
        return ""
    if known.place == where:
        return (
            f'the journal belongs to database "{known.identity.database}" ({known.place}), '
            f"but another one answers there: it was made anew, or is a copy; {REMEDY}"
        )
    return (
        f'the journal belongs to database "{known.identity.database}" ({known.place}), '
        f'but the settings lead to "{found.database}" ({where}); {REMEDY}'
    )


class DatabaseGuard:
    """Keeps a process away from a database that its journal does not belong to."""

    def __init__(self, folder: Path, home_id: str, dsn: str, *, is_named: bool) -> None:
        self._folder = folder
        self._home_id = home_id
        self._place = place(dsn)
        self._is_named = is_named
        """Whether the operator has named this place where the host's form keeps it, out of our sight."""

    def before_start(self, *, has_data: bool) -> None:
        """Whether the embedded server may be started, or even made: not in the place of another database."""
        known = read(self._folder, self._home_id)
        if known is None or known.accepted == EMBEDDED:
            return
        if known.place != EMBEDDED:
            raise Held(
                f'the journal belongs to database "{known.identity.database}" ({known.place}), '
                f"but the settings name none, which means {EMBEDDED}; {REMEDY}"
            )
        if not has_data:
            raise Held(
                f"the embedded database that the journal belongs to is gone from {self._folder}; put it back, "
                "or begin with an empty one: hermes-pgvector up"
            )

    def admit(self, connection: Connection) -> None:
        """Raise Held unless this is the database the journal belongs to; the first one becomes it."""
        found = identify(connection)
        if found is None:
            return
        known = read(self._folder, self._home_id)
        reason = objection(known, self._place, found)
        if reason and not (self._is_named and known is not None and known.place != self._place):
            raise Held(reason)
        if known is None or reason or known.accepted == self._place or not _is_same(known, self._place, found):
            learn(self._folder, self._home_id, self._place, found)


def _is_same(known: Belonging, where: str, found: DatabaseIdentity) -> bool:
    before = known.identity
    if before.installation != found.installation:
        return False
    if known.place == where == EMBEDDED:
        return True
    # A promoted standby has the identifier of its primary, a restored dump has another one.
    servers = {before.server, found.server} - {""}
    return before.database == found.database and len(servers) <= 1


def _write(folder: Path, record: Belonging) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return files.replace(folder / FILE_NAME, json.dumps(asdict(record), indent=1).encode("utf-8"))
    except OSError:
        return False
