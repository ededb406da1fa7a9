"""Brings the memories of a profile's own embedded server into the root home's, which the profile uses from then on.

The rows travel as `export` writes them, and what is there already is not stored twice. The old data is kept aside in
the profile's folder until somebody deletes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import journal_database, parts

if TYPE_CHECKING:
    from hermes_memory_pgvector.transfer.tally import Tally

STOP_SECONDS = 60.0
READ_SECONDS = 24 * 3600.0
CONNECT_SECONDS = 30.0


def move_in(home: Path, progress: Callable[[int], None]) -> Tally:
    """Move a profile's rows; on any failure the profile keeps its own server, as it was."""
    from hermes_memory_pgvector.engine import status_file
    from hermes_memory_pgvector.server.folder import PostgresFolder
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    users = [f"{each.command} {each.pid}" for each in status_file.read_all(data_folder(home))]
    if users:
        raise ConfigError(f"{', '.join(users)} uses profile {home.name}; stop it first, nothing was moved")
    own = PostgresFolder(data_folder(home))
    with tempfile.TemporaryDirectory(dir=own.path, prefix=".moving-") as folder:
        file = Path(folder) / "memory.jsonl"
        _export(home, file)
        EmbeddedPostgres(own.path).stop(Deadline.after(STOP_SECONDS))
        put_back = own.set_data_aside()
        try:
            tally = _import(home, file, progress)
        except BaseException:
            put_back()
            raise
    settings = load(home).settings
    with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as connection:
        journal_database.accept_connected(home, settings, connection)
    return tally


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


def _import(home: Path, file: Path, progress: Callable[[int], None]) -> Tally:
    from hermes_memory_pgvector.transfer import jsonl, line_file

    settings = load(home).settings
    with parts.open_pool(home, settings) as pool, line_file.reading(str(file)) as stream:
        lines = line_file.documents(stream, str(file))
        return jsonl.import_lines(lines, pool, settings, name=str(file), is_dry=False, progress=progress)
