"""`uninstall`: taking the memory out of a hermes installation, which steps that takes, and what stays.

The steps cover the root home and all its profiles. Without `purge`, everything stored stays where it is, and `up`
brings the memory back. Tables in a Postgres of the operator's own are never touched, nor is a profile that is a link
to somewhere else, nor a folder that nothing shows to be ours.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hermes_memory_pgvector import carried
from hermes_memory_pgvector.config.home import ID_NAME, home_id, homes_of, root_of
from hermes_memory_pgvector.config.settings_file import (
    ENVIRONMENT_PREFIX,
    PASSWORD_VARIABLE,
    PROVIDER_NAME,
    current_provider,
    data_folder,
    dotenv,
    has_section,
    load,
    remove_variable,
    section,
    update,
)
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, MemoryPluginError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.memory import Memory, memory_of
from hermes_memory_pgvector.ops.setup import host_python, plugin_folder
from hermes_memory_pgvector.terminal.amounts import size
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan

STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Verb:
    """What is done with something, before and afterwards."""

    now: str
    past: str


REMOVE, STOP, DELETE = Verb("remove", "removed"), Verb("stop", "stopped"), Verb("delete", "deleted")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    verb: Verb
    what: str
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class StepLine:
    """One thing that would be done, or was."""

    step: str = column("step", text=True)


def uninstall(memory: Memory, *, purge: bool, execute: bool) -> Plan:
    """What would be done in all homes of the installation, or what was."""
    from hermes_memory_pgvector.ops.journals import users_of

    root = root_of(memory.home)
    linked = [each for each in homes_of(memory.home) if each not in (memory.home, root) and _is_elsewhere(each, root)]
    homes = [each for each in homes_of(memory.home) if each not in linked]
    if purge:
        _check_links(homes)
    kinds = (_detach, _forget_settings, _stop, _delete) if purge else (_detach, _stop)
    steps = [step for kind in kinds for each in homes for step in kind(each)]
    stays = [*_stays(homes, purge=purge)]
    stays += [f"{each}: it leads to {each.resolve()}; to take that one out, name its home" for each in linked]
    users = [user for each in homes for user in users_of(each)]
    if execute and users:
        # A process would bring back what is removed.
        raise ConfigError(f"{', '.join(users)} still uses this memory; stop it first, nothing was changed")
    notes = [Note("warning", f"{user} still uses this memory; stop it first") for user in users]
    notes += [note for each in homes for note in _audited(each, len(steps))] if execute and purge else []
    for step in steps if execute else ():
        step.run()
    notes += [Note("note", f"stays: {each}") for each in dict.fromkeys(stays)]
    lines = [StepLine(f"{each.verb.past if execute else each.verb.now} {each.what}") for each in steps]
    return Plan("do", "done", {"steps": len(steps)}, lines, executed=execute, notes=notes)


def _audited(home: Path, steps: int) -> Iterator[Note]:
    """Leave a row in the audit log of a Postgres of the operator's own, while its login is known; or say that not."""
    from hermes_memory_pgvector.ops import audit

    if not load(home).settings.dsn or not _is_ours(data_folder(home)):
        return
    memory = memory_of(home)
    try:
        with memory.changing() as connection:
            audit.record(connection, memory.actor, "uninstall", subject="purge", counts={"steps": steps})
    except MemoryPluginError as error:
        yield Note("note", f"the audit log of {home}'s database has no row of this ({error})")


def _is_elsewhere(profile: Path, root: Path) -> bool:
    """Whether a link leads to this profile: what is there may be another installation's."""
    return profile.resolve() != root.resolve() / "profiles" / profile.name


def _check_links(homes: list[Path]) -> None:
    """Refuse to purge what lies behind a link: another home may use it, too."""
    for folder in map(data_folder, homes):
        if folder.is_symlink():
            raise ConfigError(
                f"{folder} is a link to {folder.resolve()}, which is not deleted through a link; nothing was changed. "
                "Delete the link, or put the folder in its place, and run this again"
            )


def _is_ours(folder: Path) -> bool:
    """Whether a folder of our name holds what only we write."""
    from hermes_memory_pgvector.server.folder import DATA_NAME

    signs = (ID_NAME, DATA_NAME, host_python.CHOICE_NAME)
    return folder.is_dir() and any((folder / name).exists() for name in signs)


