"""Start-up verifies and never changes: is this database ready for the runtime role?"""

from __future__ import annotations

from typing import NamedTuple

from hermes_memory_pgvector.errors import Held, SchemaError
from hermes_memory_pgvector.postgres.errors import MIGRATE_COMMAND
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one

SCHEMA_VERSION = 1
"""The version of sql/installation.sql and sql/base.sql."""
MINIMUM_PGVECTOR = (0, 8, 0)


class SchemaState(NamedTuple):
    """What the database says of itself."""

    version: int
    pgvector: str
    server: int
    role: str

    @property
    def news(self) -> str:
        """A sentence when a newer package has migrated the database; else empty."""
        if self.version <= SCHEMA_VERSION:
            return ""
        return (
            f"the schema is at version {self.version}, this package knows {SCHEMA_VERSION}:"
            " it goes on storing, and recall may fail until the package is upgraded and its processes are started anew"
        )


def not_in_use(moved_to: str) -> str:
    """Why nothing may be stored in a database whose installation moves, or has moved."""
    return (
        f"the memories have moved from this database to {moved_to}, or are on their way; to finish that, or to follow: "
        "hermes-pgvector promote --to DSN, or, for a profile whose root home has followed, hermes-pgvector up"
    )


def verify(connection: Connection) -> SchemaState:
    """The state of the schema; SchemaError with the command to run when it does not fit.

    Held when the database is no longer in use.
    """
    if one(connection, "schema/ledger")[0] is None:
        raise SchemaError(_missing(connection))
    version, pgvector, may_write, server, role, keeps_together = one(connection, "schema/state")
    if (version or 0) < SCHEMA_VERSION:
        raise SchemaError(
            f"the schema is at version {version or 0}, {SCHEMA_VERSION} is needed; run: {MIGRATE_COMMAND}"
        )
    _, moved_to = one(connection, "gate/installation")
    if moved_to is not None:
        raise Held(not_in_use(moved_to))
    if pgvector is None or not is_recent(pgvector):
        wanted = ".".join(map(str, MINIMUM_PGVECTOR))
        raise SchemaError(f"pgvector {pgvector or 'is missing'}, {wanted} or newer is needed; run: {MIGRATE_COMMAND}")
    if not keeps_together:
        raise SchemaError(
            f'role "{role}" works with session_replication_role = replica, so vectors would outlive their rows; a '
            "superuser resets it with ALTER ROLE or ALTER DATABASE, wherever it was set"
        )
    if not may_write:
        raise SchemaError(f'role "{role}" may not write; run: {MIGRATE_COMMAND} --runtime-role {role}')
    return SchemaState(version, pgvector, server, role)


def _missing(connection: Connection) -> str:
    """What to do where the role sees no schema of ours: there may be one that its search_path does not lead to."""
    found = one(connection, "schema/elsewhere")
    if found is None:
        return f"the database has no schema of ours yet; run: {MIGRATE_COMMAND}"
    place, role, path = found
    return (
        f'our tables are in the schema "{place}", where the search_path of role "{role}" ({path}) does not lead; '
        f"reset it with ALTER ROLE, or, for tables in another schema, run: {MIGRATE_COMMAND}"
    )


def is_recent(version: str, wanted: tuple[int, ...] = MINIMUM_PGVECTOR) -> bool:
    """Whether a pgvector version is new enough."""
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit()) >= wanted
