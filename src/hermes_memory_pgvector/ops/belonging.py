"""Which database a home's journal belongs to, which homes share it, and how the operator names another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.home import ID_NAME, home_id, homes_of
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


def sharing(home: Path, *, only_used: bool = True) -> list[Path]:
    """This home, and those beside it whose journals go to the same database; `only_used`: in which agents have run."""
    own = _installation(home)

    def is_beside(each: Path) -> bool:
        known = _installation(each)
        if known and own:
            return known == own
        # One whose backup was put back learns its database when it reaches it; till then its settings say which.
        is_certain = not any(load(one).settings.hold for one in (home, each))
        is_used = (data_folder(each) / ID_NAME).is_file()
        return (is_used or not only_used) and is_certain and database_of(each) == database_of(home)

    return [home, *(each for each in homes_of(home) if each != home and is_beside(each))]


def _installation(home: Path) -> str:
    from hermes_memory_pgvector.store import installation

    folder = data_folder(home)
    if not (folder / ID_NAME).is_file():
        return ""
    known = installation.read(folder, home_id(home))
    return "" if known is None else known.identity.installation


def database_of(home: Path) -> tuple[str, Path | None]:
    """Where the settings of a home lead: equal for homes that use the same database."""
    from hermes_memory_pgvector.ops import parts
    from hermes_memory_pgvector.store import installation

    settings = load(home).settings
    return installation.place(settings.dsn), None if settings.dsn else parts.server_folder(home, settings)