def _detach(home: Path) -> Iterator[Step]:
    settings = home / "config.yaml"
    if current_provider(home) == PROVIDER_NAME:
        yield Step(REMOVE, f"memory.provider from {settings}", partial(_take_out, home, "memory", "provider"))
    enabled = section(home, ("plugins", "enabled"))
    if isinstance(enabled, list) and PROVIDER_NAME in enabled:
        others = {"enabled": [name for name in enabled if name != PROVIDER_NAME]}
        leave = partial(update, home, ("plugins",), others) if others["enabled"] else None
        told = f"{PROVIDER_NAME} from plugins.enabled in {settings}"
        yield Step(REMOVE, told, leave or partial(_take_out, home, "plugins", "enabled"))
    for folder in carried.folders(home):
        yield Step(REMOVE, f"the libraries {folder}", partial(shutil.rmtree, folder))
    for folder in plugin_folder.ours(home):
        yield Step(REMOVE, str(folder), partial(plugin_folder.remove, folder))


def _forget_settings(home: Path) -> Iterator[Step]:
    for layer in ("memory", "plugins"):
        if has_section(home, (layer, PROVIDER_NAME)):
            remove = partial(_take_out, home, layer, PROVIDER_NAME)
            yield Step(REMOVE, f"{layer}.{PROVIDER_NAME} from {home / 'config.yaml'}", remove)
    for name in dotenv(home):
        if name.startswith(ENVIRONMENT_PREFIX):
            yield Step(REMOVE, f"{name} from {home / '.env'}", partial(remove_variable, home, name))


def _take_out(home: Path, *names: str) -> None:
    """Take a key out of config.yaml, and the section that held nothing else."""
    update(home, names[:-1], {}, remove=names[-1:])
    if names[:-1] and section(home, names[:-1]) == {}:
        _take_out(home, *names[:-1])


def _stop(home: Path) -> Iterator[Step]:
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    folder = data_folder(home)
    if EmbeddedPostgres(folder).is_there():
        stop = partial(EmbeddedPostgres(folder).stop, Deadline.after(STOP_SECONDS))
        yield Step(STOP, f"the embedded server in {folder}", stop)


def _delete(home: Path) -> Iterator[Step]:
    folder = data_folder(home)
    dump = _dump(home)
    if dump is not None:
        yield Step(DELETE, f"the dump {dump} ({size(dump.stat().st_size)})", partial(_delete_dump, dump))
    if _is_ours(folder):
        yield Step(DELETE, _described(folder), partial(shutil.rmtree, folder))


def _stays(homes: list[Path], *, purge: bool) -> Iterator[str]:
    for home in homes:
        settings = load(home).settings
        if settings.dsn:
            yield f"the tables in {parts.describe_database(home, settings)}"
            yield from _role(settings.dsn)
        if purge:
            if data_folder(home).is_dir() and not _is_ours(data_folder(home)):
                yield f"{data_folder(home)}: nothing in it shows that it is ours"
            continue
        if data_folder(home).is_dir():
            yield _described(data_folder(home))
        dump = _dump(home)
        if dump is not None:
            yield f"{dump} ({size(dump.stat().st_size)}): a dump of all memories, made for a backup"
        if PASSWORD_VARIABLE in dotenv(home):
            yield f"the password in {home / '.env'}"


def _role(dsn: str) -> Iterator[str]:
    """The agents' role in a Postgres of the operator's own, and the SQL that deletes it with the database."""
    from hermes_memory_pgvector.postgres.conninfo import database_of, user_of

    with contextlib.suppress(ConfigError):
        database, role = database_of(dsn), user_of(dsn)
        if database and role:
            sql = f'DROP DATABASE "{database}"; DROP ROLE "{role}";'
            yield f"the role {role} there; if nothing else needs the two, a superuser deletes them: {sql}"


def _described(folder: Path) -> str:
    from hermes_memory_pgvector.server.folder import SHELTER_NAME

    used = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    what = "journal and embedded database" if any(folder.glob(f"{SHELTER_NAME}/*")) else "journal"
    return f"{folder} ({size(used)}): {what}"


def _dump(home: Path) -> Path | None:
    from hermes_memory_pgvector.server.folder import dump_path

    if not (data_folder(home) / ID_NAME).exists():
        return None
    path = dump_path(home_id(home))
    return path if path is not None and path.is_file() else None


def _delete_dump(path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        # The folder for dumps and sockets goes with the last of them.
        path.parent.rmdir()


UNINSTALL: Final = Operation(
    "uninstall",
    "take the memory out of hermes, in all profiles; everything stored stays",
    (Option("--purge", "also delete the embedded database, journals, dumps and settings for good", is_flag=True),),
    uninstall,
    (
        ("uninstall", "show what would be done"),
        ("uninstall --execute", "do it; `up` brings the memory back"),
        ("uninstall --purge --execute", "also delete what is stored on this machine"),
    ),
    group="set up",
    changes=True,
    on_page=False,
    names_home=True,
)
