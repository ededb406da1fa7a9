"""Makes a backup of the embedded servers of a hermes installation, with the journals of all its homes.

The journals are copied first: what was acknowledged before is in them, or in the database already. Then comes the dump,
in one snapshot with the sums it is compared by; it knows which of those records it holds, so none is stored twice when
they are delivered again. At last the journals are copied once more, with what was said meanwhile.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.config.home import ID_NAME, homes_of, root_of
from hermes_memory_pgvector.config.settings import DECLARATIONS, plain
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import archive, parts
from hermes_memory_pgvector.setup.archive import HomeCopy, Manifest, Member, ServerCopy

START_SECONDS = 120.0
DUMP_SECONDS = 24 * 3600.0
SINGLE_FILES = (ID_NAME, "identity.key")
FOLDERS = ("journal", "refused")
LOCK_SUFFIX = ".lock"


def make(home: Path, target: Path, said: Callable[[str], None] = lambda _: None) -> Manifest:
    """Write a backup of all homes of an installation; ConfigError when none of them has an embedded server."""
    root = root_of(home)
    homes, left_out = _embedded_homes(root)
    if not homes:
        raise ConfigError(outside(root))
    with _staging(target) as staged:
        said("journals")
        for each in homes:
            _copy_files(each, root, staged)
        servers = []
        for number, folder in enumerate(dict.fromkeys(homes.values())):
            said(f"database in {folder}")
            servers.append(_dump(folder, root, staged, number))
        said("journals")
        copies = tuple(_home_copy(each, homes[each], root, staged) for each in homes)
        manifest = Manifest(
            datetime.now(UTC).isoformat(), __version__, _schema_version(), tuple(servers), copies, left_out
        )
        said("writing")
        archive.write(target, staged, manifest)
    return archive.check(target)


def verify(path: Path, said: Callable[[str], None] = lambda _: None) -> list[str]:
    """Restore every database of a backup into a temporary server and compare; where they differ, in words."""
    from hermes_memory_pgvector.server.server import EmbeddedPostgres
    from hermes_memory_pgvector.store import sums

    found = []
    with _staging(path) as folder:
        manifest = archive.extract(path, folder / "archive")
        for number, each in enumerate(manifest.servers):
            said(f"restoring the database of {each.home} into a temporary server")
            server = EmbeddedPostgres(folder / f"server-{number}")
            try:
                server.replace_data(folder / "archive" / each.dump.name, Deadline.after(DUMP_SECONDS))
                info = server.ensure_running(Deadline.after(START_SECONDS))
                with _connected(info.owner_dsn) as connection:
                    there = sums.of(connection)
            finally:
                server.stop(Deadline.after(START_SECONDS), mode="immediate")
            found += [f"{each.home}: {where}" for where in sums.differences(each.sums, there)]
    return found


def outside(home: Path) -> str:
    """Why there is nothing for us to back up, and what to run instead."""
    from hermes_memory_pgvector.postgres.conninfo import split_password

    settings = load(home).settings
    if settings.dsn:
        bare, _ = split_password(settings.dsn)
        return (
            f"the memory is in a Postgres of your own ({parts.describe_database(home, settings)}); back it up with: "
            f"pg_dump --format=custom --file=memory.dump '{bare}' as the owner of the tables"
        )
    return f"there is no embedded server in {home} yet; run: hermes-pgvector up"


def _embedded_homes(root: Path) -> tuple[dict[Path, Path], dict[str, str]]:
    """The homes that use an embedded server, each with that server's folder; and the others with their database."""
    homes: dict[Path, Path] = {}
    left_out: dict[str, str] = {}
    for each in homes_of(root):
        settings = load(each).settings
        if settings.dsn or settings.hold:
            left_out[_relative(each, root)] = settings.hold or parts.describe_database(each, settings)
        elif parts.has_embedded_data(each, settings) and data_folder(each).is_dir():
            homes[each] = parts.server_folder(each, settings)
    return homes, left_out


def _copy_files(home: Path, root: Path, staged: Path) -> None:
    """Copy a home's small files and journals; a file that was copied before is replaced if it is still there."""
    target = staged / "homes" / _relative(home, root)
    target.mkdir(parents=True, exist_ok=True)
    folder = data_folder(home)
    wanted = [Path(name) for name in SINGLE_FILES]
    for each in FOLDERS:
        if (folder / each).is_dir():
            wanted += [Path(each) / one.name for one in sorted((folder / each).iterdir())]
    for name in wanted:
        source = folder / name
        if source.suffix == LOCK_SUFFIX or source.name.startswith(".") or not source.is_file() or source.is_symlink():
            continue
        (target / name).parent.mkdir(exist_ok=True)
        draft = target / name.parent / f".copy-{name.name}"
        try:
            shutil.copy2(source, draft)
        except FileNotFoundError:
            # It was drained long ago and has just gone: what it held is in the database.
            continue
        draft.replace(target / name)


def _home_copy(home: Path, folder: Path, root: Path, staged: Path) -> HomeCopy:
    _copy_files(home, root, staged)
    name = _relative(home, root)
    place = staged / "homes" / name
    found = [each for each in sorted(place.rglob("*")) if each.is_file() and not _is_within(each, place, staged, root)]
    members = tuple(_member(each, staged) for each in found)
    return HomeCopy(name, _relative(folder.parent, root), members, _settings(home))


def _is_within(file: Path, place: Path, staged: Path, root: Path) -> bool:
    """Whether a file below the root home's copy belongs to a profile."""
    return place == staged / "homes" / _relative(root, root) and "profiles" in file.relative_to(place).parts[:1]


def _settings(home: Path) -> dict[str, Any]:
    settings = load(home).settings
    layers = tuple(f"{layer}.{PROVIDER_NAME}" for layer in ("memory", "plugins"))
    return {
        name: plain(getattr(settings, name))
        for name, layer in settings.set_by.items()
        if layer in layers and name != "dsn" and not DECLARATIONS[name].secret
    }


def _dump(folder: Path, root: Path, staged: Path, number: int) -> ServerCopy:
    from hermes_memory_pgvector.server.dump import dump_database, running
    from hermes_memory_pgvector.store import sums

    path = staged / "servers" / f"{number}.dump"
    path.parent.mkdir(exist_ok=True)
    with (
        running(folder, Deadline.after(START_SECONDS)) as info,
        _connected(info.owner_dsn) as connection,
        sums.exported_snapshot(connection) as snapshot,
    ):
        dump_database(folder, info, path, Deadline.after(DUMP_SECONDS), snapshot)
        found = sums.of(connection)
    return ServerCopy(_relative(folder.parent, root), _member(path, staged), found)


@contextmanager
def _connected(dsn: str) -> Iterator[Any]:
    """One connection as the owner of the tables."""
    from hermes_memory_pgvector.postgres.pool import Pool

    pool = Pool(lambda _: dsn, maximum=1, connect_seconds=START_SECONDS)
    try:
        with pool.connection(Deadline.after(DUMP_SECONDS)) as connection:
            yield connection
    finally:
        pool.close()


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A private folder beside the archive, where there must be room for it anyway."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror or type(error).__name__})") from None
    try:
        yield folder
    except OSError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror or type(error).__name__})") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _member(path: Path, staged: Path) -> Member:
    return archive.member_of(path, path.relative_to(staged).as_posix())


def _relative(home: Path, root: Path) -> str:
    return home.relative_to(root).as_posix()


def _schema_version() -> int:
    from hermes_memory_pgvector.store import schema

    return schema.wanted_version()
