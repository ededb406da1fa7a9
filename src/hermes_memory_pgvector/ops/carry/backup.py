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
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.config.home import CHECK_NAME, ID_NAME, KEY_NAME, homes_of, root_of
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, UsageError
from hermes_memory_pgvector.ops.carry import archive, restore
from hermes_memory_pgvector.ops.carry.archive import HomeCopy, Manifest, ServerCopy
from hermes_memory_pgvector.ops.carry.ends import End, end_of, shown
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.amounts import size
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan, command
from hermes_memory_pgvector.terminal.progress import Bar

DUMP_SECONDS = 24 * 3600.0
SINGLE_FILES = (ID_NAME, KEY_NAME, CHECK_NAME)
MOST_DIFFERENCES = 10


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
            return restore.restore(path, root_of(memory.home), admin_dsn, bar, execute=execute)
        manifest = make(memory.home, path, admin_dsn, bar) if what == "create" else archive.manifest_of(path)
        if not no_verify:
            _verify(path, bar)
    files = manifest.files
    keys = [each.home or "." for each in manifest.homes if f"{each.folder}/{KEY_NAME}" in files]
    lost = [
        each.home or "." for each in manifest.homes
        if f"{each.folder}/{CHECK_NAME}" in files and f"{each.folder}/{KEY_NAME}" not in files
    ]  # fmt: skip
    holds = "all memories and the key of private themes" if keys else "all memories"
    notes = [
        *(Note("warning", f"the {KEY_NAME} of home {each} is missing, and so not in it") for each in lost),
        Note("note", f"{size(path.stat().st_size)}; it holds {holds}: keep it safe"),
        Note("note", "to put it back", then=command("backup", "restore", str(path))),
    ]
    if not no_verify:
        notes.insert(0, Note("ok", "restored into a temporary server: every table has the same rows"))
    done = f"{path} written" if what == "create" else f"{path} is whole"
    return Plan(what, done, manifest.counts(), (), True, notes)


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


def make(home: Path, target: Path, admin: str | None, bar: Bar) -> Manifest:
    """Write a backup of all homes of an installation; ConfigError when none of them has a database."""
    root = root_of(home)
    ends = {each: end_of(each, admin) for each in homes_of(root)}
    homes = [each for each, end in ends.items() if end.is_there and data_folder(each).is_dir()]
    if not homes:
        raise ConfigError(f"there is no database in {root} yet; run: hermes-pgvector up")
    # Several logins may lead to one database.
    first = {each: next(one for one in homes if ends[one].key == ends[each].key) for each in homes}
    with _staging(target) as staged:
        folders = {each: staged / "homes" / str(number) for number, each in enumerate(homes)}
        bar.part("journals")
        for each, folder in folders.items():
            _copy_files(data_folder(each), folder)
        servers = []
        for number, each in enumerate(dict.fromkeys(first.values())):
            servers.append(_copied(ends[each], each.relative_to(root).as_posix(), staged, number, bar))
        bar.part("journals")
        for each, folder in folders.items():
            _copy_files(data_folder(each), folder)
        bar.part("writing")
        copies = [
            HomeCopy(each.relative_to(root).as_posix(), first[each].relative_to(root).as_posix(), f"homes/{number}")
            for number, each in enumerate(homes)
        ]
        files = archive.files_in(staged)
        manifest = Manifest(datetime.now(UTC).isoformat(), __version__, tuple(servers), tuple(copies), files)
        archive.write(target, staged, manifest)
    return manifest


def _verify(path: Path, bar: Bar) -> None:
    """Restore every database of a backup into a temporary server; CareError where they differ."""
    from hermes_memory_pgvector.schema.moving import differences, open_side
    from hermes_memory_pgvector.server.dump import scratch

    found = []
    with _staging(path) as folder:
        manifest = archive.extract(path, folder / "archive")
        for number, each in enumerate(manifest.servers):
            bar.part(f"restoring database {number + 1} of {len(manifest.servers)} into a temporary server")
            with (
                scratch(folder / f"server-{number}", folder / "archive" / each.dump) as info,
                open_side(info.owner_dsn) as side,
            ):
                found += [f"{each.home}: {where}" for where in differences(each.sums, side.sums())]
    if found:
        told = "; ".join(found[:MOST_DIFFERENCES])
        raise CareError(f"{path} can be restored, but differs from what was there: {told}")


def _copied(end: End, home: str, staged: Path, number: int, bar: Bar) -> ServerCopy:
    """A dump of a database, with the sums it is compared by."""
    from hermes_memory_pgvector.schema import migrate, moving
    from hermes_memory_pgvector.server.dump import dump_database, running, scratch

    name = f"servers/{number}.dump"
    path = staged / name
    path.parent.mkdir(exist_ok=True)
    deadline = Deadline.after(DUMP_SECONDS)
    if end.is_embedded:
        with running(end.folder, deadline) as info, moving.open_side(info.owner_dsn) as side, side.one_moment():
            bar.part(end.place, file=path)
            dump_database(end.folder, info, path, deadline, side.snapshot())
            bar.part("counting")
            return ServerCopy(home, name, side.sums())
    with tempfile.TemporaryDirectory(dir=staged) as made, end.opened() as source, scratch(Path(made)) as info:
        migrate.apply(info.owner_dsn, may_be_closed=True)
        with moving.open_side(info.owner_dsn) as copy:
            bar.part(end.place, total=sum(source.counts().values()), unit="row")
            moving.move(source, copy, bar.phase, bar.advance)
            sums = copy.sums()
        bar.part(end.place, file=path)
        dump_database(Path(made), info, path, deadline)
    return ServerCopy(home, name, sums)


def _copy_files(folder: Path, target: Path) -> None:
    """Copy a home's small files and journals; a file that was copied before is replaced if it is still there."""
    journal = folder / "journal"
    wanted = [folder / name for name in SINGLE_FILES]
    wanted += sorted(journal.iterdir()) if journal.is_dir() else []
    for source in wanted:
        if source.suffix == ".lock" or source.name.startswith(".") or not source.is_file() or source.is_symlink():
            continue
        copy = target / source.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        draft = copy.with_name(f".copy-{copy.name}")
        try:
            shutil.copy2(source, draft)
        except FileNotFoundError:
            # It was drained long ago and has just gone: what it held is in the database.
            continue
        draft.replace(copy)


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A private folder beside the archive, where there must be room for it anyway."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as name:
            yield Path(name)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror or type(error).__name__})") from None
