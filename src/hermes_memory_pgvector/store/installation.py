"""Which database the journal of a home belongs to.

A home learns it from the first database it reaches, keeps it in a file beside the journal, and compares every database
it reaches later. A different one gets nothing until the operator accepts it. The embedded server is known by its
installation's id alone: its folder leads to no other. For an operator's own Postgres the server's identifier and the
database's name count too, which tells a copy from its original.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import ConfigError, FormerPrimary, Held
from hermes_memory_pgvector.store.conninfo import place_of
from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement

FILE_NAME = "database.json"
EMBEDDED = "the embedded server"
REMEDY = "if that is meant: hermes-pgvector journal accept-database"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one database from another."""

    installation: str
    """The random id that `migrate` has given it."""
    database: str
    server: str = ""
    """The server's own identifier; empty where the role may not read it."""
    timeline: int = 0
    """Which of its promotions the server was made by; 0 where it does not say."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """Where a home's journal goes."""

    home_id: str
    place: str
    """In words, without a login."""
    identity: Identity | None
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


def identify(connection: Connection) -> Identity | None:
    """Who answers; None when the database cannot say it yet."""
    state: Any = connection.execute(statement("schema/installation_state")).fetchone()
    can_tell, database, may_ask_server = state
    if not can_tell:
        return None
    row: Any = connection.execute(statement("schema/installation_id")).fetchone()
    if row is None:
        return None
    server: Any = connection.execute(statement("schema/server_identifier")).fetchone() if may_ask_server else None
    return Identity(str(row[0]), str(database), str(server[0]) if server else "")


def timeline_of(connection: Connection) -> int:
    """The timeline that a server writes; 0 where it does not say. The connection must not be in a transaction."""
    try:
        row: Any = connection.execute(statement("schema/timeline")).fetchone()
    except psycopg.Error:
        # Some managed services have no such log.
        return 0
    return int(row[0])


def read(folder: Path, home_id: str) -> Belonging | None:
    """What is known; None for a home that has never reached a database, also when its files are another home's copy."""
    seen = files.look(folder / FILE_NAME)
    if seen.signature is None or seen.problem:
        return None
    try:
        raw = json.loads(seen.data)
        known = raw["identity"]
        identity = (
            None
            if known is None
            else Identity(known["installation"], known["database"], known["server"], int(known.get("timeline", 0)))
        )
        found = Belonging(str(raw["home_id"]), str(raw["place"]), identity, str(raw["accepted"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if found.home_id == home_id else None


def accept(folder: Path, home_id: str, where: str, *, anew: bool = False) -> bool:
    """The operator has named this place: whoever is found there first is the one; False when nothing changes.

    `anew` says that another database will answer in the same place.
    """
    known = read(folder, home_id)
    if known is None or known.accepted == where or (known.place == where and not known.accepted and not anew):
        return False
    return _write(folder, Belonging(home_id, known.place, known.identity, where))


def learn(folder: Path, home_id: str, where: str, identity: Identity) -> bool:
    """This database is the one from now on."""
    return _write(folder, Belonging(home_id, where, identity))


def objection(known: Belonging | None, where: str, found: Identity) -> str:
    """Why this database must not get what the journal holds; empty when it may."""
    if known is None or known.identity is None or known.accepted == where or _is_same(known, where, found):
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
        if known is None or known.identity is None or known.accepted == EMBEDDED:
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
        if self._place != EMBEDDED:
            found = replace(found, timeline=timeline_of(connection))
            if known is not None and known.accepted != self._place and _is_left_behind(known, self._place, found):
                raise FormerPrimary(
                    f"a former primary answers at {connection.info.host}:{connection.info.port}: another server has "
                    f"been promoted since, so what was stored here would be lost; stop it, or {REMEDY}"
                )
        reason = objection(known, self._place, found)
        if reason and not (self._is_named and known is not None and known.place != self._place):
            raise Held(reason)
        if (
            known is None
            or reason
            or known.accepted == self._place
            or not _is_same(known, self._place, found)
            or (known.identity is not None and found.timeline > known.identity.timeline)
        ):
            learn(self._folder, self._home_id, self._place, found)

    def admit_replica(self, connection: Connection) -> None:
        """Raise Held unless this is a replica of the database the journal belongs to."""
        require_replica(connection, read(self._folder, self._home_id))


def require_replica(connection: Connection, known: Belonging | None) -> None:
    """Raise Held unless a replica of the known database answers: another fleet's memories are not to be read."""
    found = identify(connection)
    if known is None or known.identity is None:
        raise Held("it is not known yet which database dsn leads to")
    if found is None or not _is_replicated(known.identity, found):
        raise Held("read_dsn leads to another database than dsn, or to one that is not kept up to date")


def _is_same(known: Belonging, where: str, found: Identity) -> bool:
    before = known.identity
    if before is None or before.installation != found.installation:
        return False
    return known.place == where == EMBEDDED or _is_replicated(before, found)


def _is_replicated(before: Identity, found: Identity) -> bool:
    """Whether both are one database: a server's replicas have its identifier, a restored dump has another one."""
    servers = {before.server, found.server} - {""}
    return before.installation == found.installation and before.database == found.database and len(servers) <= 1


def _is_left_behind(known: Belonging, where: str, found: Identity) -> bool:
    """Whether this is the database that is known, as it was before another server was promoted in its place."""
    before = known.identity
    return before is not None and 0 < found.timeline < before.timeline and _is_same(known, where, found)


def _write(folder: Path, record: Belonging) -> bool:
    document: Mapping[str, Any] = asdict(record)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return files.replace(folder / FILE_NAME, json.dumps(document, indent=1).encode("utf-8"))
    except OSError:
        return False
