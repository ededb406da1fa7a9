"""Which database a home's journal belongs to, and how the operator says that it belongs to another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import data_folder, load

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.postgres.pool import Connection


def accept_configured(home: Path) -> bool:
    """The operator has just named a database in the settings: the journal goes there; False if it did before."""
    from hermes_memory_pgvector.store import installation

    where = installation.place(load(home).settings.dsn)
    return installation.accept(data_folder(home), home_id(home), where)


def accept_connected(home: Path, settings: Settings, connection: Connection) -> bool:
    """The operator means the database we are connected to: the journal goes there; False if it did before."""
    from hermes_memory_pgvector.store import installation

    found = installation.identify(connection)
    if found is None:
        return False
    folder, own = data_folder(home), home_id(home)
    before = installation.read(folder, own)
    installation.learn(folder, own, installation.place(settings.dsn), found)
    return before is not None and before.identity != found


def objection(home: Path, settings: Settings, connection: Connection) -> str:
    """Why this home's journal does not go to the database we are connected to; empty when it does."""
    from hermes_memory_pgvector.store import installation

    found = installation.identify(connection)
    known = installation.read(data_folder(home), home_id(home))
    return "" if found is None else installation.objection(known, installation.place(settings.dsn), found)
