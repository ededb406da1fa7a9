"""How to connect to a home's database: the configured dsn, or the embedded server, started when somebody needs it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import Held, ServerError
from hermes_memory_pgvector.server.folder import has_data
from hermes_memory_pgvector.store.installation import DatabaseGuard

NO_DATABASE = "there is no database yet; run: hermes-pgvector up"


class Logins(NamedTuple):
    """Two connection strings of one database; a configured dsn is both."""

    owner: str
    runtime: str


def logins_of(
    folder: Path, settings: Settings, guard: DatabaseGuard, deadline: Deadline, *, may_create: bool
) -> Logins:
    """The logins in force.

    Raises Held when the settings or the journal do not let us use this database, and ServerError when the embedded
    server does not exist and `may_create` is false.
    """
    if settings.hold:
        raise Held(settings.hold)
    if settings.dsn:
        return Logins(settings.dsn, settings.dsn)
    exists = has_data(folder)
    guard.before_start(has_data=exists)
    if not exists and not may_create:
        raise ServerError(NO_DATABASE)
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    info = EmbeddedPostgres(folder).ensure_running(deadline)
    return Logins(info.owner_dsn, info.runtime_dsn)
