"""`backup`: every database of a hermes installation and the journals of all its homes as one file, and back again.

The journals are copied first: what was acknowledged before is in them, or in the database already. Then comes the dump,
in one snapshot with the sums it is compared by; it knows which of those records it holds, so none is stored twice when
they are delivered again. At last the journals are copied once more, with what was said meanwhile.

An embedded database is dumped as it is. A Postgres of the operator's own, of whatever version, is copied into a server
of ours that lives as long as that takes, and whose dump is kept. A new backup is restored into such a server, too, and
compared: what cannot be restored is no backup.
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
from hermes_memory_pgvector.errors import CareError, ConfigError, Held, UsageError
from hermes_memory_pgvector.ops.carry import archive, restore
from hermes_memory_pgvector.ops.carry.archive import HomeCopy, Manifest, Member, ServerCopy
from hermes_memory_pgvector.ops.carry.ends import End, end_of, shown
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.amounts import size
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan, command

DUMP_SECONDS = 24 * 3600.0
SINGLE_FILES = (ID_NAME, "identity.key")
FOLDERS = ("journal",)
LOCK_SUFFIX = ".lock"
MOST_DIFFERENCES = 10
Said = Callable[[str], None]


def backup(
    memory: Memory, *, what: str, file: str | None, admin_dsn: str | None, no_verify: bool, execute: bool
) -> Plan:
    """Make a backup, put one back, or see whether one can be put back."""
    if file is None and what != "create":
        raise UsageError(f"backup {what} needs the file")
    today = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    path = Path(file or f"hermes-memory-{today}.tar").expanduser().absolute()
    with progress.shown(f"backup {what}") as bar:
        if what == "restore":
            return restore.restore(path, root_of(memory.home), admin_dsn, bar.phase, execute=execute)
        manifest = make(memory.home, path, admin_dsn, bar.phase) if what == "create" else archive.check(path)
        differing = [] if no_verify else verify(path, bar.phase)
    if differing:
        raise CareError(f"{path} can be restored, but differs from what was there: {'; '.join(differing)}")
    notes = [
        Note("note", f"{size(path.stat().st_size)}; it holds all memories and the key of private themes: keep it safe"),
        Note("note", "to put it back", then=command("backup", "restore", str(path))),
    ]
    if not no_verify:
        notes.insert(0, Note("ok", "restored into a temporary server: every table has the same rows"))
    done = f"{path} written" if what == "create" else f"{path} is whole"
    return Plan(what, done, restore.counted(manifest), (), True, notes)


BACKUP = Operation(
    "backup",
    "write every database and journal of this installation to one file, or put one back",
    (
        Option(
            "what", "create: make one; restore: put one back; verify: see whether that would work",
            choices=("create", "restore", "verify"), required=True,
        ),
        Option("file", "the file (create: hermes-memory-DATE.tar here)", metavar="FILE"),
        Option("--admin-dsn", "login that owns the tables of a Postgres of your own", show=shown, metavar="DSN"),
        Option("--no-verify", "create: do not restore it into a temporary server to see that it can be", is_flag=True),
    ),
    backup,
    (
        ("backup create memory.tar", "hermes may go on running"),
        ("backup restore memory.tar", "what is in it, and what it would replace: a dry run"),
        ("backup restore memory.tar --execute", "what is there now is kept aside"),
    ),
    group="move",
    changes=True,
    on_page=False,
)  # fmt: skip


def make(home: Path, target: Path, admin: str | None = None, said: Said = lambda _: None) -> Manifest:
    """Write a backup of all homes of an installation; ConfigError when none of them has a database."""
    root = root_of(home)
    homes = _homes(root, admin)
    if not homes:
        raise ConfigError(f"there is no database in {root} yet; run: hermes-pgvector up")
    with _staging(target) as staged:
        said("journals")
        for each in homes:
            _copy_files(each, root, staged)
        servers = []
        for number, end in enumerate(dict.fromkeys(homes.values())):
            said(end.place)
            first = next(each for each, used in homes.items() if used == end)
            servers.append(_copied(end, _relative(first, root), staged, number, said))
        said("journals")
        names = {end: server.home for end, server in zip(dict.fromkeys(homes.values()), servers, strict=True)}
        copies = tuple(_home_copy(each, names[homes[each]], root, staged) for each in homes)
        said("writing")
        archive.write(target, staged, Manifest(datetime.now(UTC).isoformat(), __version__, tuple(servers), copies))
    return archive.check(target)


def verify(path: Path, said: Said = lambda _: None) -> list[str]:
    """Restore every database of a backup into a temporary server and compare; where they differ, in words."""
    from hermes_memory_pgvector.schema.moving import differences, open_side
    from hermes_memory_pgvector.server.dump import scratch

    found = []
    with _staging(path) as folder:
        manifest = archive.extract(path, folder / "archive")
        for number, each in enumerate(manifest.servers):
            said(f"restoring the database of {each.home} into a temporary server")
            with (
                scratch(folder / f"server-{number}", folder / "archive" / each.dump.name) as info,
                open_side(info.owner_dsn) as side,
            ):
                found += [f"{each.home}: {where}" for where in differences(each.sums, side.sums())]
    return found[:MOST_DIFFERENCES]


def _homes(root: Path, admin: str | None) -> dict[Path, End]:
    """The homes that have a database, each with it."""
    homes: dict[Path, End] = {}
    for each in homes_of(root):
        settings = load(each).settings
        if settings.hold:
            raise Held(f"{each}: {settings.hold}")
        end = end_of(each, settings, admin)
        if end.is_there and data_folder(each).is_dir():
            homes[each] = next(
                (known for known in homes.values() if known.place_and_folder == end.place_and_folder), end
            )
    return homes


def _copied(end: End, home: str, staged: Path, number: int, said: Said) -> ServerCopy:
    """A dump of a database, with the sums it is compared by."""
    from hermes_memory_pgvector.schema import migrate, moving
    from hermes_memory_pgvector.server.dump import dump_database, running, scratch

    path = staged / "servers" / f"{number}.dump"
    path.parent.mkdir(exist_ok=True)
    deadline = Deadline.after(DUMP_SECONDS)
    if end.is_embedded:
        with running(end.folder, deadline) as info, moving.open_side(info.owner_dsn) as side, side.one_moment():
            dump_database(end.folder, info, path, deadline, side.snapshot())
            return ServerCopy(home, _member(path, staged), side.sums())
    folder = staged / f"copy-{number}"
    with end.opened() as source, scratch(folder) as info:
        migrate.apply(info.owner_dsn, may_be_closed=True)
        with moving.open_side(info.owner_dsn) as copy:
            moving.move(source, copy, said, lambda _: None)
            sums = copy.sums()
        dump_database(folder, info, path, deadline)
    shutil.rmtree(folder)
    return ServerCopy(home, _member(path, staged), sums)


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


def _home_copy(home: Path, server: str, root: Path, staged: Path) -> HomeCopy:
    _copy_files(home, root, staged)
    place = staged / "homes" / _relative(home, root)
    of_profiles = home == root and place / "profiles"
    found = [
        each
        for each in sorted(place.rglob("*"))
        if each.is_file() and not (of_profiles and each.is_relative_to(of_profiles))
    ]
    members = tuple(_member(each, staged) for each in found)
    return HomeCopy(_relative(home, root), server, members, _settings(home))


def _settings(home: Path) -> dict[str, Any]:
    settings = load(home).settings
    layers = tuple(f"{layer}.{PROVIDER_NAME}" for layer in ("memory", "plugins"))
    return {
        name: plain(getattr(settings, name))
        for name, layer in settings.set_by.items()
        if layer in layers and name != "dsn" and not DECLARATIONS[name].secret
    }


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
