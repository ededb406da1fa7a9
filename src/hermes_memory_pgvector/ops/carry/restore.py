"""Puts a backup back into the databases that the settings name now; what is there is kept under another name.

The journals go aside before the data does: at no moment does a journal meet a database that it does not belong to.
Whoever is killed on the way runs this again. A Postgres of the operator's own is filled as `promote` fills one, and has
to be empty.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config.home import private_folder
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, Held, MemoryPluginError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops import new_settings
from hermes_memory_pgvector.ops.carry import archive
from hermes_memory_pgvector.ops.carry.archive import HomeCopy, Manifest
from hermes_memory_pgvector.ops.carry.ends import End, end_of
from hermes_memory_pgvector.ops.journals import users_of
from hermes_memory_pgvector.terminal.operation import Note, Plan, command

if TYPE_CHECKING:
    from hermes_memory_pgvector.ops.forget.rows import Findings

RESTORE_SECONDS = 24 * 3600.0
NAMES = ("journal", "home-id", "identity.key", "database.json")
Said = Callable[[str], None]
Erased = dict[str, tuple[int, int]]
"""By theme: memories and turns, as in a manifest."""


def restore(path: Path, root: Path, admin: str | None, said: Said, *, execute: bool) -> Plan:
    """What restoring an archive would do, after all of it was checked; or what it did."""
    said("checking")
    manifest = archive.check(path)
    ends = {each.home: _end(root / each.home, admin) for each in manifest.servers}
    users = {user: None for each in manifest.homes for user in users_of(root / each.home)}
    notes = [Note("note", f"made on {manifest.made_at[:19].replace('T', ' ')} UTC by version {manifest.version}")]
    replaced = [note for end in ends.values() for note in _held(end)]
    if users and execute:
        raise ConfigError(f"{', '.join(users)} uses this memory; stop it first, nothing was changed")
    if not execute:
        notes += replaced + [Note("warning", f"{user} uses this memory; stop it first") for user in users]
        return Plan(f"restore into {root}:", "", counted(manifest), (), False, notes)
    aside, erased = _carry_out(path, root, ends, said)
    troubles = _settle(manifest, root)
    notes += _stays_out(erased)
    notes += [
        Note("note", f"what was there before is in {each}; delete it when you no longer need it") for each in aside
    ]
    notes += [Note("warning", f"settings of the backup are not in force: {trouble}") for trouble in troubles]
    notes.append(Note("note", "next", then=command("up")))
    return Plan("restore", f"restored into {root}", counted(manifest, erased), (), True, notes)


def counted(manifest: Manifest, erased: Erased | None = None) -> dict[str, int]:
    """What an archive holds, in numbers; without what was erased of it."""
    gone = erased or {}
    held = {
        theme: (memories - gone.get(theme, (0, 0))[0], turns - gone.get(theme, (0, 0))[1])
        for theme, (memories, turns) in manifest.themes.items()
    }
    memories, turns = (sum(each[place] for each in held.values()) for place in (0, 1))
    themes = sum(any(each) or theme not in gone for theme, each in held.items())
    return {"memories": memories, "turns": turns, "themes": themes, "homes": len(manifest.homes)}


def _stays_out(erased: Erased) -> list[Note]:
    told = [sum(each[place] for each in erased.values()) for place in (0, 1)]
    words = [
        f"{count} {name[0] if count == 1 else name[1]}"
        for count, name in zip(told, (("memory", "memories"), ("turn", "turns")), strict=True) if count
    ]  # fmt: skip
    return [Note("note", f"{' and '.join(words)} that were forgotten since stay out")] if words else []


def _by_theme(found: Findings) -> Erased:
    memories, turns = Counter(theme for theme, _ in found.entries), Counter(theme for theme, _ in found.turns)
    return {theme: (memories[theme], turns[theme]) for theme in memories | turns}


def _end(home: Path, admin: str | None) -> End:
    settings = load(home).settings
    if settings.hold:
        raise Held(f"{home}: {settings.hold}")
    return end_of(home, settings, admin)


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


def _carry_out(path: Path, root: Path, ends: dict[str, End], said: Said) -> tuple[list[Path], Erased]:
    from hermes_memory_pgvector.ops.forget import bars
    from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

    stamp, aside = time.time_ns(), []
    erased: Erased = {}
    with tempfile.TemporaryDirectory(prefix=".restoring-", dir=private_folder(root)) as name:
        folder = Path(name)
        said("unpacking")
        manifest = archive.extract(path, folder / "archive")
        for home in manifest.homes:
            aside += _put_aside(root / home.home, stamp)
        for number, server in enumerate(manifest.servers):
            end, dump = ends[server.home], folder / "archive" / server.dump.name
            said(f"database of {root / server.home}")
            if not end.is_embedded:
                _fill(end, root / server.home, dump, folder / f"server-{number}", said)
                continue
            private_folder(end.folder.parent)
            old = EmbeddedPostgres(end.folder).replace_data(dump, Deadline.after(RESTORE_SECONDS))
            aside += [old] if old is not None else []
            # A dump has no rights in it.
            database.apply(end.owner_login(), RUNTIME_ROLE, None, adopt_model="", may_be_closed=True)
        for home in manifest.homes:
            _put_files(root / home.home, folder / "archive" / "homes" / home.home, home)
        for server in manifest.servers:
            said("what was forgotten since")
            homes = [data_folder(root / home.home) for home in manifest.homes if home.server == server.home]
            with ends[server.home].opened() as side, side.connection.transaction():
                for theme, (memories, turns) in _by_theme(bars.apply(side.connection, homes)).items():
                    before = erased.get(theme, (0, 0))
                    erased[theme] = before[0] + memories, before[1] + turns
    return aside, erased


def _fill(end: End, home: Path, dump: Path, folder: Path, said: Said) -> None:
    from hermes_memory_pgvector.schema.moving import move, open_side
    from hermes_memory_pgvector.server.dump import scratch

    role = database.role_for(load(home).settings, end.login)
    database.apply(end.login, role, None, adopt_model="")
    with scratch(folder, dump) as info, open_side(info.owner_dsn) as source, end.opened() as target:
        move(source, target, said, lambda _: None)


def _settle(manifest: Manifest, root: Path) -> list[str]:
    """Give the homes the settings of the backup that they have not set themselves; what could not be set, in words."""
    troubles = []
    for home in manifest.homes:
        target = root / home.home
        known = load(target).settings
        wanted = {name: value for name, value in home.settings.items() if not known.is_set(name)}
        if not wanted:
            continue
        try:
            new_settings.save(target, wanted)
        except MemoryPluginError as error:
            troubles.append(f"{target}: {error}")
    return troubles


def _put_aside(home: Path, stamp: int) -> list[Path]:
    """Move a home's journals and names out of the way of those that come."""
    folder, moved = data_folder(home), []
    for name in NAMES:
        path = folder / name
        if not path.exists():
            continue
        if path.is_dir() and not any(one.suffix != ".lock" for one in path.iterdir()):
            shutil.rmtree(path)
            continue
        target = folder / f"replaced-{stamp}" / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        files.give(target.parent, files.owner_of(folder))
        path.rename(target)
        moved = [target.parent]
    return moved


def _put_files(home: Path, source: Path, copy: HomeCopy) -> None:
    folder = private_folder(home)
    owner = files.owner_of(folder)
    for member in copy.files:
        name = Path(member.name).relative_to(Path("homes") / copy.home)
        target = folder / name
        if not target.parent.is_dir():
            target.parent.mkdir(mode=0o700)
            files.give(target.parent, owner)
        shutil.move(source / name, target)
        files.give(target, owner)
    for each in {folder, *(folder / name for name in ("journal",) if (folder / name).is_dir())}:
        files.sync_folder(each)
