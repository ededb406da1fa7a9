"""Brings the memories of a profile's own embedded server into the root home's, which the profile uses from then on.

The rows travel as `export` writes them, and what is there already is not stored twice. The old data is kept aside in
the profile's folder until somebody deletes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import belonging as journal_database
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.journals import users_of

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.store.browse import Theme
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


@dataclass(frozen=True, slots=True)
class Moving:
    """What a move would bring, and which of its themes the shared database has, too."""

    brought: tuple[Theme, ...]
    there: tuple[Theme, ...]


def look(home: Path) -> Moving:
    """What a profile's own server holds, and what the shared database holds under the same names."""
    brought = themes_in(data_folder(home))
    names = {each.theme for each in brought}
    return Moving(brought, tuple(each for each in themes_in(data_folder(root_of(home))) if each.theme in names))


def themes_in(folder: Path) -> tuple[Theme, ...]:
    """The themes that an embedded server holds, whoever uses it."""
    return look_into(folder, ())[0]


def look_into(folder: Path, writers: Sequence[str]) -> tuple[tuple[Theme, ...], dict[str, int]]:
    """The themes that an embedded server holds, and how far journals have arrived there.

    A server that does not run is started for the question.
    """
    from hermes_memory_pgvector.care import themes
    from hermes_memory_pgvector.errors import SchemaError
    from hermes_memory_pgvector.server.folder import has_data
    from hermes_memory_pgvector.store import schema, watermarks

    if not has_data(folder):
        return (), {}
    deadline = Deadline.after(START_SECONDS)
    with embedded_pool(folder) as pool, pool.transaction(deadline) as connection:
        try:
            schema.readable_version(connection)
        except SchemaError:
            return (), {}
        return tuple(themes.overview(connection)), watermarks.read(connection, writers)


def bring(
    folder: Path, home: Path, theme: str | None, progress: Callable[[int], None] = lambda _: None, *, is_dry: bool
) -> Tally:
    """Bring what an embedded server holds, or one theme of it, into the database of a home; nothing is taken away."""
    from hermes_memory_pgvector.store import taking_along
    from hermes_memory_pgvector.transfer import jsonl, peer

    settings = load(home).settings
    with (
        embedded_pool(folder) as other,
        parts.open_pool(home, settings) as pool,
        taking_along.snapshot(other, Deadline.after(READ_SECONDS)) as connection,
    ):
        lines = peer.lines(connection, theme)
        return jsonl.import_lines(lines, pool, settings, name=str(folder), is_dry=is_dry, progress=progress)


@contextmanager
def embedded_pool(folder: Path) -> Iterator[Pool]:
    """Connections to the embedded server of a folder, whether or not anybody's settings lead there."""
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    server = EmbeddedPostgres(folder)
    was_running = server.status().running
    pool = Pool(
        lambda deadline: server.ensure_running(deadline).runtime_dsn, maximum=1, connect_seconds=CONNECT_SECONDS
    )
    try:
        yield pool
    finally:
        pool.close()
        if not was_running:
            server.stop(Deadline.after(STOP_SECONDS))


def _check_unused(home: Path) -> None:
    users = users_of(home)
    if users:
        raise ConfigError(f"{', '.join(users)} uses profile {home.name}; stop it first, then run this again")


def _export(home: Path, file: Path) -> None:
    from hermes_memory_pgvector.store import schema, taking_along
    from hermes_memory_pgvector.transfer import export, line_file

    with (
        parts.open_pool(home, load(home).settings) as pool,
        taking_along.snapshot(pool, Deadline.after(READ_SECONDS)) as connection,
        line_file.writing(str(file)) as out,
    ):
        version = schema.verify(connection).version
        rows = export.documents(connection, None, schema=version, model=None, with_forgotten=True)
        for document in rows:
            out.write(line_file.encoded(document))


def _import(root: Path, settings: Settings, file: Path, progress: Callable[[int], None]) -> Tally:
    from hermes_memory_pgvector.transfer import jsonl, line_file

    with parts.open_pool(root, load(root).settings) as pool, line_file.reading(str(file)) as stream:
        lines = line_file.documents(stream, str(file))
        return jsonl.import_lines(lines, pool, settings, name=str(file), is_dry=False, progress=progress)
