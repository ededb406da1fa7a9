"""Puts a backup back: into an empty home, or in the place of what is there, which is kept under another name."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config.home import private_folder, root_of
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, MemoryPluginError, ServerError
from hermes_memory_pgvector.setup import archive, journal_report, new_settings, parts
from hermes_memory_pgvector.setup.archive import HomeCopy, Manifest
from hermes_memory_pgvector.setup.users import users_of

RESTORE_SECONDS = 24 * 3600.0
BELONGS = "database.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a restore would do."""

    manifest: Manifest
    root: Path
    held: tuple[tuple[str, int, int], ...]
    """Homes whose database has rows now: their name, memories and turns."""
    unread: tuple[str, ...]
    """Homes whose server cannot be started, so that nobody knows what it holds."""
    waiting: tuple[str, ...]
    """Homes whose journal holds records that are not stored yet."""
    users: tuple[str, ...]
    """Processes that use the memory now."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be replaced."""
        return not self.held and not self.unread and not self.waiting


def plan(path: Path, home: Path) -> Plan:
    """What restoring an archive into a home would do; checks the whole archive, changes nothing."""
    from hermes_memory_pgvector.setup.moving_in import look_into

    manifest, root = archive.check(path), root_of(home)
    held, unread, waiting, users = [], [], [], []
    for home_copy in manifest.homes:
        target = root / home_copy.home
        settings = load(target).settings
        if settings.dsn or settings.hold:
            where = settings.hold or parts.describe_database(target, settings)
            raise ConfigError(
                f"{target} uses {where}; a backup is restored into an embedded server: hermes-pgvector config unset dsn"
            )
        users += users_of(target)
    for server in manifest.servers:
        homes = [each.home for each in manifest.homes if each.server == server.home]
        writers = [writer for each in homes for writer in journal_report.writers(root / each)]
        try:
            themes, marks = look_into(data_folder(root / server.home), writers)
        except ServerError:
            # Data of another version of Postgres, for example: nobody knows what it holds.
            unread.append(server.home)
            continue
        if themes:
            held.append((server.home, sum(one.memories for one in themes), sum(one.turns for one in themes)))
        for each in homes:
            report = journal_report.report(root / each, marks)
            if report.records or report.left is not None:
                waiting.append(each)
    return Plan(manifest, root, tuple(held), tuple(unread), tuple(waiting), tuple(dict.fromkeys(users)))


def carry_out(path: Path, plan: Plan, said: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Restore; what was there is kept aside, and its places are returned.

    The journals go aside before the data does: at no moment does a journal meet a database that it does not belong to.
    Whoever is killed on the way runs this again.
    """
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    users = plan.users or [user for each in plan.manifest.homes for user in users_of(plan.root / each.home)]
    if users:
        raise ConfigError(f"{', '.join(users)} uses this memory; stop it first, nothing was changed")
    stamp, aside = time.time_ns(), []
    own = private_folder(plan.root)
    with tempfile.TemporaryDirectory(prefix=".restoring-", dir=own) as name:
        folder = Path(name)
        said("unpacking")
        manifest = archive.extract(path, folder / "archive")
        for home in manifest.homes:
            aside += _put_aside(plan.root / home.home, stamp)
        for server in manifest.servers:
            said(f"database of {plan.root / server.home}")
            target = private_folder(plan.root / server.home)
            old = EmbeddedPostgres(target).replace_data(
                folder / "archive" / server.dump.name, Deadline.after(RESTORE_SECONDS)
            )
            aside += [old] if old is not None else []
        for home in manifest.homes:
            _put_files(plan.root / home.home, folder / "archive" / "homes" / home.home, home)
    return aside


def settle(plan: Plan) -> list[str]:
    """Give the homes the settings of the backup that they have not set themselves; what could not be set, in words."""
    troubles = []
    for home in plan.manifest.homes:
        target = plan.root / home.home
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
    for name in ("journal", "refused", "home-id", "identity.key", BELONGS):
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
    for each in {folder, *(folder / name for name in ("journal", "refused") if (folder / name).is_dir())}:
        files.sync_folder(each)
