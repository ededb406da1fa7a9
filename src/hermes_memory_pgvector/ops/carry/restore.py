"""Puts a backup back into the databases that the settings name now; what is there is kept under another name.

The journals go aside before the data does: at no moment does a journal meet a database that it does not belong to.
Whoever is killed on the way runs this again. A Postgres of the operator's own is filled as `promote` fills one, and has
to be empty.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config.home import CHECK_NAME, ID_NAME, KEY_NAME, private_folder
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops.carry import archive
from hermes_memory_pgvector.ops.carry.archive import Manifest
from hermes_memory_pgvector.ops.carry.ends import End, end_of
from hermes_memory_pgvector.ops.journals import users_of
from hermes_memory_pgvector.server.folder import REPLACED
from hermes_memory_pgvector.terminal.operation import Note, Plan, command
from hermes_memory_pgvector.terminal.progress import Bar

RESTORE_SECONDS = 24 * 3600.0
NAMES = ("journal", ID_NAME, KEY_NAME, CHECK_NAME, "database.json")
NOUNS = {"memory_entries": "memories", "conversations": "turns"}


def restore(path: Path, root: Path, admin: str | None, bar: Bar, *, execute: bool) -> Plan:
    """What restoring an archive would do; or what it did."""
    manifest = archive.manifest_of(path)
    ends = {each.home: end_of(root / each.home, admin) for each in manifest.servers}
    users = {user: None for each in manifest.homes for user in users_of(root / each.home)}
    notes = [Note("note", f"made on {manifest.made_at[:19].replace('T', ' ')} UTC by version {manifest.version}")]
    replaced = [note for end in ends.values() for note in _held(end)]
    if not execute:
        notes += replaced + [Note("warning", f"{user} uses this memory; stop it first") for user in users]
        return Plan(f"restore into {root}:", "", manifest.counts(), (), False, notes)
    if users:
        raise ConfigError(f"{', '.join(users)} uses this memory; stop it first, nothing was changed")
    aside = _carry_out(path, root, ends, bar)
    bar.part("what was forgotten since")
    counts, gone = _settled(manifest, root, ends)
    if any(gone):
        told = " and ".join(f"{count:,} {noun}" for count, noun in zip(gone, counts, strict=False) if count)
        notes.append(Note("note", f"forgotten since, and left out: {told}"))
    notes += [
        Note("note", f"what was there before is in {each}; delete it when you no longer need it") for each in aside
    ]
    notes.append(Note("note", "next", then=command("up")))
    return Plan("restore", f"restored into {root}", counts, (), True, notes)


def _held(end: End) -> list[Note]:
    """What a database holds now. ConfigError for one that cannot be replaced."""
    if not end.is_there:
        return []
    if end.is_embedded:
        return [Note("warning", f"the embedded database in {end.folder} would be kept aside, with the journals")]
    with end.opened() as side:
        obstacle = side.obstacle()
        if obstacle:
            raise ConfigError(f"{end.place}: {obstacle}")
        if side.has_table("conversations") and not (side.mark() is not None and side.is_unused()):
            raise ConfigError(
                f"{end.place} holds memories, and a backup replaces none in a Postgres of your own: name an empty "
                "database (hermes-pgvector config set dsn DSN), or unset dsn for the embedded server"
            )
    return []


def _carry_out(path: Path, root: Path, ends: dict[str, End], bar: Bar) -> list[Path]:
    from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

    stamp, aside = time.time_ns(), []
    with tempfile.TemporaryDirectory(prefix=".restoring-", dir=private_folder(root)) as name:
        folder = Path(name)
        bar.part("unpacking")
        manifest = archive.extract(path, folder / "archive")
        for home in manifest.homes:
            aside += _put_aside(data_folder(root / home.home), stamp)
        for number, server in enumerate(manifest.servers):
            end, dump = ends[server.home], folder / "archive" / server.dump
            bar.part(f"database of {root / server.home}")
            if not end.is_embedded:
                _fill(end, root / server.home, dump, folder / f"server-{number}", bar)
                continue
            private_folder(end.folder.parent)
            old = EmbeddedPostgres(end.folder).replace_data(dump, Deadline.after(RESTORE_SECONDS))
            aside += [old] if old is not None else []
            # A dump has no rights in it.
            database.apply(end.owner_login(), RUNTIME_ROLE, None, adopt_model="", may_be_closed=True)
        for home in manifest.homes:
            _put_files(root / home.home, folder / "archive" / home.folder)
    return aside


def _fill(end: End, home: Path, dump: Path, folder: Path, bar: Bar) -> None:
    from hermes_memory_pgvector.schema.moving import move, open_side
    from hermes_memory_pgvector.server.dump import scratch

    role = database.role_for(load(home).settings, end.login)
    database.apply(end.login, role, None, adopt_model="")
    with scratch(folder, dump) as info, open_side(info.owner_dsn) as source, end.opened() as target:
        bar.part(end.place, total=sum(source.counts().values()), unit="row")
        move(source, target, bar.phase, bar.advance)


def _settled(manifest: Manifest, root: Path, ends: dict[str, End]) -> tuple[dict[str, int], tuple[int, int]]:
    """What is there once all that was forgotten since is gone again, and how many memories and turns that was."""
    from hermes_memory_pgvector.ops import audit
    from hermes_memory_pgvector.ops.forget import bars
    from hermes_memory_pgvector.store.gate import theme_names

    memories = turns = gone_memories = gone_turns = 0
    themes: set[str] = set()
    for server in manifest.servers:
        homes = [data_folder(root / home.home) for home in manifest.homes if home.server == server.home]
        with ends[server.home].opened() as side:
            with side.connection.transaction():
                erased = bars.apply(side.connection, homes)
                rows = side.counts()
                audit.record(
                    side.connection, audit.operator(root), "backup restore", subject=f"made {manifest.made_at[:19]}",
                    counts={noun: rows[name] for name, noun in NOUNS.items()},
                )  # fmt: skip
            themes |= set(theme_names(side.connection))
        memories, turns = memories + rows["memory_entries"], turns + rows["conversations"]
        gone_memories, gone_turns = gone_memories + len(erased.entries), gone_turns + len(erased.turns)
    counts = {"memories": memories, "turns": turns, "themes": len(themes), "homes": len(manifest.homes)}
    return counts, (gone_memories, gone_turns)


def _put_aside(folder: Path, stamp: int) -> list[Path]:
    """Move a home's journals and names out of the way of those that come."""
    target = folder / f"{REPLACED}{stamp}"
    for path in (folder / name for name in NAMES):
        if path.is_dir() and not any(one.suffix != ".lock" for one in path.iterdir()):
            shutil.rmtree(path)
        elif path.exists():
            target.mkdir(mode=0o700, exist_ok=True)
            files.give(target, files.owner_of(folder))
            path.rename(target / path.name)
    return [target] if target.exists() else []


def _put_files(home: Path, source: Path) -> None:
    folder = private_folder(home)
    owner = files.owner_of(folder)
    for each in sorted(source.rglob("*")):
        target = folder / each.relative_to(source)
        if each.is_dir():
            target.mkdir(mode=0o700, exist_ok=True)
        else:
            shutil.move(each, target)
        files.give(target, owner)
    for written in (folder, folder / "journal"):
        if written.is_dir():
            files.sync_folder(written)
