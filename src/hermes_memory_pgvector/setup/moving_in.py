"""Brings the memories of a profile's own embedded server into the root home's, which the profile uses from then on.

The rows travel as `export` writes them, and what is there already is not stored twice. The old data is kept aside in
the profile's folder until somebody deletes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import journal_database, parts

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.transfer.tally import Tally

START_SECONDS = 60.0
STOP_SECONDS = 60.0
READ_SECONDS = 24 * 3600.0
CONNECT_SECONDS = 30.0


def move_in(home: Path, progress: Callable[[int], None]) -> Tally:
    """Move a profile's rows; whoever fails or is killed leaves the profile its own server, as it was.

    Nobody else can start or stop that server meanwhile. Its data is set aside only when all of it has arrived.
    """
    from hermes_memory_pgvector.server.folder import MOVING_PREFIX
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    own = EmbeddedPostgres(data_folder(home))
    _check_unused(home)
    own.ensure_running(Deadline.after(START_SECONDS))
    with own.folder.exclusive(Deadline.after(STOP_SECONDS)):
        _check_unused(home)
        own.folder.clear_moving()
        with tempfile.TemporaryDirectory(dir=own.folder.path, prefix=MOVING_PREFIX) as folder:
            file = Path(folder) / "memory.jsonl"
            _export(home, file)
            tally = _import(root_of(home), load(home).settings, file, progress)
        _check_unused(home)
        own.retire(Deadline.after(STOP_SECONDS))
    settings = load(home).settings
    with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as connection:
        journal_database.accept_connected(home, settings, connection)
    return tally


def _check_unused(home: Path) -> None:
    from hermes_memory_pgvector.engine import status_file

    users = [f"{each.command} {each.pid}" for each in status_file.read_all(data_folder(home))]
    if users:
        raise ConfigError(f"{', '.join(users)} uses profile {home.name}; stop it first, then run this again")


def _export(home: Path, file: Path) -> None:
    from hermes_memory_pgvector.store import schema, taking_along
    from hermes_memory_pgvector.store.taking_along import Selection
    from hermes_memory_pgvector.transfer import export, line_file

    with (
        parts.open_pool(home, load(home).settings) as pool,
        taking_along.snapshot(pool, Deadline.after(READ_SECONDS)) as connection,
        line_file.writing(str(file)) as out,
    ):
        version = schema.verify(connection).version
        everything = Selection(None, None, None, None)
        for document in export.documents(connection, everything, schema=version, model=None, is_redacted=False):
            out.write(line_file.encoded(document))


def _import(root: Path, settings: Settings, file: Path, progress: Callable[[int], None]) -> Tally:
    from hermes_memory_pgvector.transfer import jsonl, line_file

    with parts.open_pool(root, load(root).settings) as pool, line_file.reading(str(file)) as stream:
        lines = line_file.documents(stream, str(file))
        return jsonl.import_lines(lines, pool, settings, name=str(file), is_dry=False, progress=progress)
